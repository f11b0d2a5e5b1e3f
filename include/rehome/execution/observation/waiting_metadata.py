"""Metadata of partitions that wait for their turn, between the readings of them. Pure.

A poll reads what is in flight. Of a pending move it is known how its partition was when it was
last read, or planned: enough to choose by. What is chosen is read before it is acted upon.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from rehome.domain.kafka import BrokerId, PartitionState, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState


class AssumedStates:
    """Of each pending partition, how it was when it was last read, or planned."""

    def __init__(self) -> None:
        self._states: dict[TopicPartition, PartitionState] = {}
        self._live: frozenset[BrokerId] = frozenset()

    def follow(
        self,
        changed: Mapping[TopicPartition, MoveState],
        moves: Mapping[TopicPartition, Move],
        live: frozenset[BrokerId],
    ) -> Collection[TopicPartition]:
        """Take up moves that are pending now, drop others, and find leaders among the living.

        :param changed: states of moves that are new since the last call.
        :returns: partitions of which something else is assumed now.
        """
        new = []
        for partition, state in changed.items():
            if state is not MoveState.PENDING:
                self._states.pop(partition, None)
            else:
                self._states[partition] = _with_leader(_as_planned(moves[partition]), live)
                new.append(partition)
        if live == self._live:
            return new
        self._live = live
        self._states = {p: _with_leader(state, live) for p, state in self._states.items()}
        return list(self._states)

    def remember(self, observation: Observation, partitions: Iterable[TopicPartition]) -> None:
        """How these pending partitions have been read."""
        for partition in partitions:
            state = observation.partitions.get(partition)
            if state is not None and partition in self._states:
                self._states[partition] = state

    def complete(self, observation: Observation, read: Collection[TopicPartition]) -> Observation:
        """The reading, with what is assumed of the pending partitions that it has not read.

        :param read: partitions that it has, whether they exist or not.
        """
        partitions = {**self._states, **observation.partitions}
        for gone in read:
            if gone not in observation.partitions:
                partitions.pop(gone, None)
        return replace(observation, partitions=partitions, read=frozenset(read))


def _as_planned(move: Move) -> PartitionState:
    return PartitionState(None, move.current, frozenset(move.current))


def _with_leader(state: PartitionState, live: frozenset[BrokerId]) -> PartitionState:
    """By whom it is led; by the first that lives of its replicas, where that is not known."""
    if state.leader in live:
        return state
    leader = next((broker for broker in state.replicas if broker in live), None)
    return replace(state, leader=leader)
