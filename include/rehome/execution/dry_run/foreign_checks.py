"""Checks of what other clients have in flight: it holds a plan up, and some of it can never end."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from rehome.domain.kafka import OngoingReassignment, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.findings import Finding, Severity
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.observation.foreign_reassignments import (
    CancelOutlook,
    Hindrance,
    another_target_text,
    back_text,
    hindrance,
    hindrance_text,
)

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
        if hangs := hindrance(entry, now.cluster.brokers, now.state(partition)):
            found = f"{found}, and cannot end: {hindrance_text(hangs)}"
            what_next = cancel_command(partition, entry)
            if hangs.cancel is CancelOutlook.REFUSED:
                what_next = _without_cancel(hangs)
        yield Finding(severity, FOREIGN_CHECK, str(partition), found, what_next)


def _without_cancel(hangs: Hindrance) -> str:
    """What ends it where the controller refuses a cancel: no replica of before is in sync."""
    another, back = another_target_text(hangs), back_text(hangs)
    ends = [f"Have it ended by another target: {another}."] if another else []
    if back:
        ends.append(f"It {'also ' if another else ''}ends when {back}.")
    return " ".join(
        [
            *ends,
            "No replica of before is in sync, so the controller refuses a cancel, unless the topic "
            "allows an unclean leader election.",
        ]
    )


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
