"""What keeps a plan from being carried out on the cluster as it is, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rehome.cluster.interface.rights import GRANT, LACKING
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.text import count_text
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding
from rehome.execution.observation.agreed_topics import DISAGREE
from rehome.execution.observation.foreign_reassignments import (
    CancelOutlook,
    Hindrance,
    another_target_text,
    back_text,
    hindrance_text,
)
from rehome.execution.observation.words.drift_words import PLAN_AFRESH, SEE_BROKERS, drift_text

RIGHT_OF_OTHERS = "Nothing is changed by this run. Who carries the files out needs that right."
"""Where the files of a plan are exported, and others carry them out."""
_ACTIVE = "this plan is running or paused: it holds the cluster, which one plan can do at a time"
_WAIT = "Wait until that plan has ended; if it is paused, resume or cancel it."


def _drift_sentence(finding: TypedFinding) -> str:
    return "" if finding.drift is None else f"it {drift_text(finding.drift)}"


def _on_move(finding: TypedFinding) -> str:
    return f"another client is reassigning it to {list(finding.brokers)}{_hangs(finding)}"


def _in_flight(finding: TypedFinding) -> str:
    return f"a reassignment to {list(finding.brokers)} is in flight{_hangs(finding)}"


def _hangs(finding: TypedFinding) -> str:
    hangs = finding.hindrance
    return "" if hangs is None else f", and cannot end: {hindrance_text(hangs)}"


def _foreign_step(finding: TypedFinding) -> str:
    hangs = finding.hindrance
    if hangs is not None and hangs.cancel is CancelOutlook.REFUSED:
        return _without_cancel(hangs)
    if hangs is not None and finding.partition is not None:
        return cancel_command(finding.partition, finding.brokers)
    if finding.kind is Kind.FOREIGN_ON_MOVE:
        return "Wait for it to end; it will not be superseded."
    return "Wait for it to end, or allow it with the parameter additional."


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


def cancel_command(partition: TopicPartition, target: Sequence[BrokerId]) -> str:
    """How who started it ends it. Without ``--preserve-throttles`` Kafka's tool would delete the
    throttles of the topic, whichever client has set them.
    """
    topic, number = partition
    entry = {"topic": topic, "partition": number, "replicas": list(target)}
    file = json.dumps({"version": 1, "partitions": [entry]})
    return (
        "Have the client that started it cancel it: "
        "kafka-reassign-partitions.sh --cancel --preserve-throttles "
        f"--reassignment-json-file FILE, with {file} in FILE. One that waits for a broker or a "
        "leader ends when that is back, too."
    )


PLAN_TEXTS: Texts = {
    Kind.PLAN_ACTIVE: _ACTIVE,
    Kind.PLAN_ACTIVE_BESIDE: _ACTIVE,
    Kind.MOVED_BY_ACTIVE: lambda finding: (
        f"plan {finding.value} is reassigning it to {list(finding.brokers)}"
    ),
    Kind.RIGHT_LACKING: LACKING,
    Kind.CHANGED: "has changed since the snapshot",
    Kind.NOT_COMPARED: f"whether it has changed since the snapshot is not known: {DISAGREE}",
    Kind.FOREIGN_ON_MOVE: _on_move,
    Kind.FOREIGN: _in_flight,
    Kind.FOREIGN_BESIDE: _in_flight,
    Kind.CONTROLLER_REFUSES: lambda finding: f"the controller would refuse it: {finding.why}",
    Kind.COUNT_REFUSED: lambda finding: (
        f"{count_text(finding.count, 'partition')} would be refused: {finding.why}"
    ),
}
PLAN_DETAILS: Texts = {Kind.CHANGED: _drift_sentence}
PLAN_STEPS: Texts = {
    Kind.PLAN_ACTIVE: f"{_WAIT} Then trigger a new run.",
    Kind.PLAN_ACTIVE_BESIDE: f"{_WAIT} Then have this plan carried out.",
    Kind.MOVED_BY_ACTIVE: f"{_WAIT} Then trigger a new run: it plans on what the cluster has then.",
    Kind.RIGHT_LACKING: GRANT,
    Kind.CHANGED: PLAN_AFRESH,
    Kind.NOT_COMPARED: f"{SEE_BROKERS} trigger a new run.",
    Kind.FOREIGN_ON_MOVE: _foreign_step,
    Kind.FOREIGN: _foreign_step,
    Kind.FOREIGN_BESIDE: _foreign_step,
    Kind.COUNT_REFUSED: "Correct the number; partitions can only be added.",
    Kind.CONTROLLER_REFUSES: "If the request gives this assignment, correct the request. Trigger a "
    "new run: it plans on what the cluster has then.",
}
