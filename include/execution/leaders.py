"""Preferred leaders: a move leaves leadership where it was, or where a fault put it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.cluster.model import BrokerError, TopicPartition
from include.cluster.port import ClusterPort
from include.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class RestoredLeaders:
    """What an election of preferred leaders did.

    :param elected: partitions whose preferred replica leads again.
    :param waiting: partitions whose preferred replica is not in the ISR and cannot lead now.
    :param refused: what the controller refused, with its code.
    """

    already: int
    elected: tuple[TopicPartition, ...]
    waiting: tuple[TopicPartition, ...]
    refused: Mapping[TopicPartition, BrokerError]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types, for leaders.json."""
        return {
            "already": self.already,
            "elected": [str(partition) for partition in self.elected],
            "waiting": [str(partition) for partition in self.waiting],
            "refused": {str(partition): str(error) for partition, error in self.refused.items()},
        }

    def text(self) -> str:
        """One line, and one for each refusal."""
        lines = [
            f"{self.already} preferred replicas led already, {len(self.elected)} were elected, "
            f"{len(self.waiting)} are not in the ISR"
        ]
        return "\n".join([*lines, *(f"  {tp}: {error}" for tp, error in self.refused.items())])


def restore_preferred_leaders(plan: Plan, cluster: ClusterPort) -> RestoredLeaders:
    """Elect the preferred leader of every partition of the plan that has another one.

    Partitions that are gone are passed over, also where another topic has their name by now.

    :raises MissingRightError: without Cluster Alter.
    """
    topics = cluster.describe_topics({move.partition.topic for move in plan.moves})
    already, electable, waiting = 0, [], []
    for move in plan.moves:
        partition, topic = move.partition, topics.get(move.partition.topic)
        state = topic.partitions.get(partition.partition) if topic and not topic.error else None
        if topic is None or state is None or not state.replicas or not move.is_of(topic.topic_id):
            continue
        if state.leader == state.replicas[0]:
            already += 1
        elif state.replicas[0] in state.isr:
            electable.append(partition)
        else:
            waiting.append(partition)
    verdicts = cluster.elect_preferred_leaders(electable)
    refused = {partition: error for partition, error in verdicts.items() if error is not None}
    elected = tuple(partition for partition in electable if partition not in refused)
    return RestoredLeaders(already, elected, tuple(waiting), refused)
