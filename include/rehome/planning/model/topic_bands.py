"""Bands of topics: how many replicas and leaders of each topic a broker should hold.

Partitions of one topic tend to be busy at the same time, which averages in the history do not show.
So each topic is spread as well as the cluster: by capacity, clipped to what the rack tree and the
fixed replicas allow, within one replica or the tolerance, whichever is more. Of topics with fewer
replicas than brokers, no broker is to hold more than a few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.request.request import MAY_SHARE_A_BROKER, MOST_TOPIC_CELLS
from rehome.planning.model.arrays import ClusterArrays, replica_counts
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree

ANY = 2**30
"""No limit."""

ROUNDING = 1e-6
"""Rounding errors of shares, in replicas."""

SHARE_PASSES = 60


CELLS_AT_ONCE = 1 << 15
"""Topics' counts on brokers that are compared with their bands at a time."""


@dataclass(frozen=True)
class TopicBands:
    """The bands of T topics on B brokers. Row T is for all other topics, which have no limits.

    :param topics: (T,) index of each into ``ClusterArrays.topics``.
    :param row: (P,) the row of each partition's topic.
    :param low, high: (T + 1, B) replicas of the topic that each broker is to hold.
    :param led_low, led_high: (T + 1, B) the same for its leaders.
    :param fair: (T, B) share of the replicas if they could all be moved anywhere.
    :param tolerance: allowed deviation from a share, at least one replica.
    :param few: (T,) topics with fewer replicas than brokers: their bands have no lower end.
    :param leaders_only: only leaders have bands; replicas may be spread in any way.
    :param even: the bands of an even spread, where these ones are wider; see :func:`no_worse`.
    """

    topics: Ints
    row: Ints
    low: Ints
    high: Ints
    led_low: Ints
    led_high: Ints
    fair: Floats
    tolerance: float
    few: Mask
    leaders_only: bool = False
    even: TopicBands | None = None

    def counts(self, rows: Rows) -> Ints:
        """(T + 1, B) replicas of each topic on each broker under (P, R) rows."""
        return _counts(self.row, rows, self.low.shape)

    def leaders(self, rows: Rows) -> Ints:
        """(T + 1, B) leaders of each topic on each broker."""
        return _counts(self.row, rows[:, :1], self.low.shape)

    def outside(self, rows: Rows) -> int:
        """Replicas that brokers hold above their bands and lack below them."""
        return total_beyond(self.counts(rows), self.low, self.high)


def beyond(held: Ints, low: Ints, high: Ints) -> Ints:
    """How far counts are outside of their bands."""
    outside: Ints = np.subtract(held, high)
    np.maximum(outside, low - held, out=outside)
    return np.maximum(outside, 0, out=outside)


def total_beyond(held: Ints, low: Ints, high: Ints) -> int:
    """The sum of it, computed in parts that fit the processor's cache."""
    sides = [side.reshape(-1) for side in (held, low, high)]
    parts = range(0, held.size, CELLS_AT_ONCE)
    return sum(
        int(beyond(*(side[start : start + CELLS_AT_ONCE] for side in sides)).sum())
        for start in parts
    )


