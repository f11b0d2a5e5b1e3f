"""The plan that holds the cluster while another one is tried out, and what it has in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from rehome.cluster.interface.port import ClusterPort
from rehome.cluster.interface.rights import Role
from rehome.domain.kafka import OngoingReassignment, Replicas, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.execution.dry_run.cluster_state import ClusterState, read_cluster
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class ActivePlan:
    """The plan that holds the cluster, by the ledger.

    :param targets: reads what the controller was last asked for of each of its moves in flight.
    """

    plan_id: str
    targets: Callable[[], Mapping[TopicPartition, Replicas]]

    @classmethod
    def of(cls, ledger: Ledger, plan_id: str) -> ActivePlan:
        """That of a plan; a move that is made in steps is asked for by its step's target."""
        return cls(plan_id, lambda: {p: step.target for p, step in ledger.steps(plan_id).items()})


def read_cluster_beside(
    plan: Plan, cluster: ClusterPort, role: Role, active: ActivePlan | None
) -> tuple[ClusterState, Mapping[TopicPartition, Replicas]]:
    """The cluster as it is now, and the targets of what another plan that is active has in flight.

    Such a plan starts and ends moves all the time. So the ledger is read before and after the
    cluster, and what neither explains is looked at again: it may have begun and ended in between.

    :raises ClusterError: the cluster could not be read at all.
    """
    if active is None or active.plan_id == plan.plan_id:
        return read_cluster(plan, cluster, role), {}
    before = active.targets()
    now = read_cluster(plan, cluster, role)
    after = active.targets()
    theirs = {
        partition: tuple(entry.target)
        for partition, entry in now.ongoing.items()
        if _leads_to(entry, before.get(partition)) or _leads_to(entry, after.get(partition))
    }
    others = now.ongoing.keys() - theirs.keys()
    still = cluster.list_reassignments(others) if others else {}
    ongoing = {p: entry for p, entry in now.ongoing.items() if p in theirs or p in still}
    return replace(now, ongoing=ongoing), theirs


def active_findings(
    plan: Plan,
    active: ActivePlan | None,
    moves: Mapping[TopicPartition, Replicas],
    *,
    looks_only: bool,
) -> Iterator[TypedFinding]:
    """A run that carries nothing out needs no cluster to itself.

    :param moves: targets of what the active plan has in flight.
    """
    if active is None or active.plan_id == plan.plan_id:
        return
    kind = FoundKind.PLAN_ACTIVE_BESIDE if looks_only else FoundKind.PLAN_ACTIVE
    yield TypedFinding(kind, active.plan_id)
    for partition in sorted(moves.keys() & plan.by_partition.keys()):
        yield TypedFinding(
            FoundKind.MOVED_BY_ACTIVE,
            str(partition),
            brokers=tuple(moves[partition]),
            value=active.plan_id,
        )


def _leads_to(entry: OngoingReassignment, target: Replicas | None) -> bool:
    """A reassignment to other brokers than those is another client's."""
    return target is not None and set(entry.target) == set(target)
