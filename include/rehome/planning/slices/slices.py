"""One slice of a cluster that is too large for one process: some partitions, all brokers.

Loads and distances to bands add up over slices, and the spread rule concerns one partition at a
time. So slices can be planned in parallel, each by the same search as a whole cluster: each takes
its part of every broker's distance to its band, and of the disk space. The work runs where the
slice's replicas are, so everything here can be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import Floats, Ints
from rehome.domain.plan.figures import Link, ResourceBalance
from rehome.domain.plan.infeasible import Infeasible, Obstacle
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.request.request import Action, ReassignmentRequest
from rehome.domain.run.pace import Pace
from rehome.errors import InvalidRequestError, RehomeError
from rehome.planning.actions.drain import plan_drain
from rehome.planning.actions.fix_offline_replicas import plan_offline_replicas
from rehome.planning.actions.repair_racks import plan_racks
from rehome.planning.actions.set_replication_factor import plan_replication_factor
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays, topic_ids
from rehome.planning.model.scope import (
    without_excluded,
)
from rehome.planning.result.lower_bounds import broker_loads, copying_s
from rehome.planning.result.outcome import Outcome
from rehome.planning.result.plan_moves import planned_moves
from rehome.planning.result.summary_figures import bytes_across_racks, links, resource_balances

PLACING = {
    Action.DRAIN: plan_drain,
    Action.SET_REPLICATION_FACTOR: plan_replication_factor,
    Action.REPAIR_RACKS: plan_racks,
    Action.FIX_OFFLINE_REPLICAS: plan_offline_replicas,
}
"""Actions that complete the replica set of each partition."""

BALANCING = (Action.REBALANCE, Action.EXPAND)


@dataclass(frozen=True)
class Context:
    """The part of the input that is the same for every slice.

    :param snapshot: without its replicas.
    :param topics: names of all topics that have replicas, sorted.
    :param headrooms: (B, V) headroom to use instead of the snapshot's.
    """

    snapshot: Snapshot
    topics: tuple[str, ...]
    request: ReassignmentRequest
    min_free_disk_fraction: float
    pace: Pace | None
    headrooms: Ints | None = None

    def arrays(self, replicas: pa.Table) -> ClusterArrays:
        """The slice as arrays; topics and brokers have the same indexes in all slices.

        :raises RehomeError: a replica lies on a broker that the snapshot does not know.
        """
        own = ClusterArrays.from_snapshot(
            replace(self.snapshot, replicas=replicas),
            min_free_disk_fraction=self.min_free_disk_fraction,
        )
        # Volumes are inferred once for all slices, not from the replicas of one.
        brokers = own.brokers if not len(replicas) else self.brokers()
        if self.headrooms is not None:
            brokers = brokers.with_headrooms(self.headrooms)
        known = set(self.snapshot.brokers.column("broker").to_pylist())
        unknown = [b for b in own.brokers.ids.tolist() if b not in known]
        if unknown:
            raise RehomeError(
                f"The snapshot is not complete: it has replicas on brokers {unknown}, of which "
                "it has "
                "no rows",
                state_left="No plan was made.",
                next_step="Trigger a new run, which takes a new snapshot.",
            )
        names = np.array(self.topics, object)
        place = np.searchsorted(names, np.array(own.topics, object))
        table = self.snapshot.topics.filter(self.snapshot.topics.column("internal"))
        internal = set(table.column("topic").to_pylist())
        arrays = replace(
            own,
            brokers=brokers,
            topics=self.topics,
            topic_ids=topic_ids(self.snapshot, self.topics),
            internal=np.array([topic in internal for topic in self.topics], bool),
            topic_of=place[own.topic_of],
        )
        return without_excluded(arrays, self.request)

    def empty(self) -> ClusterArrays:
        """The brokers and topics, without any partition."""
        return self.arrays(self.snapshot.replicas.slice(0, 0))

    def brokers(self) -> BrokerArrays:
        """The brokers, with the same indexes as in every slice."""
        return self.empty().brokers


@dataclass(frozen=True)
class Report:
    """The planned part of one slice.

    :param moves: of schema plan.MOVES; ``brokers``: load of each broker by this slice.
    :param copying_s: (2, B) see lower_bounds; None = the pace is not known.
    :param packed: (B, V) bytes that it copies to each volume; None = there is no plan.
    :param asked_bound_bytes: see Outcome.
    :param problems: why it cannot be planned; then the other fields are meaningless.
    """

    moves: pa.Table
    brokers: tuple[BrokerLoad, ...]
    violations_before: int
    violations_after: int
    lower_bound_bytes: int
    infeasible: tuple[Infeasible, ...]
    resources: tuple[ResourceBalance, ...] = ()
    links: tuple[Link, ...] = ()
    bytes_across_racks: int = 0
    copying_s: Floats | None = None
    packed: Ints | None = None
    problems: tuple[str, ...] = ()
    asked_bound_bytes: int | None = None

    @classmethod
    def of(cls, outcome: Outcome, pace: Pace | None) -> Report:
        """The report of an outcome."""
        layout = outcome.layout
        return cls(
            planned_moves(outcome).table,
            broker_loads(layout),
            int((outcome.tree_before.violations(layout.origin) > 0).sum()),
            int((outcome.tree_after.violations(layout.rows) > 0).sum()),
            outcome.lower_bound_bytes,
            outcome.infeasible,
            resource_balances(outcome),
            links(layout, outcome.tree_after),
            bytes_across_racks(layout, outcome.tree_after),
            None if pace is None else copying_s(layout, pace),
            layout.packed(),
            asked_bound_bytes=outcome.asked_bound_bytes,
        )

    @property
    def unpaid(self) -> bool:
        """Whether the budget did not suffice."""
        return any(item.obstacle is Obstacle.BUDGET for item in self.infeasible)

    @classmethod
    def refused(cls, problems: Sequence[str]) -> Report:
        """A report without a plan."""
        return cls(pa.table({}), (), 0, 0, 0, (), problems=tuple(problems))


@dataclass(frozen=True)
class PlaceInSlice:
    """Completes the replica sets of a slice.

    :param headrooms: (B, V) bytes the slice may add to each volume.
    """

    context: Context
    headrooms: Ints

    def run(self, replicas: pa.Table) -> Report:
        """The slice's part of the plan."""
        arrays, request = self.context.arrays(replicas), self.context.request
        arrays = replace(arrays, brokers=arrays.brokers.with_headrooms(self.headrooms))
        try:
            return Report.of(PLACING[request.action](arrays, request), self.context.pace)
        except InvalidRequestError as error:
            return Report.refused(error.problems)


class Work(Protocol):
    """A function of one slice's replicas; runs where the slice is."""

    def run(self, replicas: pa.Table) -> Any:
        """The result for a slice of these replicas."""


class Slices(Protocol):
    """The replicas of a cluster in slices of whole partitions.

    :ivar topics: names of all topics that have replicas, sorted.
    :ivar count: number of slices, counted from 0.
    """

    topics: tuple[str, ...]
    count: int

    def each(self, works: Mapping[int, Work]) -> list[Any]:
        """Run the work of each slice. Returns the results in the order of ``works``."""
