"""Checks of what other clients have in flight: it holds a plan up, and some of it can never end."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from rehome.domain.kafka import OngoingReassignment, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.findings import Finding, Severity
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.observation.foreign_reassignments import cannot_end

FOREIGN_CHECK = "foreign reassignments"


def foreign_findings(
    plan: Plan, request: ReassignmentRequest, now: ClusterState, ours: Collection[TopicPartition]
) -> Iterator[Finding]:
    """Reassignments in flight that are not the plan's own.

    :param ours: partitions that the plan, which is continued, has in flight already.
    """
    for partition, entry in sorted(now.ongoing.items()):
        if partition in ours:
            continue
        target = list(entry.target)
        if partition in plan.by_partition:
            severity = Severity.ERROR
            found = f"another client is reassigning it to {target}"
            what_next = "Wait for it to end; it will not be superseded."
        else:
            severity = Severity.INFO if request.additional else Severity.ERROR
            found = f"a reassignment to {target} is in flight"
            what_next = "Wait for it to end, or allow it with the parameter additional."
        if hangs := _hangs(partition, entry, now):
            found = f"{found}, and cannot end: {hangs}"
            what_next = cancel_command(partition, entry)
        yield Finding(severity, FOREIGN_CHECK, str(partition), found, what_next)


def _hangs(partition: TopicPartition, entry: OngoingReassignment, now: ClusterState) -> str:
    """Why a reassignment does not end while the brokers are as they are; "" = it may.

    It ends when every replica that it adds is in sync (KIP-455), and each copies from the leader.
    """
    if hangs := cannot_end(entry, now.cluster.brokers):
        return hangs
    state = now.state(partition)
    if state is not None and state.leader is None:
        return "the partition has no leader to copy from"
    return ""


def cancel_command(partition: TopicPartition, entry: OngoingReassignment) -> str:
    """How who started it ends it. Without ``--preserve-throttles`` Kafka's tool would delete the
    throttles of the topic, whichever client has set them.
    """
    topic, number = partition
    named = {"topic": topic, "partition": number, "replicas": list(entry.target)}
    file = json.dumps({"version": 1, "partitions": [named]})
    return (
        "Have the client that started it cancel it: "
        "kafka-reassign-partitions.sh --cancel --preserve-throttles "
        f"--reassignment-json-file FILE, with {file} in FILE. One that waits for a broker or a "
        "leader ends when that is back, too."
    )
