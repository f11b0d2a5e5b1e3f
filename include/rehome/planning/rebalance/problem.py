"""Set up a rebalance problem: which brokers give and receive, bands, tolerances."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import (
    ReassignmentRequest,
    SpreadOf,
    evens_topics,
    spread_tolerance,
)
from rehome.domain.resources import DEFAULT_TOLERANCES, LOOSE, Resource, placed_resources
from rehome.errors import InvalidRequestError
from rehome.planning.effort.optional_parts import parts_of
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.limits.apply_limits import outside_sets
from rehome.planning.limits.set_trees import fair_capacity
from rehome.planning.model.arrays import ClusterArrays, broker_sums, is_new
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import LoadBands, placed_targets
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import is_known, placed_weights
from rehome.planning.model.topic_bands import TopicBands, band, no_worse, topic_bands
from rehome.planning.placement.replica_sets import Placer
from rehome.planning.search.broker_shed import REPLICAS_ROW
from rehome.planning.search.fill import FILL, one_of_each
from rehome.planning.search.state import Problem, Search

_LEAST_SHARE = 1e-9
"""Of a broker: one that is to hold nothing gives first."""


def problem_of(
    layout: Layout,
    tree: RackTree,
    request: ReassignmentRequest,
    *,
    partitions: Mask,
    brokers: Mask,
    capacity: Floats,
    fair: Floats | None = None,
    whole: bool = True,
) -> Problem:
    """Set up the problem.

    :param partitions: (P,) that may move.
    :param brokers: (B,) that take part; those of them that the tree does not let host end empty.
    :param capacity: (B,) relative size of the brokers, or (K, B) per resource.
    :param fair: (K, B) capacity per resource where broker sets limit who can hold what; None =
        ``capacity``.
    :param whole: these are all partitions of the cluster, so that topics can have bands.
    """
    arrays = layout.arrays
    resources = placed_resources(request.tolerances)
    weights = placed_weights(arrays, resources)
    tolerances = tolerances_of(request, arrays)
    shape, by = (len(resources), len(tree.hosts)), capacity if fair is None else fair
    targets = placed_targets(
        layout,
        tree,
        weights=weights,
        partitions=partitions,
        brokers=brokers,
        capacity=np.broadcast_to(by[: len(resources)] if by.ndim > 1 else by, shape) * tree.hosts,
        tolerances=tuple(tolerances[resource] for resource in resources),
        one_sided=request.one_sided,
    )
    spread = topic_bands(
        layout,
        tree,
        partitions=partitions,
        brokers=brokers,
        capacity=(capacity[REPLICAS_ROW] if capacity.ndim > 1 else capacity) * tree.hosts,
        tolerance=spread_tolerance(request) if whole else LOOSE,
        one_sided=request.one_sided,
        leaders_only=request.topic_spread_of is SpreadOf.LEADERS,
    )
    if spread is not None and not spread.leaders_only:
        spread = no_worse(spread, layout.origin, large_too=not evens_topics(request))
    return Problem(
        layout=layout,
        tree=tree,
        targets=targets,
        weights=weights,
        partitions=partitions,
        gives=brokers,
        takes=brokers & tree.hosts & arrays.brokers.takes,
        leaving=brokers & ~tree.hosts,
        overhead_bytes=float(request.move_overhead_bytes),
        parts=parts_of(request.effort),
        spread=spread,
    )


def only_into(problem: Problem, receivers: Mask, request: ReassignmentRequest) -> Problem:
    """The same problem with the named brokers as the only receivers; the others are donors."""
    layout, tolerances = problem.layout, tolerances_of(request, problem.layout.arrays)
    donors = problem.gives & ~receivers
    targets = with_donors(
        problem.targets,
        np.stack([broker_sums(layout.rows, weight, len(receivers)) for weight in problem.weights]),
        donors,
        np.array([tolerances[resource] for resource in placed_resources(request.tolerances)]),
    )
    spread = problem.spread
    if spread is not None and not spread.leaders_only and evens_topics(request):
        spread = _topics_with_donors(spread, layout.rows, donors)
    return replace(problem, targets=targets, takes=problem.takes & receivers, spread=spread)


def placed_capacity(
    arrays: ClusterArrays, tree: RackTree, capacity: Floats, request: ReassignmentRequest
) -> Floats | None:
    """(K, B) capacity per resource if there are broker sets; else None."""
    if len(tree.trees) == 1:
        return None
    factor, weights = (
        arrays.replication_factor,
        placed_weights(arrays, placed_resources(request.tolerances)),
    )
    return np.stack([fair_capacity(arrays, tree, capacity, w * factor) for w in weights])


def tolerances_of(request: ReassignmentRequest, arrays: ClusterArrays) -> dict[Resource, float]:
    """The tolerance of each resource; infinite if it has none, or its load is not known."""
    return {
        resource: value if is_known(arrays, resource) else LOOSE
        for resource, value in asked_tolerances(request).items()
    }


def asked_tolerances(request: ReassignmentRequest) -> dict[Resource, float]:
    """The requested tolerance of each resource; infinite if it has none."""
    tolerances = {**DEFAULT_TOLERANCES, Resource.BYTES: request.tolerance}
    for name, value in request.tolerances.items():
        if name != TOPIC_SPREAD:
            tolerances[Resource(name)] = LOOSE if value is None else value
    return tolerances


def inside_sets(problem: Problem, capacity: Floats) -> tuple[Problem, Rows]:
    """The problem after replicas were moved into their broker sets, and (P, R) the rows then. A
    replica stays if no broker of its set can take it.
    """
    layout = problem.layout
    start = layout.rows.copy() if move_into_sets(problem, capacity) else layout.origin
    stays = outside_sets(layout.arrays, layout.rows).any(axis=1)
    return replace(problem, partitions=problem.partitions & ~stays), start


def move_into_sets(problem: Problem, capacity: Floats) -> bool:
    """Move replicas that lie outside their broker set onto its brokers, largest partitions first.
    Returns whether there were any. Replicas that do not fit there stay, and are reported at the
    end. An expansion moves none.
    """
    layout, hosts = problem.layout, problem.tree.hosts & problem.layout.arrays.brokers.takes
    outside = outside_sets(layout.arrays, layout.rows) & problem.partitions[:, None]
    if not outside.any() or (problem.takes != (problem.gives & hosts)).any():
        return False
    # A partition stays as it is where a broker keeps a replica that lies outside.
    outside &= ~(outside & ~problem.gives[layout.rows]).any(axis=1, keepdims=True)
    partitions = np.flatnonzero(outside.any(axis=1))
    if layout.rows.size > REBALANCE.middle:
        _MoveIn(problem).run(np.flatnonzero(outside))
        layout.refresh()
        uneven = problem.tree.violations_of(partitions, layout.rows[partitions]) > 0
        partitions = partitions[uneven]
    _place_each(problem, capacity, partitions)
    return True


def _place_each(problem: Problem, capacity: Floats, partitions: Ints) -> None:
    """Complete each of these partitions on the brokers of its set, one after the other. Where only
    some brokers take part, one stays as it is if others lose replicas, or its racks get worse.
    """
    layout, everyone = problem.layout, problem.gives.all()
    placer = Placer(layout, problem.tree, capacity, takes=problem.takes)
    for partition in partitions[np.argsort(-layout.size[partitions], kind="stable")].tolist():
        before = layout.rows[partition].copy()
        with suppress(InvalidRequestError):
            placer.complete(partition, int((before != NONE).sum()))
        if everyone:
            continue
        rows = np.stack([before, layout.rows[partition]])
        left = before[is_new(rows[:1], rows[1:])[0]]
        was, now = problem.tree.unevenness_of(np.repeat(partition, 2), rows).tolist()
        if now > was or not problem.gives[left].all():
            placer.put_back(partition, before)


class _MoveIn:
    """Moves many replicas into their broker sets, a few per broker and round: the largest replicas
    go to the brokers with the largest deficit.
    """

    def __init__(self, problem: Problem) -> None:
        self._search, self._lacks = Search(problem), problem.targets.share
        self._tree, self._takes = problem.tree, problem.takes

    def run(self, replicas: Ints) -> None:
        """Place them; those without a valid broker stay where they are."""
        search, every = self._search, np.ones(len(self._search.rows), bool)
        replicas = replicas[np.argsort(-self._size(replicas), kind="stable")]
        search.lift(replicas)  # all: brokers are full of replicas that will leave them as well
        for within, by_branch in ((True, True), (True, True), (False, True), (False, False)):
            left = [replicas[:0]]
            for tree, mine in self._tree.parts(every):
                brokers = np.flatnonzero(tree.hosts & self._takes)
                some = replicas[mine[replicas // search.width]]
                branch = _forced_branches(tree, search.width) * by_branch
                of_slot = branch[search.holders(some)]
                left += [
                    self._pass(some[of_slot == n], brokers[branch[brokers] == n], within=within)
                    for n in np.unique(of_slot).tolist()
                ]
            replicas = np.concatenate(left)
        search.lift(replicas, +1)

    def _pass(self, replicas: Ints, brokers: Ints, *, within: bool) -> Ints:
        """Try each replica once, largest first. Returns those without a broker.

        :param brokers: the brokers of their set.
        :param within: keep brokers and topics in their bands.
        """
        if not len(brokers):
            return replicas
        left, start = [replicas[:0]], 0
        while start < len(replicas):
            turns = self._turns(brokers, float(self._size(replicas[start : start + 1])[0]))
            some = replicas[start : start + len(turns)]
            start += len(some)
            left.append(some[~self._match(some, turns[: len(some)], within=within)])
        return np.concatenate(left)

    def _size(self, replicas: Ints) -> Floats:
        size: Floats = self._search.weights[0].take(replicas // self._search.width)
        return size

    def _turns(self, brokers: Ints, size: float) -> Ints:
        """Brokers that lack at least a replica of this size, largest deficit first, repeated for
        those that lack many. If there are none: all brokers, smallest surplus first.
        """
        search = self._search
        load, share = search.load[0, brokers], self._lacks[0, brokers]
        lack = share - load
        order = np.argsort(-lack / np.maximum(share, 1.0), kind="stable")
        needy = order[lack[order] >= size]
        if len(needy):
            turns = np.minimum(lack[needy] // max(size, 1.0), FILL.turns)
            order = np.concatenate([needy[turns > n] for n in range(FILL.turns)])
        chosen: Ints = brokers[order]
        return chosen

    def _match(self, replicas: Ints, brokers: Ints, *, within: bool) -> Mask:
        search = self._search
        partitions = replicas // search.width
        placed = search.valid(replicas, brokers)
        if within:
            arrives = [
                np.bincount(brokers, w, len(search.load[0])) for w in search.weight(replicas)
            ]
            placed &= (search.load + np.stack(arrives) <= search.high).take(brokers, 1).all(axis=0)
        first = np.zeros(len(replicas), bool)
        first[np.unique(partitions, return_index=True)[1]] = True
        placed &= first
        if within and search.topic_counts:
            placed &= one_of_each(search, partitions, brokers, placed)
        placed = search.fit_together(replicas, brokers, placed)
        search.put(replicas[placed], brokers[placed], few=False)
        return placed


def _forced_branches(tree: RackTree, replicas: int) -> Ints:
    """(B,) the branch of each broker, if a partition with that many replicas must have one in each
    branch; 0 if it has a choice.
    """
    branches = [int((capacity > 0).sum()) for capacity in tree.capacity[:-1]]
    level = next((n for n, count in enumerate(branches) if count > 1), 0)
    forced: Ints = tree.node[level] * (branches[level] <= replicas)
    return forced


def with_donors(targets: LoadBands, load: Floats, donors: Mask, tolerances: Floats) -> LoadBands:
    """The bands of an expansion, from those of a rebalance of the same brokers.

    What the other brokers lack of their shares comes from the fullest donors: all of them above a
    level, relative to their shares, end there. A donor may end between its share less the tolerance
    (or what it holds, if that is less) and this level and the tolerance. The upper end is the level
    if the others end at their least, so planning again changes nothing.

    :param load: (K, B) before.
    :param donors: (B,) brokers that take part, and give only.
    :param tolerances: (K,) allowed deviation from the share; where a resource has none, a donor may
        hold what it holds.
    """
    share, low = targets.share.copy(), targets.low.copy()
    banded = np.isfinite(targets.high).all(axis=1) & np.isfinite(tolerances)
    stays = np.where(donors & ~banded[:, None], load, 0)
    high = np.maximum(targets.high, stays)
    for k in np.flatnonzero(banded).tolist():
        for number in np.unique(targets.domain[donors]).tolist():
            here = targets.domain == number
            gives, takes = np.flatnonzero(here & donors), np.flatnonzero(here & ~donors)
            donor_load, fair = load[k, gives], targets.share[k, gives]
            end, most = (
                fair * level(donor_load, fair, np.maximum(of[k, takes] - load[k, takes], 0).sum())
                for of in (targets.share, targets.low)
            )
            high[k, gives] = np.maximum(high[k, gives], np.ceil(most * (1 + tolerances[k])))
            low[k, gives] = np.minimum(low[k, gives], donor_load)
            share[k, gives] = np.clip(
                np.rint(np.minimum(donor_load, end)), low[k, gives], high[k, gives]
            )
    return replace(targets, share=share, low=low, high=high)


def _topics_with_donors(topics: TopicBands, rows: Rows, donors: Mask) -> TopicBands:
    """The same for the bands of topics, whose replicas are counted under (P, R) rows."""
    counts, count = topics.counts(rows), len(topics.topics)
    low, high = topics.low.copy(), topics.high.copy()
    lacks = np.maximum(low - counts, 0)[:count, ~donors].sum(axis=1)
    mine, fair = counts[:count, donors].astype(float), topics.fair[:, donors]
    ends = fair * level(mine, fair, lacks)[:, None]  # very large where others have no share
    most = band(np.minimum(ends, counts[:count].sum(axis=1, keepdims=True)), topics.tolerance)[1]
    high[:count, donors] = np.maximum(high[:count, donors], most)
    low[:, donors] = np.minimum(low[:, donors], counts[:, donors])
    return replace(topics, low=low, high=high)


def level(load: Floats, share: Floats, given: Floats | float) -> Floats:
    """(…) the level, relative to shares (…, n), to which the fullest donors come down if they give
    that much (…) together: at least 1, because no donor gives more than down to its share.
    """
    share = np.maximum(share, _LEAST_SHARE)
    fullest = np.argsort(-load / share, axis=-1, kind="stable")
    load, share = (np.take_along_axis(side, fullest, axis=-1) for side in (load, share))
    # If the n fullest ended at one level; highest where exactly those above it give.
    levels = (np.cumsum(load, axis=-1) - np.expand_dims(given, -1)) / np.cumsum(share, axis=-1)
    highest: Floats = levels.max(axis=-1, initial=1.0)
    return highest
