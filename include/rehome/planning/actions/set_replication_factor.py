"""The action set_replication_factor: more or fewer replicas of each partition."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import combinations
from math import comb

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.plan.causes.move_cause import CauseCode
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.actions.placement_costs import asked_bound, least_costs, left_out
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.limits.destinations import refuse_apart
from rehome.planning.limits.limit_checks import refuse_impossible
from rehome.planning.limits.set_trees import rack_tree
from rehome.planning.model.arrays import ClusterArrays, in_sync_of
from rehome.planning.model.in_sync import in_sync
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import (
    check_idle,
    check_replication_factor,
    partitions_in_scope,
    rack_paths,
)
from rehome.planning.placement.movable import notes_of, with_source
from rehome.planning.placement.one_more import Opening, Openings
from rehome.planning.placement.rack_spread import Free, NoPlaceError, Preference, choose
from rehome.planning.placement.replica_sets import Fullness, Placer, replica_overhead
from rehome.planning.placement.ring import Ring
from rehome.planning.placement.within_budget import affordable
from rehome.planning.rebalance.budget_cut import budget_of
from rehome.planning.result.lower_bounds import placement_bound
from rehome.planning.result.outcome import Outcome, all_alike, largest_first

_SETS_PER_BATCH = 500_000
"""Candidate replica sets that are checked against the spread rule in one batch."""

_OUTSIDE = 2**56
"""Of a replica outside of its broker set: it counts more than any spread over racks."""

_PROGRESS_PER_BATCH = 256
"""Batch size, relative to progress: after n partitions, the next n / 256 are decided with the same
loads.
"""


def plan_replication_factor(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The action set_replication_factor: every partition in scope gets the requested number of
    replicas.
    """
    replicas = int(request.replication_factor or 0)
    hosts = arrays.brokers.live
    scope = partitions_in_scope(arrays, request)
    has = arrays.replication_factor
    partitions = np.flatnonzero(scope & (has != replicas))
    target_counts = np.full(len(scope), replicas)
    check_idle(arrays, partitions)
    partitions, lost = with_source(arrays, partitions)
    partitions, thin = _with_enough_online(arrays, partitions, replicas)
    check_replication_factor(arrays, partitions, target_counts, int(hosts.sum()), "live brokers")
    grows = partitions[has[partitions] < replicas]
    refuse_apart(arrays, request, hosts, grows)
    if len(grows):
        refuse_impossible(arrays, hosts, grows, target_counts)
    tree = rack_tree(
        arrays,
        rack_paths(arrays.brokers, ignore_racks=request.ignore_racks),
        hosts,
        max(replicas, arrays.rows.shape[1]),
    )
    capacity = capacities(arrays, hosts, request.weights)
    shrunk, grown = partitions[has[partitions] > replicas], partitions[has[partitions] < replicas]
    paid = affordable(
        budget_of(request),
        grown,
        partial(least_costs, arrays, tree, grown, target_counts),
        lambda parts: np.lexsort((arrays.size_bytes[grown], parts, in_sync_of(arrays)[grown])),
    )
    layout = Layout(arrays, width=replicas)
    uneven = _shrink(layout, tree, capacity, shrunk, replicas)
    placer = _RingPlacer(layout, tree, capacity, request.tolerance, request.seed)
    placer.prepare(paid, replicas)
    for p in largest_first(layout, paid):
        placer.complete(p, replicas)
    settle_leaders(layout)

    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=placement_bound(layout, tree, paid),
        asked_bound_bytes=asked_bound(arrays, tree, grown, target_counts, paid),
        reason=MoveReason.REPLICATION_FACTOR,
        causes=all_alike(CauseCode.REPLICATION_FACTOR),
        infeasible=(
            *lost,
            *thin,
            *notes_of(arrays, uneven, Obstacle.IN_SYNC_FIRST),
            *left_out(
                Subject(SubjectKind.REPLICATION_FACTOR, str(replicas)), len(grown) - len(paid)
            ),
        ),
    )


