"""The outcome of planning an action, and steps that several actions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import Ints, Mask
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.causes.cause_columns import cause_column, cause_column_of, values_at
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.figures import BudgetPoint, LeaderMinimums, TargetPrice, TopicBalance
from rehome.domain.plan.infeasible import Infeasible
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.limits.set_trees import rack_tree
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import rack_paths
from rehome.planning.model.topic_bands import TopicBands
from rehome.planning.placement.replica_sets import Placer
from rehome.planning.result.resource_bands import ResourceBands

MoveCauses = Callable[[Ints], pa.ListArray]
"""(n,) dense partition indexes, ascending → the causes of the moves of each."""


@dataclass(frozen=True)
class WithinBrokers:
    """Copies between log dirs of one broker, by the real sizes of these replicas.

    :param replicas: that stay on their broker and change their log dir.
    :param size_bytes: broker id → bytes copied between its log dirs.
    :param bound_bytes: lower bound for the same balance, over all brokers.
    """

    replicas: int
    size_bytes: Mapping[BrokerId, int]
    bound_bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes copied between log dirs, over all brokers."""
        return sum(self.size_bytes.values())


@dataclass(frozen=True)
class Outcome:
    """A finished layout, and what its plan needs in addition.

    :param asked_bound_bytes: lower bound for plans that do all that was requested; None if no
        budget has cut this one.
    :param causes: dense partition indexes → why these move.
    :param log_dirs: dense partition index → requested log dirs, aligned with its target.
    :param bands: the bands of brokers; None if the action has no tolerances.
    :param prices: computes the price of each target.
    :param curve: computes what smaller budgets reach.
    :param topics: how evenly topics are spread, if they have bands.
    :param within: copies inside brokers, if known replica by replica.
    :param lower_bound_moves: the fewest replicas that any such plan moves; None = not known.
    :param search_cut: whether the search ended because its budget of work was spent.
    :param elections: dense indexes of partitions whose replicas stay as they are and whose
        preferred leader is to be elected.
    """

    layout: Layout
    tree_before: RackTree
    tree_after: RackTree
    lower_bound_bytes: int
    reason: MoveReason
    causes: MoveCauses
    infeasible: tuple[Infeasible, ...] = ()
    log_dirs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    bands: ResourceBands | None = None
    prices: Callable[[], tuple[TargetPrice, ...]] = tuple
    curve: Callable[[], tuple[BudgetPoint, ...]] = tuple
    within: WithinBrokers | None = None
    topics: TopicBalance | None = None
    min_leaders: LeaderMinimums | None = None
    asked_bound_bytes: int | None = None
    elections: tuple[int, ...] = ()
    search_cut: bool = False
    lower_bound_moves: int | None = None

    def changes(self) -> Ints:
        """(n,) partitions that the plan changes: their replicas, log dirs or leader alone."""
        alone = np.array([*self.log_dirs, *self.elections], np.int64)
        partitions: Ints = np.union1d(self.layout.changed_partitions(), alone)
        return partitions


def tree_of(
    arrays: ClusterArrays, hosts: Mask, request: ReassignmentRequest, replicas: int = 0
) -> RackTree:
    """The rack tree of these brokers; the request's seed determines the order of ties."""
    order = np.random.default_rng(request.seed).permutation(len(hosts))
    width = max(replicas, arrays.rows.shape[1])
    paths = rack_paths(arrays.brokers, ignore_racks=request.ignore_racks)
    return rack_tree(arrays, paths, hosts, width, order)


def complete(
    layout: Layout,
    tree: RackTree,
    partitions: Ints,
    replicas: Ints,
    weights: Mapping[BrokerId, float],
    spread_bands: TopicBands | None = None,
) -> None:
    """Give each partition its number of replicas (P,), largest partition first.

    :param weights: of brokers, see ReassignmentRequest.
    :param spread_bands: of topics; None = they may be spread in any way.
    """
    placer = Placer(layout, tree, capacities(layout.arrays, tree.hosts, weights), spread_bands)
    for partition in largest_first(layout, partitions):
        placer.complete(partition, int(replicas[partition]))


def largest_first(layout: Layout, partitions: Ints) -> list[int]:
    """The partitions by size, largest first; ties in partition order."""
    order: list[int] = partitions[np.argsort(-layout.size[partitions], kind="stable")].tolist()
    return order


def all_alike(code: CauseCode) -> MoveCauses:
    """One cause that all moves have."""

    def causes(partitions: Ints) -> pa.ListArray:
        one = np.ones(len(partitions), np.int64)
        return cause_column(one, pa.repeat(code.value, len(partitions)))

    return causes


def each_by_itself(cause: Callable[[int], Sequence[MoveCause]]) -> MoveCauses:
    """Causes that are found partition by partition."""
    return lambda partitions: cause_column_of(map(cause, partitions.tolist()))


def of_left_brokers(layout: Layout, codes: Sequence[CauseCode], which: Ints) -> MoveCauses:
    """A cause for each replica that is given up.

    :param which: (B,) number of the cause for which replicas leave each broker, in ``codes``.
    """

    def causes(partitions: Ints) -> pa.ListArray:
        origin = layout.origin[partitions]
        left = is_new(origin, layout.rows[partitions])
        brokers = origin[left]
        cause_codes = values_at([code.value for code in codes], which[brokers])
        ids = layout.arrays.brokers.ids[brokers]
        return cause_column(left.sum(axis=1), cause_codes, broker=ids)

    return causes
