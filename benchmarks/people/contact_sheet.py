"""A picture of every plan of `make bench-people`: what its brokers hold before and after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.document import DOCS
from benchmarks.people.judged_plans import Planned
from rehome.domain.array_types import NONE, Floats, Mask, Rows

PICTURE = DOCS / "images" / "people.svg"
COLUMNS, WIDTH, HEIGHT = 5, 240, 136
BARS_WIDTH, BARS_HEIGHT, GAP = 216, 36, 6
"""Pixels of a cell, of a row of bars in it, and between two racks."""
TOP = 2.0
"""Shares of a broker at which bars are cut off."""
STYLE = (
    "text{font:11px sans-serif;fill:#24292f}.small{font-size:9px;fill:#57606a}"
    ".before{fill:none;stroke:#8c959f}.bytes{fill:#2f81f7}.replicas{fill:#2da44e}"
    ".gone{fill:#ffd8d3}.even{stroke:#cf222e;stroke-width:.7}"
)


@dataclass(frozen=True)
class Held:
    """What brokers hold, in shares: 1 = as much as even brokers of their capacity do.

    :ivar bytes: (B,) of the bytes; zeros where there are none.
    :ivar replicas: (B,) of the number of replicas.
    """

    bytes: Floats
    replicas: Floats


def held(made: Planned, rows: Rows) -> Held:
    """Before or after a plan, by ``rows`` (P, R)."""
    weights = made.case.request().weights
    count = len(made.arrays.brokers.ids)
    capacity = np.array([weights.get(broker, 1.0) for broker in range(count)])
    capacity = np.where(stays(made), capacity, 0.0)
    there = rows != NONE
    on = rows[there]
    size = np.broadcast_to(made.arrays.size_bytes[:, None], rows.shape)[there]
    return Held(_shares(on, size, capacity), _shares(on, np.ones(len(on)), capacity))


def stays(made: Planned) -> Mask:
    """(B,) which brokers the plan leaves replicas on: neither dead nor drained."""
    leaves = np.zeros(len(made.arrays.brokers.ids), bool)
    if made.case.action.value == "drain":
        leaves[list(made.case.params["brokers"])] = True
    return made.arrays.brokers.live & ~leaves


def _shares(on: Rows, amount: Floats, capacity: Floats) -> Floats:
    total = np.bincount(on, amount, len(capacity))
    share = amount.sum() * capacity / capacity.sum()
    typical = amount.sum() / max(1, int((capacity > 0).sum()))
    return np.asarray(total / np.maximum(np.where(share > 0, share, typical), 1e-9))


def sheet(plans: Iterable[tuple[Planned, dict[str, Any]]]) -> str:
    """SVG with a cell for each plan and its row of the table."""
    cells = [_cell(number, made, row) for number, (made, row) in enumerate(plans)]
    height = HEIGHT * -(-len(cells) // COLUMNS)
    size = f'viewBox="0 0 {WIDTH * COLUMNS} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "<title>What brokers hold before and after the plans of people's clusters</title>",
            f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>',
            *cells,
            "</svg>",
            "",
        ]
    )


def _cell(number: int, made: Planned, row: dict[str, Any]) -> str:
    x, y = WIDTH * (number % COLUMNS), HEIGHT * (number // COLUMNS)
    before, after = held(made, made.arrays.rows), held(made, made.rows)
    said = f"{row['moves']} moves, {row['gb']} GB"
    return "".join(
        [
            f'<g transform="translate({x + 12} {y + 16})"><text>{escape(made.case.name)}</text>',
            f'<text class="small" y="11">{said}</text>',
            _bars(made, before.bytes, after.bytes, 16, "bytes"),
            _bars(made, before.replicas, after.replicas, 22 + BARS_HEIGHT, "replicas"),
            "</g>",
        ]
    )


def _bars(made: Planned, before: Floats, after: Floats, top: int, kind: str) -> str:
    paths = made.arrays.brokers.rack_paths
    wider = [n > 0 and any(paths) and paths[n] != paths[n - 1] for n in range(len(paths))]
    step = (BARS_WIDTH - GAP * sum(wider)) / len(paths)
    at = np.arange(len(paths)) * step + GAP * np.cumsum(wider)
    bottom, kept = top + BARS_HEIGHT, stays(made)
    drawn = []
    for n, left in enumerate(at.tolist()):
        old, new = (min(TOP, float(of[n])) / TOP * BARS_HEIGHT for of in (before, after))
        width = max(0.8, step * 0.8)
        if not kept[n]:
            drawn.append(_box("gone", left, top, width, BARS_HEIGHT))
        drawn.append(_box(kind, left, bottom - new, width, new))
        drawn.append(_box("before", left, bottom - old, width, old))
    even = bottom - BARS_HEIGHT / TOP
    drawn.append(f'<line class="even" x2="{BARS_WIDTH}" y1="{even:g}" y2="{even:g}"/>')
    return "".join(drawn)


def _box(kind: str, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" {place}/>'


def draw(plans: Iterable[tuple[Planned, dict[str, Any]]], into: Path = PICTURE) -> None:
    """Write the picture into the handbook."""
    into.write_text(sheet(plans))
