"""What has become of a move, by what the cluster shows: the settling half of `decide`. Pure."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

from rehome.domain.kafka import BrokerId, OngoingReassignment, PartitionState, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.ledger_view import MoveStep
from rehome.domain.run.observation import Observation
from rehome.execution.observation.agreed_topics import DISAGREE
from rehome.execution.observation.log_dir_copies import LogDirState, places, wanted_log_dirs
from rehome.execution.observation.out_of_isr import out_of_isr, out_of_isr_text
from rehome.execution.observation.words import fate_words


class Fate(enum.Enum):
    """What an observation says about a move."""

    UNTOUCHED = enum.auto()  # the partition is as it was planned from
    IN_FLIGHT = enum.auto()
    BETWEEN = enum.auto()  # one of its steps is done, and the next one is to be sent
    MISPLACED = enum.auto()  # replicas are right, a new one sits in another log dir than wanted
    DONE = enum.auto()
    UNDONE = enum.auto()  # it was in flight, and the old replicas are back
    SUPERSEDED = enum.auto()  # another client reassigned the partition
    UNREADABLE = enum.auto()  # the controller lists nothing, and the brokers do not describe it
    GONE = enum.auto()  # topic or partition no longer exists; another may have its name

    __hash__ = object.__hash__  # members are singletons; enum's own hash is written in Python


def fate(
    move: Move,
    observation: Observation,
    now: datetime,
    *,
    sent_at: datetime | None,
    grace_s: float,
    step: MoveStep | None = None,
) -> tuple[Fate, str]:
    """What became of a move, and the reason in words.

    The controller's list of reassignments is true at once; metadata comes from some broker
    that may be behind it, so for ``grace_s`` after the start only the list is believed. What is
    admitted and not listed is looked up at a broker that is known to be up to date (``observe``).

    :param sent_at: when the controller accepted the move, or its last step; None = not known to
        have.
    :param step: what it was, or is to be, asked for last of a move that is admitted.
    """
    if move.partition in observation.unconfirmed:
        return Fate.IN_FLIGHT, DISAGREE
    if is_recreated(move, observation):
        return Fate.GONE, fate_words.RECREATED
    entry = observation.ongoing.get(move.partition)
    if entry is not None:
        return _status_listed(move, entry, step)
    topic = move.partition.topic
    if topic in observation.unreadable:
        return Fate.UNREADABLE, fate_words.unreadable_text(topic, observation.unreadable[topic])
    state = observation.partitions.get(move.partition)
    if state is None:
        return Fate.GONE, fate_words.gone_text(topic=topic in observation.topics_missing)
    if state.replicas == move.target:
        return _status_on_target(move, state, observation, sent_at)
    between = step is not None and step.of_several(move) and move.copies_at(state.replicas)
    if step is not None and between and (sent_at is None or state.replicas == step.target):
        return Fate.BETWEEN, ""
    if sent_at is not None and now - sent_at < timedelta(seconds=grace_s):
        return Fate.IN_FLIGHT, ""
    if between:
        return Fate.UNDONE, fate_words.STEP_CANCELLED
    return _elsewhere(move, state, sent_at)


def _status_listed(
    move: Move, entry: OngoingReassignment, step: MoveStep | None
) -> tuple[Fate, str]:
    """What the controller lists of a move's partition."""
    if entry.leads_to(move.target if step is None else step.target):
        return Fate.IN_FLIGHT, ""
    if step is not None and step.of_several(move) and entry.leads_to(move.current):
        return Fate.IN_FLIGHT, fate_words.GOES_BACK
    return Fate.SUPERSEDED, fate_words.reassigned_text(entry.target)


def on_its_way(
    move: Move,
    entry: OngoingReassignment | None,
    observation: Observation,
    step: MoveStep | None = None,
) -> bool:
    """Whether the controller lists the move: what is true of most that are in flight.

    :param entry: what it lists of the partition.
    :param step: what was asked for last; None = the move's target.
    """
    if entry is None or not entry.leads_to(move.target if step is None else step.target):
        return False
    return not is_recreated(move, observation)


def is_untouched(move: Move, observation: Observation) -> bool:
    """Whether the partition is as it was planned from: what is true of most that wait."""
    state = observation.partitions.get(move.partition)
    if state is None or state.replicas != move.current or move.target_log_dirs:
        return False
    if move.partition in observation.ongoing or move.current == move.target:
        return False
    return not is_recreated(move, observation)


def is_recreated(move: Move, observation: Observation) -> bool:
    """Whether the name now belongs to another topic: nothing that is found there is ours.

    Of a topic that cannot be read this is not known: then it counts as the same.
    """
    if not move.topic_id:  # asked of every move at every poll: spares looking the name up
        return False
    return not move.is_of(observation.topic_ids.get(move.partition.topic, ""))


def _status_on_target(
    move: Move, state: PartitionState, observation: Observation, sent_at: datetime | None
) -> tuple[Fate, str]:
    """What the log dirs say of a partition whose replicas are the target.

    The controller has nothing of it in flight, so it is done as the controller sees it, whichever
    replicas are in the ISR.
    """
    done = Fate.DONE, out_of_isr_text(out_of_isr(move, state, observation.live_brokers))
    if not move.target_log_dirs:
        return done
    replica_by_state: dict[LogDirState, ReplicaId] = {}
    for replica, place in places(move, observation).items():
        replica_by_state.setdefault(place, replica)
    if LogDirState.TAKEN in replica_by_state:
        return Fate.SUPERSEDED, _moved_text(replica_by_state[LogDirState.TAKEN], observation)
    if LogDirState.STAYED in replica_by_state and sent_at is None:
        return Fate.UNTOUCHED, ""
    if LogDirState.STAYED in replica_by_state:
        stayed = replica_by_state[LogDirState.STAYED]
        return Fate.UNDONE, fate_words.stopped_text(stayed, wanted_log_dirs(move)[stayed])
    if LogDirState.STARTED_ELSEWHERE in replica_by_state:
        return Fate.MISPLACED, ""
    if LogDirState.COPYING in replica_by_state:
        return Fate.IN_FLIGHT, fate_words.BETWEEN_LOG_DIRS
    if LogDirState.UNKNOWN in replica_by_state:
        return Fate.IN_FLIGHT, fate_words.log_dir_unknown_text(
            replica_by_state[LogDirState.UNKNOWN]
        )
    return done


def _moved_text(replica: ReplicaId, observation: Observation) -> str:
    to = observation.future_log_dirs.get(replica)
    if to is not None:
        return fate_words.taken_text(replica, to, arrived=False)
    return fate_words.taken_text(replica, observation.log_dirs[replica], arrived=True)


def _elsewhere(move: Move, state: PartitionState, sent_at: datetime | None) -> tuple[Fate, str]:
    if sent_at is None and state.replicas == move.current:
        return Fate.UNTOUCHED, ""
    replicas = set(state.replicas)
    if replicas == set(move.current):
        if sent_at is None:
            return Fate.UNTOUCHED, ""
        return Fate.UNDONE, fate_words.CANCELLED_BY_OTHER
    if replicas == set(move.current) | set(move.target):
        return Fate.IN_FLIGHT, fate_words.METADATA_BEHIND
    return Fate.SUPERSEDED, fate_words.replaced_text(state.replicas, move.current)


def relocating(move: Move) -> tuple[BrokerId, ...]:
    """Brokers that keep their replica and move it to another log dir of theirs."""
    return move.relocating
