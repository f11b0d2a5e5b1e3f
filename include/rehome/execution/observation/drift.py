"""Whether the cluster is still the one that was planned on, and approved."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from rehome.cluster.interface.errors import BrokersDisagreeError
from rehome.domain.kafka import BrokerId, TopicDescription, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.text import first_names
from rehome.errors import PlanConflictError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.agreed_topics import agreed_topics


class DriftError(PlanConflictError):
    """The cluster is not the one that was planned on any more."""


class DriftKind(enum.StrEnum):
    """What became of a partition since the snapshot. The value is its text for people."""

    UNREADABLE = "cannot be read: its topic is gone or hidden"
    OTHER_TOPIC = "is another one: its topic was deleted and created again"
    GONE = "is gone"
    REPLICAS = "has other replicas"


@dataclass(frozen=True)
class Drift:
    """How a partition is not what its plan started from.

    :param replicas: with REPLICAS, those that it has; ``planned_on``: those that it had.
    """

    kind: DriftKind
    replicas: tuple[BrokerId, ...] = ()
    planned_on: tuple[BrokerId, ...] = ()

    def __str__(self) -> str:
        if self.kind is DriftKind.REPLICAS:
            return f"has replicas {list(self.replicas)}, not {list(self.planned_on)}"
        return self.kind.value


def drift(plan: Plan, topics: Mapping[str, TopicDescription]) -> dict[TopicPartition, Drift]:
    """The plan's partitions that are not what it started from. Pure.

    :param topics: the plan's, also those that are gone or hidden; of those left out nothing is said
        (:func:`not_known`).
    """
    found = {move.partition: _drifted(move, topics) for move in plan.moves}
    return {partition: what for partition, what in found.items() if what is not None}


def not_known(plan: Plan, topics: Mapping[str, TopicDescription]) -> list[str]:
    """The plan's topics on which the brokers do not agree: they may have changed, or not. Pure.

    :param topics: as :func:`drift` takes them.
    """
    return sorted({move.partition.topic for move in plan.moves} - topics.keys())


def refuse_drift(plan: Plan, cluster: OwnCluster) -> None:
    """Let only a plan pass that still fits, by a broker that is known to be up to date.

    :raises DriftError: naming the partitions that changed since the snapshot, or cannot be read.
    :raises BrokersDisagreeError: of some it is not known. The plan, and its approval, stay.
    :raises ClusterError: no broker is known to be up to date.
    """
    topics = agreed_topics(cluster, {move.partition.topic for move in plan.moves})
    changed = [f"{partition} {what}" for partition, what in drift(plan, topics).items()]
    if changed:
        raise DriftError(
            f"The cluster has changed since plan {plan.plan_id} was made: "
            f"{first_names(changed, '; ')}",
            state_left="This step has changed nothing; the approval has lapsed.",
            next_step="Trigger a new run: it plans with what is there now.",
        )
    if unknown := not_known(plan, topics):
        raise BrokersDisagreeError(
            f"Whether the cluster has changed since plan {plan.plan_id} was made is not known: "
            f"the brokers do not agree on topic{'s' * (len(unknown) > 1)} {first_names(unknown)}",
            state_left="This step has changed nothing; the plan stays as it was.",
            next_step="Look at the brokers' connections to the controller, then clear this task, "
            "with what comes after it.",
        )


def _drifted(move: Move, topics: Mapping[str, TopicDescription]) -> Drift | None:
    topic = topics.get(move.partition.topic)
    if topic is None:
        return None
    if topic.error is not None:
        return Drift(DriftKind.UNREADABLE)
    if not move.is_of(topic.topic_id):
        return Drift(DriftKind.OTHER_TOPIC)
    state = topic.partitions.get(move.partition.partition)
    if state is None:
        return Drift(DriftKind.GONE)
    if state.replicas != move.current:
        return Drift(DriftKind.REPLICAS, state.replicas, move.current)
    return None
