"""Whether the cluster is still the one that was planned on, and approved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rehome.cluster.interface.errors import BrokersDisagreeError
from rehome.domain.kafka import TopicDescription, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.errors import PlanConflictError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.agreed_topics import agreed_topics
from rehome.execution.observation.drifted import Drift, DriftKind
from rehome.execution.observation.words.drift_words import (
    broken_text,
    drifted_text,
    not_known_text,
)


class DriftError(PlanConflictError):
    """The cluster is not the one that was planned on any more."""


class PartitionsChangedError(DriftError):
    """Partitions are not what the plan started from."""

    def __init__(self, plan_id: str, drifts: Mapping[TopicPartition, Drift]) -> None:
        self.drifts = drifts
        what, left, next_step = drifted_text(plan_id, drifts)
        super().__init__(what, state_left=left, next_step=next_step)


class LimitsBrokenError(DriftError):
    """What is left of the plan breaks caps or broker sets of now.

    :param broken: a sentence for each.
    """

    def __init__(self, plan_id: str, broken: Sequence[str]) -> None:
        what, left, next_step = broken_text(plan_id, broken)
        super().__init__(what, state_left=left, next_step=next_step)


def drift(plan: Plan, topics: Mapping[str, TopicDescription]) -> dict[TopicPartition, Drift]:
    """The plan's partitions that are not what it started from. Pure.

    :param topics: the plan's, also those that are gone or hidden; of those left out nothing is said
        (:func:`not_known`).
    """
    drifts = {move.partition: _drift_of(move, topics) for move in plan.moves}
    return {partition: what for partition, what in drifts.items() if what is not None}


def not_known(plan: Plan, topics: Mapping[str, TopicDescription]) -> list[str]:
    """The plan's topics on which the brokers do not agree: they may have changed, or not. Pure.

    :param topics: as :func:`drift` takes them.
    """
    return sorted({move.partition.topic for move in plan.moves} - topics.keys())


def refuse_drift(plan: Plan, cluster: OwnCluster) -> None:
    """Let only a plan pass that still fits, by a broker that is known to be up to date.

    :raises PartitionsChangedError: partitions have changed since the snapshot, or cannot be read.
    :raises BrokersDisagreeError: of some it is not known. The plan, and its approval, stay.
    :raises ClusterError: no broker is known to be up to date.
    """
    topics = agreed_topics(cluster, {move.partition.topic for move in plan.moves})
    if changed := drift(plan, topics):
        raise PartitionsChangedError(plan.plan_id, changed)
    if unknown := not_known(plan, topics):
        what, left, next_step = not_known_text(plan.plan_id, unknown)
        raise BrokersDisagreeError(what, state_left=left, next_step=next_step)


def _drift_of(move: Move, topics: Mapping[str, TopicDescription]) -> Drift | None:
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