def topic_bands(
    layout: Layout,
    tree: RackTree,
    *,
    partitions: Mask,
    brokers: Mask,
    capacity: Floats,
    tolerance: float,
    one_sided: bool = False,
    leaders_only: bool = False,
) -> TopicBands | None:
    """The bands of all topics, see :func:`_banded`.

    :param partitions: (P,) that may move; ``brokers``: (B,) that give and take replicas.
    :param capacity: (B,) relative size of the brokers; 0 where one is to be emptied.
    :param leaders_only: whether replicas may be spread in any way.
    :returns: None where there is no such topic, or the tolerance is infinite.
    """
    arrays = layout.arrays
    if len(tree.trees) > 1:
        return _joined(
            [
                topic_bands(
                    layout,
                    one,
                    partitions=mine,
                    brokers=brokers,
                    capacity=capacity * one.hosts,
                    tolerance=tolerance,
                    one_sided=one_sided,
                    leaders_only=leaders_only,
                )
                for one, mine in tree.parts(partitions)
            ]
        )
    topics, few = _banded(arrays, partitions, int((tree.hosts & brokers).sum()))
    if leaders_only:
        topics, few = topics[~few], few[~few]
    if np.isinf(tolerance) or not len(topics):
        return None
    row = np.full(len(arrays.topics), len(topics))
    row[topics] = np.arange(len(topics))
    row = row[arrays.topic_of]
    spread = _Spread(layout, tree, partitions, brokers, row, len(topics))
    share, fair = spread.shares(np.where(brokers, capacity, 0.0))
    least, most = spread.ends[0][-1], spread.ends[1][-1]
    low, high = band(share, tolerance)
    low, high = np.minimum(low, most).astype(np.int64), np.maximum(high, least).astype(np.int64)
    led = _led_shares(layout, row, len(topics), brokers, capacity)
    led_low, led_high = band(led, tolerance)
    low[few], led_low[few], led_high[few] = 0, 0, ANY
    gone = ~tree.hosts & brokers
    high[:, gone], led_high[:, gone] = 0, 0
    for lowest, highest in ((low, high), (led_low, led_high)):
        lowest[:, ~brokers | gone | one_sided] = 0
        highest[:, ~brokers] = ANY
    if leaders_only:
        low[:], high[:] = 0, ANY
    return TopicBands(
        topics=topics,
        row=row,
        low=_and_others(low, -ANY),
        high=_and_others(high, ANY),
        led_low=_and_others(led_low, -ANY),
        led_high=_and_others(led_high, ANY),
        fair=fair,
        tolerance=tolerance,
        few=few,
        leaders_only=leaders_only,
    )


def no_worse(bands: TopicBands, rows: Rows, *, large_too: bool) -> TopicBands:
    """Wider bands: no topic may end further off than it is under (P, R) rows, but none has to come
    closer; and a few replicas of a topic may share a broker.

    :param large_too: also of topics with at least as many replicas as brokers; False = of the
        others only.
    """
    wider = np.append(bands.few | large_too, False)[:, None]
    held, led = bands.counts(rows), bands.leaders(rows)
    most = np.where(bands.high > 0, np.maximum(np.maximum(bands.high, held), MAY_SHARE_A_BROKER), 0)
    return replace(
        bands,
        low=np.where(wider, np.minimum(bands.low, held), bands.low),
        high=np.where(wider, most, bands.high),
        led_low=np.where(wider, np.minimum(bands.led_low, led), bands.led_low),
        led_high=np.where(wider, np.maximum(bands.led_high, led), bands.led_high),
        even=bands,
    )


