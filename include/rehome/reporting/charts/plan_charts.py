"""Pictures of a plan itself: loads against their bands, bytes from rack to rack, largest moves.

Plain numbers for the template to draw, as in :mod:`rehome.reporting.charts.progress_charts`.
A thousand brokers are as legible as ten: all of them in one small picture per resource, in the
order of what they held before, as parts of their shares.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import Floats
from rehome.domain.plan.figures import Link, ResourceBalance
from rehome.domain.plan.move import Move
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.resources import RESOURCE_NAMES, Resource

WIDTH, HEIGHT = 1000, 180
PAD = 0.06
"""Part of the height that is left free above and below."""

TOP_PERCENT = 150.0
"""Furthest above its share that a broker is drawn; what lies beyond is drawn at the edge."""

MARKS = tuple(sign * mark for mark in (100.0, 150.0, 50.0, 20.0, 5.0, 2.0) for sign in (1, -1))
LEAST_GAP = 15.0
"""Between the labels of two horizontal lines, in units of the picture's height."""

LARGEST = 12
NUMBERED = 10
"""Racks up to which the picture of links is wide enough for numbers."""


@dataclass(frozen=True, slots=True)
class LoadPicture:
    """One resource on every broker that has a share of it, left to right by its load before.

    In the coordinates of a 1000 x 180 SVG, as percent above or below the broker's share.

    :param before: points of a polyline; after: path of dots inside their bands, outside: of
        dots outside of them; each a dot per broker.
    :param band: points of a polygon, the bands; empty without a tolerance.
    :param grid: (y, label) of the horizontal lines, top to bottom.
    :param range_before, range_after: lowest and highest deviation, in percent.
    """

    name: str
    tolerance_percent: float | None
    brokers: int
    outside_count: int
    before: str
    after: str
    outside: str
    band: str
    grid: tuple[tuple[float, str], ...]
    range_before: tuple[float, float]
    range_after: tuple[float, float]


def load_pictures(summary: PlanSummary) -> tuple[LoadPicture, ...]:
    """A picture for each resource whose load is known."""
    pictures = (_load_picture(item) for item in summary.resources if item.known)
    return tuple(picture for picture in pictures if picture is not None)


def _load_picture(item: ResourceBalance) -> LoadPicture | None:
    before, after = np.array(item.before, float), np.array(item.after, float)
    if not before.any() and not after.any():
        return None
    low, high = (np.array(side, float) for side in (item.low, item.high))
    if item.low and item.tolerance is not None:
        share = high / (1 + item.tolerance)
        some = np.flatnonzero(share > 0)
        bad = (after < low) | (after > high)
    else:
        some = np.arange(len(after))
        share = np.full(len(after), after.mean() or 1.0)
        bad = np.zeros(len(after), bool)
    if not len(some):
        return None
    some = some[np.argsort(-before[some] / share[some], kind="stable")]
    was, now = (100 * (load[some] / share[some] - 1) for load in (before, after))
    x = WIDTH * (np.arange(len(some)) + 0.5) / len(some)
    scale = _Scale.of(was, now)
    bad = bad[some]
    return LoadPicture(
        name=RESOURCE_NAMES[Resource(item.resource)],
        tolerance_percent=None if item.tolerance is None else 100 * item.tolerance,
        brokers=len(some),
        outside_count=int(bad.sum()),
        before=_points(x, scale.y(was)),
        after=_dots(x[~bad], scale.y(now[~bad])),
        outside=_dots(x[bad], scale.y(now[bad])),
        band=_band(x, low[some] / share[some], high[some] / share[some], scale) if item.low else "",
        grid=scale.grid(),
        range_before=_range(was),
        range_after=_range(now),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Percent above or below the share → y, by its square root: a band of a few percent is as
    plain to see as an empty broker.
    """

    bottom: float
    top: float

    @classmethod
    def of(cls, *values: Floats) -> _Scale:
        lowest = _root(min(0.0, *(float(part.min()) for part in values)))
        fullest = max(0.0, *(float(part.max()) for part in values))
        highest = _root(min(fullest, TOP_PERCENT))
        margin = max(PAD * float(highest - lowest), 0.5)
        return cls(float(lowest - margin), float(highest + margin))

    def y(self, percent: Floats) -> Floats:
        root = np.clip(_root(percent), self.bottom, self.top)
        y: Floats = HEIGHT * (self.top - root) / (self.top - self.bottom)
        return y

    def grid(self) -> tuple[tuple[float, str], ...]:
        """The share itself, and as many more as fit, the outermost first."""
        drawn: dict[float, str] = {round(float(self.y(np.zeros(1))[0]), 1): "share"}
        for mark in MARKS:
            y = round(float(self.y(np.array([mark]))[0]), 1)
            inside = self.bottom <= float(_root(mark)) <= self.top
            if inside and min(abs(y - other) for other in drawn) >= LEAST_GAP:
                drawn[y] = f"{mark:+g} %"
        return tuple(sorted(drawn.items()))


def _root(percent: Floats | float) -> Floats:
    root: Floats = np.sign(percent) * np.sqrt(np.abs(percent))
    return root


def _band(x: Floats, low: Floats, high: Floats, scale: _Scale) -> str:
    upper, lower = (scale.y(100 * (side - 1)) for side in (high, low))
    edge = np.array([0.0, *x.tolist(), float(WIDTH)])
    upper, lower = (np.array([side[0], *side.tolist(), side[-1]]) for side in (upper, lower))
    return f"{_points(edge, upper)} {_points(edge[::-1], lower[::-1])}"


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _dots(x: Floats, y: Floats) -> str:
    """A path of strokes without length: round line caps make each a dot."""
    return "".join(f"M{a:.1f},{b:.1f}h0" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def _range(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


@dataclass(frozen=True, slots=True)
class LinkCell:
    """Bytes from one rack to another; ``strength`` from 0 to 1, of the busiest link."""

    source: str
    target: str
    size_bytes: int
    strength: float


@dataclass(frozen=True, slots=True)
class LinkPicture:
    """Racks against racks: a row per rack that leaders send from, a column per receiving one.

    :param numbered: whether the numbers fit into the cells.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    rows: tuple[tuple[LinkCell, ...], ...]
    numbered: bool
    busiest_bytes: int


def link_picture(links: Sequence[Link]) -> LinkPicture | None:
    """The plan's copies from rack to rack; None where there are none."""
    if not links:
        return None
    size = {(link.source, link.target): link.size_bytes for link in links}
    sources, targets = (tuple(sorted({pair[side] for pair in size})) for side in (0, 1))
    most = max(size.values())

    def cell(source: str, target: str) -> LinkCell:
        value = size.get((source, target), 0)
        return LinkCell(source, target, value, round(value / most, 3) if most else 0.0)

    return LinkPicture(
        sources=sources,
        targets=targets,
        rows=tuple(tuple(cell(source, target) for target in targets) for source in sources),
        numbered=len(targets) <= NUMBERED,
        busiest_bytes=most,
    )


@dataclass(frozen=True, slots=True)
class LargeMove:
    """One of the largest moves; ``percent`` of the largest one's bytes."""

    move: Move
    percent: float


def largest_moves(moves: Sequence[Move]) -> tuple[LargeMove, ...]:
    """The moves that copy most bytes, the largest first."""
    ordered = heapq.nsmallest(LARGEST, moves, key=lambda m: (-m.bytes_to_move, m.partition))
    most = max((move.bytes_to_move for move in ordered), default=0)
    return tuple(
        LargeMove(move, round(100 * move.bytes_to_move / most, 2))
        for move in ordered
        if move.bytes_to_move
    )
