"""Checks of what other clients have in flight: it holds a plan up, and some of it can never end."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.observation.foreign_reassignments import hindrance


def foreign_findings(
    plan: Plan, request: ReassignmentRequest, now: ClusterState, ours: Collection[TopicPartition]
) -> Iterator[TypedFinding]:
    """Reassignments in flight that are not the plan's own.

    :param ours: partitions that the plan, which is continued, has in flight already.
    """
    for partition, entry in sorted(now.ongoing.items()):
        if partition in ours:
            continue
        kind = FoundKind.FOREIGN_BESIDE if request.additional else FoundKind.FOREIGN
        yield TypedFinding(
            FoundKind.FOREIGN_ON_MOVE if partition in plan.by_partition else kind,
            str(partition),
            brokers=tuple(entry.target),
            partition=partition,
            hindrance=hindrance(entry, now.cluster.brokers, now.state(partition)),
        )