def _joined(parts: list[TopicBands | None]) -> TopicBands | None:
    """The bands of topics of several broker sets: no topic is in two of them."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    topics = sum(len(part.topics) for part in found)
    row = np.full(len(found[0].row), topics)
    start = 0
    for part in found:
        mine = part.row < len(part.topics)
        row[mine] = part.row[mine] + start
        start += len(part.topics)

    def stacked(name: str) -> Ints:
        sides = [getattr(part, name) for part in found]
        return np.vstack([*(side[:-1] for side in sides), sides[0][-1:]])

    return TopicBands(
        topics=np.concatenate([part.topics for part in found]),
        row=row,
        low=stacked("low"),
        high=stacked("high"),
        led_low=stacked("led_low"),
        led_high=stacked("led_high"),
        fair=np.vstack([part.fair for part in found]),
        tolerance=found[0].tolerance,
        few=np.concatenate([part.few for part in found]),
        leaders_only=found[0].leaders_only,
    )


def _banded(arrays: ClusterArrays, partitions: Mask, brokers: int) -> tuple[Ints, Mask]:
    """Topics with bands: those with more replicas than may share a broker anyway, some of which may
    move. And which of them have fewer replicas than there are ``brokers``.
    """
    topics = len(arrays.topics)
    replicas = np.bincount(arrays.topic_of, arrays.replication_factor, topics)
    movable = np.bincount(arrays.topic_of, partitions, topics) > 0
    large = movable & (replicas >= max(brokers, 1))
    small = np.flatnonzero(movable & ~large & (replicas > MAY_SHARE_A_BROKER))
    most = max(MOST_TOPIC_CELLS // max(len(arrays.brokers.ids), 1) - int(large.sum()), 0)
    small = small[np.argsort(-replicas[small], kind="stable")[:most]]
    banded = large.copy()
    banded[small] = True
    return np.flatnonzero(banded), ~large[banded]


def band(share: Floats, tolerance: float) -> tuple[Ints, Ints]:
    """Least and most replicas within the tolerance of shares, or within one replica."""
    low, high = (np.empty(share.shape, np.int64) for _ in range(2))
    for part, least, most in zip(share, low, high, strict=True):
        slack = np.maximum(1.0, tolerance * part) + ROUNDING
        least[:] = np.maximum(np.ceil(part - slack), 0)
        most[:] = np.floor(part + slack)
    return low, high


def _and_others(of: Ints, limit: int) -> Ints:
    """The rows, and one more row filled with ``limit``."""
    rows: Ints = np.vstack([of, np.full((1, of.shape[1]), limit)])
    return rows


def _counts(row: Ints, rows: Rows, shape: tuple[int, ...]) -> Ints:
    total = np.zeros(shape[0] * shape[1], np.int64)
    first = row * shape[1]
    for column in rows.T:
        held = column != NONE
        cells = first + column if held.all() else first[held] + column[held]
        total += np.bincount(cells, minlength=len(total))
    return total.reshape(shape)


def _led_shares(layout: Layout, row: Ints, topics: int, brokers: Mask, capacity: Floats) -> Floats:
    """(T, B) what each broker should lead, by capacity, of what those that take part lead."""
    led = _counts(row, layout.origin[:, :1], (topics + 1, len(brokers)))[:topics]
    size = np.where(brokers, capacity, 0.0)
    total = np.where(brokers, led, 0).sum(axis=1).astype(float)
    shares: Floats = total[:, None] * (size / max(float(size.sum()), 1e-300))
    return shares


class _Spread:
    """Distributes the replicas of T topics down the rack tree, all topics at once.

    The same rules as for a resource, see :mod:`rehome.planning.model.load_bands`.

    :ivar ends: least and most replicas per level: (T, nodes) that each node can hold.
    """

    def __init__(
        self,
        layout: Layout,
        tree: RackTree,
        partitions: Mask,
        brokers: Mask,
        row: Ints,
        topics: int,
    ) -> None:
        self._tree, self._brokers = tree, brokers
        shape = topics + 1, len(brokers)
        self._load = _counts(row, layout.origin, shape)[:topics].astype(float)
        fixed = np.flatnonzero(~partitions)
        stays = _counts(row[fixed], layout.origin[fixed], shape)[:topics].astype(float)
        movable = np.flatnonzero(partitions & (row < topics))
        width = tree.max_replicas + 1
        number = row[movable] * width + replica_counts(layout.origin[movable])
        of_count = np.bincount(number, minlength=topics * width).reshape(topics, width)
        self.ends = self._limits(layout.arrays, of_count.astype(float), stays)

    def _limits(
        self, arrays: ClusterArrays, of_count: Floats, stays: Floats
    ) -> tuple[list[Floats], list[Floats]]:
        tree, brokers = self._tree, self._brokers
        kept = np.where(brokers, stays, self._load)
        least, most = [], []
        for level in range(tree.height + 1):
            out_of_scope, floor = (self._by_node(of, level) for of in (stays, kept))
            least.append(np.maximum(out_of_scope + _dot(of_count, tree.least[level]), floor))
            most.append(out_of_scope + _dot(of_count, tree.most[level]))
        least[-1] = np.where(brokers, least[-1], self._load)
        limit = np.where(brokers & ~arrays.brokers.takes, self._load, np.inf)
        limit = np.where(brokers, limit, self._load)
        most[-1] = np.maximum(np.minimum(most[-1], limit), least[-1])
        for level in range(tree.height - 1, -1, -1):
            below = [_summed(of[level + 1], tree.parent[level + 1]) for of in (least, most)]
            least[level] = np.maximum(least[level], below[0])
            most[level] = np.maximum(np.minimum(most[level], below[1]), least[level])
        return least, most

    def _by_node(self, of_brokers: Floats, level: int) -> Floats:
        if level == self._tree.height:
            return of_brokers
        return _summed(of_brokers, self._tree.node[level])

    def shares(self, capacity: Floats) -> tuple[Floats, Floats]:
        """(T, B) share of each broker, as close to its fair share as possible; and the fair
        share.
        """
        tree, (least, most) = self._tree, self.ends
        fixed = np.where(self._brokers, 0.0, self._load)
        total = self._load.sum(axis=1)
        fair = fixed + _parts(total - fixed.sum(axis=1), capacity)
        share = total[:, None]
        for level in range(1, tree.height + 1):
            nodes = len(tree.capacity[level])
            weights = np.bincount(tree.node[level], capacity, nodes).astype(float)
            stays, below = self._by_node(fixed, level), np.zeros((len(total), nodes))
            for parent, children in enumerate(tree.children[level - 1]):
                low, high = least[level][:, children], most[level][:, children]
                below[:, children] = _water_fill(
                    share[:, parent], stays[:, children], weights[children], low, high
                )
            share = below
        return share, fair


def _dot(of_count: Floats, per_count: Ints) -> Floats:
    """(T, nodes) sums of whole numbers, exact in any order of adding."""
    total = np.zeros((len(of_count), per_count.shape[1]))
    for count in np.flatnonzero(of_count.any(axis=0)).tolist():
        total += of_count[:, [count]] * per_count[count]
    return total


def _summed(of: Floats, parent: Ints) -> Floats:
    """(T, nodes) sums over the columns with the same parent."""
    order = np.argsort(parent, kind="stable")
    starts = np.flatnonzero(np.diff(parent[order], prepend=-1))
    total = np.zeros((len(of), int(parent.max()) + 1))
    total[:, parent[order][starts]] = np.add.reduceat(of[:, order], starts, axis=1)
    return total


def _parts(total: Floats, weight: Floats) -> Floats:
    """(T, n) the totals handed out by weight."""
    parts: Floats = total[:, None] * (weight / max(float(weight.sum()), 1e-300))
    return parts


def _water_fill(total: Floats, base: Floats, weight: Floats, low: Floats, high: Floats) -> Floats:
    """Water-filling: hand (T,) totals out as ``clip(base + level · weight, low, high)``, with one
    level for each topic.
    """
    poured = base + _parts(total - base.sum(axis=1), weight)
    off = np.flatnonzero(((poured < low) | (poured > high)).any(axis=1))
    if not len(off):
        return poured
    total, base, low, high = total[off], base[off], low[off], high[off]
    slack = np.where(weight > 0, np.maximum(high - base, 0) / np.maximum(weight, 1e-300), 0.0)
    bottom, top = np.zeros(len(off)), slack.max(axis=1) + 1
    for _ in range(SHARE_PASSES):
        level = (bottom + top) / 2
        short = np.clip(base + level[:, None] * weight, low, high).sum(axis=1) < total
        bottom, top = np.where(short, level, bottom), np.where(short, top, level)
    poured[off] = np.clip(base + top[:, None] * weight, low, high)
    return poured
