"""What planning an action results in, and the steps that several actions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from include.domain.array_types import NONE, Ints, Mask
from include.domain.kafka import BrokerId
from include.domain.plan.figures import BudgetPoint, LeaderMinimums, TargetPrice, TopicBalance
from include.domain.plan.infeasible import Infeasible
from include.domain.plan.move import MoveReason
from include.domain.request.request import ReassignmentRequest
from include.domain.text import brokers_text
from include.planning.limits.set_trees import rack_tree
from include.planning.model.arrays import ClusterArrays
from include.planning.model.layout import Layout
from include.planning.model.rack_tree import RackTree
from include.planning.model.resource_loads import capacities
from include.planning.model.scope import rack_paths
from include.planning.model.topic_bands import TopicBands
from include.planning.placement.replica_sets import Placer
from include.planning.result.resource_bands import ResourceBands


@dataclass(frozen=True)
class WithinBrokers:
    """What moves between log dirs copy, by the sizes of the very replicas.

    :param replicas: that stay on their broker and change their log dir.
    :param size_bytes: broker id → bytes copied between its log dirs.
    :param bound_bytes: no way to balance them as well copies less, over all brokers.
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
    """A finished layout and what is to be said about it.

    :param asked_bound_bytes: bytes that any plan copies that does all that was asked; None where no
        budget kept this one from it.
    :param why: dense partition index → the sentence of its move.
    :param log_dirs: dense partition index → log dirs asked for, aligned with its target.
    :param bands: what brokers were to end in; None where the action has no tolerances.
    :param prices: works out what each of the targets costs.
    :param curve: works out what smaller budgets reach.
    :param topics: how evenly topics are spread, where it goes by that.
    :param within: what that copies inside brokers, where it is known replica by replica.
    :param elections: dense indexes of partitions of which nothing but the leader changes: the
        preferred one is to be elected.
    """

    layout: Layout
    tree_before: RackTree
    tree_after: RackTree
    lower_bound_bytes: int
    reason: MoveReason
    why: Callable[[int], str]
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


def tree_of(
    arrays: ClusterArrays, hosts: Mask, request: ReassignmentRequest, replicas: int = 0
) -> RackTree:
    """The rack tree of these brokers; the request's seed says in which order equals are tried."""
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
    """The partitions by size, largest first; equals in partition order."""
    order: list[int] = partitions[np.argsort(-layout.size[partitions], kind="stable")].tolist()
    return order


def left_brokers(layout: Layout, partition: int) -> list[int]:
    """Dense indexes of the brokers that give the partition up."""
    now = layout.rows[partition].tolist()
    return [b for b in layout.origin[partition].tolist() if b != NONE and b not in now]


def new_brokers(layout: Layout, partition: int) -> list[int]:
    """Ids of the brokers that get a copy of the partition, in the order of its replicas."""
    origin = layout.origin[partition].tolist()
    added = [b for b in layout.rows[partition].tolist() if b not in origin]
    ids: list[int] = layout.arrays.brokers.ids[added].tolist()
    return ids


def new_places(layout: Layout, partition: int) -> str:
    """Where the new copies go, as part of a sentence."""
    ids = new_brokers(layout, partition)
    if not ids:
        return "no copy is made"
    role = "takes its place" if len(ids) == 1 else "take their places"
    return f"{brokers_text(ids)}, the least loaded that the racks allow, {role}"
