"""How a cluster is not the one that was planned on, and what to do, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rehome.domain.kafka import TopicPartition
from rehome.domain.text import first_names
from rehome.errors import STEP_UNCHANGED
from rehome.execution.observation.drifted import Drift, DriftKind

Said = tuple[str, str, str]
"""What is so, what state is left, and what to do."""

PLAN_AFRESH = "Trigger a new run: it plans with what is there now."
SEE_BROKERS = "Look at the brokers' connections to the controller, then"
PLAN_AGAIN = (
    "This plan cannot go on as it is. If it is paused, cancel it. Then trigger a new run: it plans "
    "with what the cluster has now."
)
_DRIFTED: Mapping[DriftKind, str] = {
    DriftKind.UNREADABLE: "cannot be read: its topic is gone or hidden",
    DriftKind.OTHER_TOPIC: "is another one: its topic was deleted and created again",
    DriftKind.GONE: "is gone",
}


def drift_text(drift: Drift) -> str:
    """What became of a partition, behind its name."""
    if drift.kind is DriftKind.REPLICAS:
        return f"has replicas {list(drift.replicas)}, not {list(drift.planned_on)}"
    return _DRIFTED[drift.kind]


def drifted_text(plan_id: str, drifts: Mapping[TopicPartition, Drift]) -> Said:
    """Of a plan whose partitions have changed."""
    changed = [f"{partition} {drift_text(drift)}" for partition, drift in drifts.items()]
    return (
        f"The cluster has changed since plan {plan_id} was made: {first_names(changed, '; ')}",
        "This step has changed nothing; the approval has lapsed.",
        PLAN_AFRESH,
    )


def broken_text(plan_id: str, broken: Sequence[str]) -> Said:
    """Of a plan that would break limits of now."""
    return (
        f"Caps or broker sets of the cluster are broken by what is left of plan {plan_id}: "
        f"{' '.join(broken)}",
        STEP_UNCHANGED,
        PLAN_AGAIN,
    )


def not_known_text(plan_id: str, topics: Sequence[str]) -> Said:
    """Of a plan on whose topics the brokers do not agree."""
    return (
        f"Whether the cluster has changed since plan {plan_id} was made is not known: the brokers "
        f"do not agree on topic{'s' * (len(topics) > 1)} {first_names(topics)}",
        "This step has changed nothing; the plan stays as it was.",
        f"{SEE_BROKERS} clear this task, with what comes after it.",
    )