def _with_enough_online(
    arrays: ClusterArrays, partitions: Ints, replicas: int
) -> tuple[Ints, tuple[Infeasible, ...]]:
    """The partitions that can be changed, and notes on the others: lowering them would leave an
    offline replica, because too few are online.
    """
    if arrays.offline is None:
        return partitions, ()
    online = ((arrays.rows != NONE) & ~arrays.offline)[partitions].sum(axis=1)
    enough = (online >= replicas) | (arrays.replication_factor[partitions] < replicas)
    return partitions[enough], notes_of(arrays, partitions[~enough], Obstacle.TOO_FEW_ONLINE)


def _shrink(
    layout: Layout, tree: RackTree, capacity: Floats, partitions: Ints, replicas: int
) -> Ints:
    """Lower partitions to a number of replicas, as evenly spread as those they have allow.

    Priorities: replicas out of sync are removed first, of these the offline ones; then those
    outside of their broker set; then the spread counts; then the preferred leader stays; then the
    fullest brokers are relieved, by the largest partitions first.

    :param partitions: with more replicas than that; ``capacity``: (B,) relative size of brokers.
    :returns: partitions that are spread less evenly than possible because their replicas in sync
        stay.
    """
    uneven = []
    has = (layout.rows[partitions] != NONE).sum(axis=1)
    for count in np.unique(has).tolist():
        mine = partitions[has == count]
        mine = mine[np.argsort(-layout.size[mine], kind="stable")]
        uneven.append(_Shrinker(layout, tree, capacity, count, replicas).run(mine))
        layout.refresh()
    return np.sort(np.concatenate([np.zeros(0, np.int64), *uneven]))


