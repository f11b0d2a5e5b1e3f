"""Preferred leaders: a move leaves leadership where it was, or where a fault put it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.clock import monotonic_s, sleep
from rehome.domain.kafka import BrokerError, TopicDescription, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.agreed_topics import agreed_topics

ELECTED_TOGETHER = 300
"""Partitions whose leaders are elected together."""
_PAUSE_S = 1.0
"""Least time between two such batches."""
SHOWN_WITHIN_S = 10.0
_SHOWN_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class RestoredLeaders:
    """What an election of preferred leaders did.

    :param elected: partitions whose preferred replica leads again.
    :param waiting: partitions whose preferred replica is not in the ISR and cannot lead now.
    :param refused: what the controller refused, with its code.
    :param unread: partitions that could not be read: who leads them is not known.
    """

    already: int
    elected: tuple[TopicPartition, ...]
    waiting: tuple[TopicPartition, ...]
    refused: Mapping[TopicPartition, BrokerError]
    unread: tuple[TopicPartition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types, for leaders.json."""
        return {
            "already": self.already,
            "elected": [str(partition) for partition in self.elected],
            "waiting": [str(partition) for partition in self.waiting],
            "refused": {str(partition): str(error) for partition, error in self.refused.items()},
            "unread": [str(partition) for partition in self.unread],
        }


def all_elected(content: Mapping[str, Any]) -> bool:
    """Whether every preferred leader leads, by leaders.json."""
    return not (content["refused"] or content["waiting"] or content.get("unread"))


class _LeaderState(enum.Enum):
    """Who leads a partition, and who could."""

    LED = enum.auto()  # by its preferred replica
    ELECTABLE = enum.auto()  # by another one; the preferred replica is in the ISR
    OUT_OF_ISR = enum.auto()  # by another one; the preferred replica is not in the ISR
    GONE = enum.auto()  # the partition is no more, or another topic has its name
    UNREAD = enum.auto()  # the topic is refused, or the brokers do not agree on it


def restore_preferred_leaders(
    plan: Plan,
    cluster: OwnCluster,
    *,
    at_once: int = ELECTED_TOGETHER,
    pause_s: float = _PAUSE_S,
    on_progress: Callable[[int, int], None] = lambda done, of: None,
) -> RestoredLeaders:
    """Elect the preferred leader of every partition of the plan that has another one.

    Each election moves the producers and consumers of a partition, so they go out in batches: the
    next one when brokers show the leaders of the one before, and not sooner than ``pause_s`` after
    it. Its partitions are read anew just before: only a replica that is in the ISR then may lead.
    Every reading is of a broker that is known to be up to date.

    Partitions that are gone are passed over, also where another topic has their name by now.

    :param at_once: partitions of one batch.
    :param pause_s: least time between the starts of two batches, in seconds.
    :param on_progress: called after each batch: partitions dealt with so far, and all there are.
    :raises MissingRightError: without Cluster Alter.
    :raises ClusterError: a batch was not answered, or no broker is up to date. What was elected
        stays so: a repeated call resumes the rest.
    """
    states = _leader_states(plan.moves, agreed_topics(cluster, _topics(plan.moves)))
    already = _of(states, _LeaderState.LED)
    unread = _of(states, _LeaderState.UNREAD)
    waiting = _of(states, _LeaderState.OUT_OF_ISR)
    left = [move for move in plan.moves if states[move.partition] is _LeaderState.ELECTABLE]
    elected: list[TopicPartition] = []
    refusals: dict[TopicPartition, BrokerError] = {}
    for start in range(0, len(left), at_once):
        began, batch = monotonic_s(), left[start : start + at_once]
        states = _leader_states(batch, agreed_topics(cluster, _topics(batch)))
        already += _of(states, _LeaderState.LED)
        unread += _of(states, _LeaderState.UNREAD)
        waiting += _of(states, _LeaderState.OUT_OF_ISR)
        verdicts = cluster.elect_preferred_leaders(_of(states, _LeaderState.ELECTABLE))
        for partition, error in verdicts.items():
            if error is None:
                elected.append(partition)
            elif error.code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE:
                waiting.append(partition)
            else:
                refusals[partition] = error
        on_progress(start + len(batch), len(left))
        if start + at_once < len(left):
            _rest(batch, cluster, began + pause_s)
    return RestoredLeaders(len(already), tuple(elected), tuple(waiting), refusals, tuple(unread))


def _rest(batch: Collection[Move], cluster: OwnCluster, until: float) -> None:
    """Wait until brokers show the leaders of the batch, ``SHOWN_WITHIN_S`` at most; and in any case
    until a time of the monotonic clock.
    """
    give_up = monotonic_s() + SHOWN_WITHIN_S
    not_shown = {_LeaderState.ELECTABLE, _LeaderState.UNREAD}
    while monotonic_s() < give_up:
        states = _leader_states(batch, cluster.current_topics(_topics(batch)))
        if not_shown.isdisjoint(states.values()):
            break
        sleep(_SHOWN_POLL_S)
    sleep(max(0.0, until - monotonic_s()))


def _leader_states(
    moves: Collection[Move], topics: Mapping[str, TopicDescription]
) -> dict[TopicPartition, _LeaderState]:
    return {move.partition: _leader_state(move, topics.get(move.partition.topic)) for move in moves}


def _topics(moves: Collection[Move]) -> set[str]:
    return {move.partition.topic for move in moves}


def _leader_state(move: Move, topic: TopicDescription | None) -> _LeaderState:
    if topic is None:
        return _LeaderState.UNREAD
    if topic.error is not None:
        gone = topic.error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _LeaderState.GONE if gone else _LeaderState.UNREAD
    if not move.is_of(topic.topic_id):
        return _LeaderState.GONE
    state = topic.partitions.get(move.partition.partition)
    if state is None or not state.replicas:
        return _LeaderState.GONE
    if state.leader == state.replicas[0]:
        return _LeaderState.LED
    return _LeaderState.ELECTABLE if state.replicas[0] in state.isr else _LeaderState.OUT_OF_ISR


def _of(states: Mapping[TopicPartition, _LeaderState], state: _LeaderState) -> list[TopicPartition]:
    return [partition for partition, its in states.items() if its is state]
