"""Bands of topics: how many replicas and leaders of each topic a broker should hold.

Partitions of one topic tend to be busy at the same time, which averages in the history do not show.
So each topic is spread as well as the cluster: by capacity, clipped to what the rack tree and the
fixed replicas allow, within one replica or the tolerance, whichever is more. Of topics with fewer
replicas than brokers, no broker is to hold more than a few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rehome.domain.array_types import NONE, CellCounts, Floats, Ints, Mask, Rows
from rehome.domain.request.request import MAY_SHARE_A_BROKER, MOST_TOPIC_CELLS
from rehome.planning.model.arrays import ClusterArrays, replica_counts
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import parts_by_weight, water_fill_each
from rehome.planning.model.rack_tree import RackTree

ANY = 2**30
"""No limit."""

ROUNDING = 1e-6
"""Rounding errors of shares, in replicas."""

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
    low: CellCounts
    high: CellCounts
    led_low: CellCounts
    led_high: CellCounts
    fair: Floats
    tolerance: float
    few: Mask
    leaders_only: bool = False
    even: TopicBands | None = None

    def counts(self, rows: Rows) -> CellCounts:
        """(T + 1, B) replicas of each topic on each broker under (P, R) rows."""
        return _counts(self.row, rows, self.low.shape)

    def leaders(self, rows: Rows) -> CellCounts:
        """(T + 1, B) leaders of each topic on each broker."""
        return _counts(self.row, rows[:, :1], self.low.shape)

    def with_led_before(self, origin: Rows, receivers: Mask) -> TopicBands:
        """The same, but brokers may keep the leaders that they had, and give down to their share.

        :param origin: (P, R) rows before; ``receivers``: (B,) that are to get their share.
        """
        led = self.leaders(origin)
        low = np.where(receivers, self.led_low, np.minimum(self.led_low, led))
        high = np.where(receivers, self.led_high, np.maximum(self.led_high, led))
        return replace(self, led_low=low, led_high=high)

    def outside(self, rows: Rows) -> int:
        """Replicas that brokers hold above their bands and lack below them."""
        return total_beyond(self.counts(rows), self.low, self.high)


def beyond(counts: CellCounts, low: CellCounts, high: CellCounts) -> CellCounts:
    """How far counts are outside of their bands."""
    outside: CellCounts = np.subtract(counts, high)
    np.maximum(outside, low - counts, out=outside)
    return np.maximum(outside, 0, out=outside)


def total_beyond(counts: CellCounts, low: CellCounts, high: CellCounts) -> int:
    """The sum of it."""
    return int(cells_beyond(counts, low, high)[1].sum())


def cells_beyond(counts: CellCounts, low: CellCounts, high: CellCounts) -> tuple[Ints, CellCounts]:
    """The cells that are outside of their bands, ascending, and how far: computed in parts that fit
    the processor's cache.
    """
    sides, cells, distances = [side.reshape(-1) for side in (counts, low, high)], [], []
    for start in range(0, counts.size, CELLS_AT_ONCE):
        distance = beyond(*(side[start : start + CELLS_AT_ONCE] for side in sides))
        some = np.flatnonzero(distance)
        cells.append(some + start)
        distances.append(distance[some])
    return np.concatenate(cells), np.concatenate(distances)


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
    """The bands of all topics, see :func:`_topics_with_bands`.

    :param partitions: (P,) that may move; ``brokers``: (B,) that give and take replicas.
    :param capacity: (B,) relative size of the brokers; 0 where one is to be emptied.
    :param leaders_only: whether replicas may be spread in any way.
    :returns: None where there is no such topic, or the tolerance is infinite.
    """
    arrays = layout.arrays
    if len(tree.trees) > 1:
        return _join_bands(
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
    topics, few = _topics_with_bands(arrays, partitions, int((tree.hosts & brokers).sum()))
    if leaders_only:
        topics, few = topics[~few], few[~few]
    if np.isinf(tolerance) or not len(topics):
        return None
    row = np.full(len(arrays.topics), len(topics))
    row[topics] = np.arange(len(topics))
    row = row[arrays.topic_of]
    spread = _Spread(layout, tree, partitions, brokers, row, len(topics))
    led = _led_by(brokers, row, layout.origin[:, 0], len(topics))
    size = np.where(brokers, capacity, 0.0)
    low, high, led_low, led_high = (np.empty(spread.shape, np.int32) for _ in range(4))
    fair, gone = np.empty((len(topics), len(brokers))), ~tree.hosts & brokers
    first, kind = spread.kinds(led)
    for some in _topics_at_once((len(first), len(brokers))):
        share, fair_share, least, most = spread.shares(first[some], size)
        lowest, highest = band(share, tolerance)
        np.minimum(lowest, most, out=lowest, casting="unsafe")
        np.maximum(highest, least, out=highest, casting="unsafe")
        led_band = band(parts_by_weight(led[first[some]].astype(float), size), tolerance)
        mine = np.flatnonzero((kind >= some.start) & (kind < some.stop))
        of_mine = kind[mine] - some.start
        fair[mine] = fair_share[of_mine]
        of_kinds = lowest, highest, *led_band
        for side, of_kind in zip((low, high, led_low, led_high), of_kinds, strict=True):
            side[mine] = of_kind[of_mine]
    low[:-1][few], led_low[:-1][few], led_high[:-1][few] = 0, 0, ANY
    high[:, gone], led_high[:, gone] = 0, 0
    for lowest, highest in ((low, high), (led_low, led_high)):
        lowest[:, ~brokers | gone | one_sided] = 0
        highest[:, ~brokers] = ANY
    if leaders_only:
        low[:], high[:] = 0, ANY
    low[-1], high[-1], led_low[-1], led_high[-1] = -ANY, ANY, -ANY, ANY
    return TopicBands(
        topics=topics,
        row=row,
        low=low,
        high=high,
        led_low=led_low,
        led_high=led_high,
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
    wider = np.append(bands.few | large_too, False)
    counts, led = bands.counts(rows), bands.leaders(rows)
    low, high, led_low, led_high = (
        side.copy() for side in (bands.low, bands.high, bands.led_low, bands.led_high)
    )
    for topics in _topics_at_once(counts.shape):
        some = topics if wider[topics].all() else np.flatnonzero(wider[topics]) + topics.start
        most = np.maximum(np.maximum(high[some], counts[some]), MAY_SHARE_A_BROKER)
        high[some] = np.where(high[some] > 0, most, 0)
        low[some] = np.minimum(low[some], counts[some])
        led_low[some] = np.minimum(led_low[some], led[some])
        led_high[some] = np.maximum(led_high[some], led[some])
    return replace(bands, low=low, high=high, led_low=led_low, led_high=led_high, even=bands)


def _join_bands(parts: list[TopicBands | None]) -> TopicBands | None:
    """The bands of topics of several broker sets: no topic is in two of them."""
    bands = [part for part in parts if part is not None]
    if not bands:
        return None
    topics = sum(len(part.topics) for part in bands)
    row = np.full(len(bands[0].row), topics)
    start = 0
    for part in bands:
        mine = part.row < len(part.topics)
        row[mine] = part.row[mine] + start
        start += len(part.topics)

    def stack(name: str) -> CellCounts:
        sides = [getattr(part, name) for part in bands]
        return np.vstack([*(side[:-1] for side in sides), sides[0][-1:]])

    return TopicBands(
        topics=np.concatenate([part.topics for part in bands]),
        row=row,
        low=stack("low"),
        high=stack("high"),
        led_low=stack("led_low"),
        led_high=stack("led_high"),
        fair=np.vstack([part.fair for part in bands]),
        tolerance=bands[0].tolerance,
        few=np.concatenate([part.few for part in bands]),
        leaders_only=bands[0].leaders_only,
    )


def _topics_with_bands(arrays: ClusterArrays, partitions: Mask, brokers: int) -> tuple[Ints, Mask]:
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


def band(share: Floats, tolerance: float) -> tuple[CellCounts, CellCounts]:
    """Least and most replicas within the tolerance of shares, or within one replica."""
    low, high = (np.empty(share.shape, np.int32) for _ in range(2))
    for part, least, most in zip(share, low, high, strict=True):
        slack = np.maximum(1.0, tolerance * part) + ROUNDING
        least[:] = np.maximum(np.ceil(part - slack), 0)
        most[:] = np.floor(part + slack)
    return low, high


def _counts(row: Ints, rows: Rows, shape: tuple[int, ...]) -> CellCounts:
    cells = (row * shape[1])[:, None] + rows
    is_replica = rows != NONE
    replica_cells = cells.reshape(-1) if is_replica.all() else cells[is_replica]
    counts = np.bincount(replica_cells, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.int32)


def _led_by(brokers: Mask, row: Ints, leaders: Rows, topics: int) -> Ints:
    """(T,) how many partitions of each topic are led by these brokers."""
    mine = (leaders != NONE) & brokers[leaders]
    led: Ints = np.bincount(row[mine], minlength=topics + 1)[:-1]
    return led


def _topics_at_once(shape: tuple[int, ...]) -> list[slice]:
    """Slices of (T, B) rows whose cells fit the processor's cache together."""
    rows, count = shape[0], max(CELLS_AT_ONCE // max(shape[1], 1), 1)
    return [slice(start, min(start + count, rows)) for start in range(0, rows, count)]


class _Spread:
    """Distributes the replicas of T topics down the rack tree, some topics at once.

    The same rules as for a resource, see :mod:`rehome.planning.model.load_bands`.

    :ivar shape: T + 1 and B.
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
        self._tree, self._brokers, self._takes = tree, brokers, layout.arrays.brokers.takes
        self.shape = topics + 1, len(brokers)
        self._load = _counts(row, layout.origin, self.shape)
        fixed = np.flatnonzero(~partitions)
        self._stays = _counts(row[fixed], layout.origin[fixed], self.shape)
        movable = np.flatnonzero(partitions & (row < topics))
        width = tree.max_replicas + 1
        number = row[movable] * width + replica_counts(layout.origin[movable])
        of_count = np.bincount(number, minlength=topics * width).reshape(topics, width)
        self._of_count = of_count.astype(float)
        self._free = bool((brokers & self._takes).all() and not self._stays[:-1].any())

    def kinds(self, led: Ints) -> tuple[Ints, Ints]:
        """(n,) the first topic of each kind, and (T,) the kind of each topic: the bands of a kind
        are the same. Where all replicas may go anywhere, they depend on how many there are.

        :param led: (T,) how many partitions of each topic are led.
        """
        if not self._free:
            every = np.arange(len(led))
            return every, every
        numbers = np.column_stack([self._of_count, led])
        _, first, kind = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
        return first, kind.reshape(-1)

    def shares(self, some: Ints, capacity: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """(n, B) share of each broker of some topics, as close to its fair share as possible; the
        fair share; and the least and most replicas that a broker can hold.
        """
        load, stays = self._load[some].astype(float), self._stays[some].astype(float)
        least, most = self._limits(self._of_count[some], load, stays)
        tree = self._tree
        fixed = np.where(self._brokers, 0.0, load)
        total = load.sum(axis=1)
        fair = fixed + parts_by_weight(total - fixed.sum(axis=1), capacity)
        share, fixed_below = total[:, None], self._by_level(fixed)
        for level in range(1, tree.height + 1):
            nodes = len(tree.capacity[level])
            weights = np.bincount(tree.node[level], capacity, nodes).astype(float)
            base, below = fixed_below[level], np.zeros((len(total), nodes))
            for parent, children in enumerate(tree.children[level - 1]):
                low, high = least[level][:, children], most[level][:, children]
                below[:, children] = water_fill_each(
                    share[:, parent], base[:, children], weights[children], low, high
                )
            share = below
        return share, fair, least[-1], most[-1]

    def _limits(
        self, of_count: Floats, load: Floats, stays: Floats
    ) -> tuple[list[Floats], list[Floats]]:
        """Per level, (n, nodes) least and most replicas that each node can hold."""
        tree, brokers = self._tree, self._brokers
        kept = np.where(brokers, stays, load)
        least, most, below = [], [], (self._by_level(of) for of in (stays, kept))
        for level, (out_of_scope, floor) in enumerate(zip(*below, strict=True)):
            least.append(np.maximum(out_of_scope + _dot(of_count, tree.least[level]), floor))
            most.append(out_of_scope + _dot(of_count, tree.most[level]))
        least[-1] = np.where(brokers, least[-1], load)
        limit = np.where(brokers & ~self._takes, load, np.inf)
        limit = np.where(brokers, limit, load)
        most[-1] = np.maximum(np.minimum(most[-1], limit), least[-1])
        for level in range(tree.height - 1, -1, -1):
            under = [_sum_by_parent(of[level + 1], tree.parent[level + 1]) for of in (least, most)]
            least[level] = np.maximum(least[level], under[0])
            most[level] = np.maximum(np.minimum(most[level], under[1]), least[level])
        return least, most

    def _by_level(self, of_brokers: Floats) -> list[Floats]:
        """Per level, (n, nodes) sums of whole numbers over the brokers below each node."""
        sums = [of_brokers]
        for parent in self._tree.parent[:0:-1]:
            sums.append(_sum_by_parent(sums[-1], parent))
        return sums[::-1]


def _dot(of_count: Floats, per_count: Ints) -> Floats:
    """(T, nodes) sums of whole numbers, exact in any order of adding."""
    total = np.zeros((len(of_count), per_count.shape[1]))
    for count in np.flatnonzero(of_count.any(axis=0)).tolist():
        total += of_count[:, [count]] * per_count[count]
    return total


def _sum_by_parent(of: Floats, parent: Ints) -> Floats:
    """(T, nodes) sums over the columns with the same parent."""
    order = np.argsort(parent, kind="stable")
    starts = np.flatnonzero(np.diff(parent[order], prepend=-1))
    total = np.zeros((len(of), int(parent.max()) + 1))
    total[:, parent[order][starts]] = np.add.reduceat(of[:, order], starts, axis=1)
    return total