class _Shrinker:
    """Lowers partitions that all have the same number of replicas.

    :ivar kept: (C, replicas) positions that stay: all combinations.
    """

    def __init__(
        self, layout: Layout, tree: RackTree, capacity: Floats, count: int, replicas: int
    ) -> None:
        self._layout, self._tree, self._count = layout, tree, count
        gone = combinations(range(count), count - replicas)
        self._kept = np.array(
            [[position for position in range(count) if position not in some] for some in gone],
            np.int64,
        ).reshape(comb(count, replicas), replicas)
        self._capacity = np.maximum(capacity * tree.hosts, 1e-9)
        self._weight = layout.size + replica_overhead(layout)
        self._load = (layout.load + layout.count * replica_overhead(layout)).astype(float)

    def run(self, partitions: Ints) -> Ints:
        """Choose for these partitions, in this order; see :func:`_shrink`."""
        chunk = max(1, _SETS_PER_BATCH // len(self._kept))
        uneven = [np.zeros(0, np.int64)]
        for start in range(0, len(partitions), chunk):
            some = partitions[start : start + chunk]
            rows = self._layout.rows[some][:, : self._count]
            allowed, worse = self._allowed_choices(some, rows)
            self._choose(some, rows, allowed, start)
            uneven.append(some[worse])
        return np.concatenate(uneven)

    def _allowed_choices(self, partitions: Ints, rows: Rows) -> tuple[Mask, Mask]:
        """(n, C) choices that keep most replicas in sync, of these most that are online, of these
        the fewest outside of their set, of these the most even, of these those that keep the
        preferred leader; (n,) whether another choice would be more even.
        """
        arrays = self._layout.arrays
        worth = in_sync(arrays, partitions, rows) * (self._count + 1)
        if arrays.offline is not None:
            worth = worth + ~arrays.offline[partitions][:, : self._count]
        kept = worth[:, self._kept].sum(axis=2)
        safest = kept == kept.max(axis=1, keepdims=True)
        sets = rows[:, self._kept].reshape(-1, self._kept.shape[1])
        each = np.repeat(partitions, len(self._kept))
        uneven = self._tree.outside_of(each, sets) * _OUTSIDE + self._tree.unevenness_of(each, sets)
        uneven = uneven.reshape(len(rows), -1)
        least = np.where(safest, uneven, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        best = safest & (uneven == least)
        led = best & (self._kept == 0).any(axis=1)
        allowed: Mask = np.where(led.any(axis=1, keepdims=True), led, best)
        return allowed, least[:, 0] > uneven.min(axis=1)

    def _choose(self, partitions: Ints, rows: Rows, allowed: Mask, done: int) -> None:
        """Keep the replicas on the emptiest brokers, a batch of partitions at a time."""
        start = 0
        while start < len(partitions):
            together = max(1, len(self._load) // 4, (done + start) // _PROGRESS_PER_BATCH)
            part = slice(start, start + together)
            full = (self._load / self._capacity)[rows[part]]
            chosen = np.zeros(allowed[part].shape)
            for positions in self._kept.T:
                chosen += full[:, positions]
            choice = np.where(allowed[part], chosen, np.inf).argmin(axis=1)
            self._write(partitions[part], rows[part], self._kept[choice])
            start += together

    def _write(self, partitions: Ints, rows: Rows, kept: Ints) -> None:
        stays = np.take_along_axis(rows, kept, axis=1)
        now = np.full((len(rows), self._layout.rows.shape[1]), NONE, np.int32)
        now[:, : stays.shape[1]] = stays
        self._layout.rows[partitions] = now
        weight = self._weight[partitions].astype(float)
        for column, sign in (*((column, -1) for column in rows.T), *((c, 1) for c in stays.T)):
            self._load += sign * np.bincount(column, weight, len(self._load))


class _RingPlacer(Placer):
    """KIP-879's rings: completes replica sets by one per topic. The ring starts where the topic's
    last partition left it and continues from partition to partition. If a partition is not evenly
    spread, or the next broker has no disk space, the spread rule decides first and the ring breaks
    ties. docs/decisions/003-rings-and-load.md says why rings skip branches that are too full.

    :param tree: with brokers in the order of their ids.
    :param tolerance: how much fuller than its siblings a branch may be without being skipped.
    :param seed: start of the pointers that no existing replica determines.
    """

    def __init__(
        self, layout: Layout, tree: RackTree, capacity: Floats, tolerance: float, seed: int
    ) -> None:
        super().__init__(layout, tree, capacity)
        self._seed = seed
        self._rings: dict[int, Ring] = {}
        # A loop over single partitions reads lists and memory faster than arrays.
        is_even = tree.violations_of(np.arange(len(layout.origin)), layout.origin) == 0
        self._even: list[bool] = is_even.tolist()
        self._roomy = _FreeInTurn(layout, tree.hosts & layout.arrays.brokers.takes)
        self._turn = _InTurn(self.fullness, tolerance)
        self._topic = layout.arrays.topic_of.data
        self._openings: dict[int, Opening | None] = {}

    def prepare(self, partitions: Ints, replicas: int) -> None:
        """Find out where one more replica of each of these partitions may go, if that gives it its
        number of them.
        """
        rows = self._layout.origin
        ordered = np.sort(rows, axis=1)
        differ = ((ordered[:, 1:] != ordered[:, :-1]) | (ordered[:, 1:] == NONE)).all(axis=1)
        differ &= (rows != NONE).sum(axis=1) == replicas - 1
        for tree, mine in self._tree.parts(np.isin(np.arange(len(rows)), partitions)):
            mine &= differ & (tree.hosts[rows] | (rows == NONE)).all(axis=1)
            some = np.flatnonzero(mine)
            each = Openings(tree).of_each(rows[some, : replicas - 1])
            self._openings.update(zip(some.tolist(), each, strict=True))

    def complete(self, partition: int, replicas: int) -> None:
        """The same. Nearly all partitions keep their replicas: then the rings ask only for brokers
        whose turn it is.
        """
        is_new = []
        if self._layout.space_is_known(partition):
            self._roomy.size, origin = self._size[partition], self._holders(partition)
            is_new = self._beside(partition, self._tree, origin, replicas, self._roomy)
        if not is_new:
            super().complete(partition, replicas)
            return
        weight = self.weight(partition)
        for position, broker in enumerate(is_new, start=len(origin)):
            self._layout.add_copy(partition, position, broker)
            self.fullness.add(broker, weight)

    def _choose(
        self, partition: int, tree: RackTree, keep: list[int], replicas: int, free: Free
    ) -> list[int]:
        ring, origin = self._ring(self._topic[partition]), self._holders(partition)
        if set(keep) == set(origin):
            is_new = self._beside(partition, tree, origin, replicas, free)
            if is_new:
                return origin + is_new
        self._turn.set_partition(ring, self.weight(partition))
        chosen = choose(tree, keep, replicas, free, self._turn)
        is_new = ring.visit(set(chosen) - set(origin))
        return [broker for broker in chosen if broker not in is_new] + is_new

    def _beside(
        self, partition: int, tree: RackTree, origin: list[int], replicas: int, free: Free
    ) -> list[int]:
        """New replicas in the order of the ring, beside all that there are; none where the spread
        rule does not let all of these stay, or brokers are not free.
        """
        ring, turn = self._ring(self._topic[partition]), self._turn
        turn.set_partition(ring, self.weight(partition))
        opening = self._openings.get(partition)
        if opening is not None and tree is self._tree.of(partition):
            broker = ring.hand_out_one(opening, origin, free, turn.fuller)
            if broker != NONE:
                return [broker]
        if self._even[partition]:
            with suppress(NoPlaceError):
                return ring.hand_out(tree, origin, replicas - len(origin), free, turn.fuller)
        return []

    def _holders(self, partition: int) -> list[int]:
        return [broker for broker in self._layout.origin[partition].tolist() if broker != NONE]

    def _ring(self, topic: int) -> Ring:
        ring = self._rings.get(topic)
        if ring is None:
            arrays = self._layout.arrays
            first, end = np.searchsorted(arrays.topic_of, [topic, topic + 1])
            tree = self._tree.of(int(first))
            ring = Ring(tree, np.random.default_rng([self._seed, topic]))
            ring.replay(arrays.rows[first:end])
            self._rings[topic] = ring
        return ring


class _FreeInTurn:
    """Which brokers may get a new copy of a partition, found out one by one.

    :param may: (B,) brokers that may get new copies.
    :ivar size: of the partition.
    """

    def __init__(self, layout: Layout, may: Mask) -> None:
        self._layout, self.size = layout, 0
        self._may: list[bool] = may.tolist()

    def __getitem__(self, broker: int, /) -> bool:
        return self._may[broker] and self._layout.has_space(broker, self.size)


class _InTurn(Preference):
    """The ring's order, but children that are too full come last. A child is too full if it is
    fuller than a sibling by more than the tolerance and by more than one replica of this partition.

    :ivar fuller: level, node, child → whether a child of the node is too full.
    """

    def __init__(self, fullness: Fullness, tolerance: float) -> None:
        self._fullness, self._times = fullness, 1 + tolerance

    def set_partition(self, ring: Ring, weight: int) -> None:
        """Set the partition that the next calls are for, by its ring and weight."""
        self._ring, self._weight = ring, weight
        self.fuller = partial(self._fullness.is_fuller, times=self._times, without=weight)

    def first(self, level: int, node: int, children: Ints) -> int:
        """Index of the first child in turn that is not too full; else, of the first in turn."""
        among: list[int] = children.tolist()
        first = NONE
        for child in self._ring.in_turn(level, node):
            if child in among:
                if not self.fuller(level, node, child):
                    return among.index(child)
                first = child if first == NONE else first
        return among.index(first)

    def _fuller(self, level: int, node: int, children: Ints) -> Mask:
        limit = self._fullness.of_one(level, node) * self._times
        fuller: Mask = self._fullness.of(level + 1, children, without=self._weight) > limit
        return fuller

    def rank(self, level: int, node: int, children: Ints, short: Mask) -> Floats:
        steps = self._ring.rank(level, node, children, short)
        late = self._fuller(level, node, children)
        return np.where(late, steps + len(steps) + steps.max(initial=0), steps)
