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
    seen: Observation,
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
    if move.partition in seen.unconfirmed:
        return Fate.IN_FLIGHT, DISAGREE
    if is_recreated(move, seen):
        return Fate.GONE, RECREATED
    entry = seen.ongoing.get(move.partition)
    if entry is not None:
        return _status_listed(move, entry, step)
    topic = move.partition.topic
    if topic in seen.unreadable:
        return Fate.UNREADABLE, f"topic {topic} cannot be read: {seen.unreadable[topic]}"
    state = seen.partitions.get(move.partition)
    if state is None:
        missing = topic in seen.topics_missing
        return Fate.GONE, f"{'topic' if missing else 'partition'} does not exist any more"
    if state.replicas == move.target:
        return _status_on_target(move, state, seen, sent_at)
    between = step is not None and step.of_several(move) and move.copies_at(state.replicas)
    if step is not None and between and (sent_at is None or state.replicas == step.target):
        return Fate.BETWEEN, ""
    if sent_at is not None and now - sent_at < timedelta(seconds=grace_s):
        return Fate.IN_FLIGHT, ""
    if between:
        return Fate.UNDONE, "another client cancelled one of its steps"
    return _elsewhere(move, state, sent_at)


def _status_listed(
    move: Move, entry: OngoingReassignment, step: MoveStep | None
) -> tuple[Fate, str]:
    """What the controller lists of a move's partition."""
    if entry.leads_to(move.target if step is None else step.target):
        return Fate.IN_FLIGHT, ""
    if step is not None and step.of_several(move) and entry.leads_to(move.current):
        return Fate.IN_FLIGHT, "it is on its way back"
    return Fate.SUPERSEDED, f"another client is reassigning it to {list(entry.target)}"


def on_its_way(
    move: Move,
    entry: OngoingReassignment | None,
    seen: Observation,
    step: MoveStep | None = None,
) -> bool:
    """Whether the controller lists the move: what is true of most that are in flight.

    :param entry: what it lists of the partition.
    :param step: what was asked for last; None = the move's target.
    """
    if entry is None or not entry.leads_to(move.target if step is None else step.target):
        return False
    return not is_recreated(move, seen)


def is_untouched(move: Move, seen: Observation) -> bool:
    """Whether the partition is as it was planned from: what is true of most that wait."""
    state = seen.partitions.get(move.partition)
    if state is None or state.replicas != move.current or move.target_log_dirs:
        return False
    if move.partition in seen.ongoing or move.current == move.target:
        return False
    return not is_recreated(move, seen)


RECREATED = "its topic was deleted, and another one created under its name"


def is_recreated(move: Move, seen: Observation) -> bool:
    """Whether the name now belongs to another topic: nothing that is found there is ours.

    Of a topic that cannot be read this is not known: then it counts as the same.
    """
    if not move.topic_id:  # asked of every move at every poll: spares looking the name up
        return False
    return not move.is_of(seen.topic_ids.get(move.partition.topic, ""))


def _status_on_target(
    move: Move, state: PartitionState, seen: Observation, sent_at: datetime | None
) -> tuple[Fate, str]:
    """What the log dirs say of a partition whose replicas are the target.

    The controller has nothing of it in flight, so it is done as the controller sees it, whichever
    replicas are in the ISR.
    """
    done = Fate.DONE, out_of_isr_text(out_of_isr(move, state, seen.live_brokers))
    if not move.target_log_dirs:
        return done
    found: dict[LogDirState, ReplicaId] = {}
    for replica, place in places(move, seen).items():
        found.setdefault(place, replica)
    if LogDirState.TAKEN in found:
        return Fate.SUPERSEDED, _moved_text(found[LogDirState.TAKEN], seen)
    if LogDirState.STAYED in found and sent_at is None:
        return Fate.UNTOUCHED, ""
    if LogDirState.STAYED in found:
        return Fate.UNDONE, _stopped_text(move, found[LogDirState.STAYED])
    if LogDirState.STARTED_ELSEWHERE in found:
        return Fate.MISPLACED, ""
    if LogDirState.COPYING in found:
        return Fate.IN_FLIGHT, "a replica is moving between log dirs"
    if LogDirState.UNKNOWN in found:
        return Fate.IN_FLIGHT, f"log dir on broker {found[LogDirState.UNKNOWN].broker} is not known"
    return done


def _stopped_text(move: Move, replica: ReplicaId) -> str:
    log_dir = wanted_log_dirs(move)[replica]
    return (
        f"nothing copies it to {log_dir} on broker {replica.broker} any more: another client has "
        "taken that back, or the log dir has failed"
    )


def _moved_text(replica: ReplicaId, seen: Observation) -> str:
    to = seen.future_log_dirs.get(replica)
    if to is not None:
        return f"another client is moving it to {to} on broker {replica.broker}"
    return f"another client has moved it to {seen.log_dirs[replica]} on broker {replica.broker}"


def _elsewhere(move: Move, state: PartitionState, sent_at: datetime | None) -> tuple[Fate, str]:
    if sent_at is None and state.replicas == move.current:
        return Fate.UNTOUCHED, ""
    replicas = set(state.replicas)
    if replicas == set(move.current):
        if sent_at is None:
            return Fate.UNTOUCHED, ""
        return Fate.UNDONE, "another client cancelled it"
    if replicas == set(move.current) | set(move.target):
        return Fate.IN_FLIGHT, "metadata is behind the controller"
    return Fate.SUPERSEDED, f"its replicas are {list(state.replicas)}, not {list(move.current)}"


def relocating(move: Move) -> tuple[BrokerId, ...]:
    """Brokers that keep their replica and move it to another log dir of theirs."""
    return move.relocating
