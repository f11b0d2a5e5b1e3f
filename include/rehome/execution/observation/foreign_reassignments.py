"""Reassignments that another client has started, followed until each has ended. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rehome.domain.kafka import (
    BrokerId,
    OngoingReassignment,
    PartitionState,
    TopicPartition,
)
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import METADATA_GRACE_S
from rehome.domain.text import brokers_text
from rehome.execution.observation.move_status import Fate, fate
from rehome.execution.observation.observe import moves_of

CANCELS = "by the client that started it, or by the DAG foreign_reassignments"
"""Who may cancel what another client has started."""


class NeverEnds(enum.StrEnum):
    """Why a reassignment does not end while the brokers are as they are."""

    SENT_BACK = "sent_back"  # in mid-copy: it adds what it removes
    TARGET_AWAY = "target_away"  # it adds a replica on a broker that is not alive
    NO_SOURCE = "no_source"  # the partition has no leader to copy from
    KEPT_AWAY = "kept_away"  # it removes more than it adds, and a replica that stays is not alive


class CancelOutlook(enum.StrEnum):
    """What the controller says to a cancel, where the topic allows no unclean leader election."""

    TAKEN = "taken"
    REFUSED = "refused"  # no replica of before is in sync
    UNKNOWN = "unknown"  # the partition was not described


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What keeps a reassignment from ending.

    :param brokers: those that it waits for; of one that was sent back, those that it adds and
        removes.
    :param in_sync: replicas from which another reassignment could copy.
    """

    kind: NeverEnds
    brokers: tuple[BrokerId, ...]
    cancel: CancelOutlook = CancelOutlook.UNKNOWN
    in_sync: tuple[BrokerId, ...] = ()


def hindrance(
    entry: OngoingReassignment, live: Collection[BrokerId], state: PartitionState | None = None
) -> Hindrance | None:
    """What keeps a reassignment from ending while the brokers are as they are; None = it may.

    It ends when every replica that it adds is in sync (KIP-455), and each copies from the leader.
    One that was sent back in mid-copy still adds what it removes: the controller keeps the list of
    before where the new one is empty. One that removes more than it adds waits for each replica
    that stays (KAFKA-15665): before that, one that has copied everything is not in flight.

    :param state: of its partition; None = not known.
    """
    obstacle = _hindrance_of(entry, live, state)
    if obstacle is None or state is None:
        return None if obstacle is None else Hindrance(*obstacle)
    originals = (broker for broker in entry.replicas if broker not in entry.adding)
    cancel = CancelOutlook.REFUSED if state.isr.isdisjoint(originals) else CancelOutlook.TAKEN
    in_sync = () if state.leader is None else (b for b in state.replicas if b in state.isr)
    return Hindrance(*obstacle, cancel, tuple(in_sync))


def _hindrance_of(
    entry: OngoingReassignment, live: Collection[BrokerId], state: PartitionState | None
) -> tuple[NeverEnds, tuple[BrokerId, ...]] | None:
    reversed_ = tuple(broker for broker in entry.adding if broker in entry.removing)
    if reversed_:
        return NeverEnds.SENT_BACK, reversed_
    if dead := tuple(broker for broker in entry.adding if broker not in live):
        return NeverEnds.TARGET_AWAY, dead
    if state is not None and state.leader is None:
        originals = (broker for broker in entry.replicas if broker not in entry.adding)
        return NeverEnds.NO_SOURCE, tuple(broker for broker in originals if broker not in live)
    copied = not entry.adding or (state is not None and state.isr.issuperset(entry.adding))
    kept = tuple(broker for broker in entry.target if broker not in live)
    if kept and copied and len(entry.adding) < len(entry.removing):
        return NeverEnds.KEPT_AWAY, kept
    return None


def changes_text(entry: OngoingReassignment) -> str:
    """What it adds and removes, and where it leads: ``adds broker 4, removes broker 1, …``."""
    parts = []
    if entry.adding:
        parts.append(f"adds {brokers_text(entry.adding)}")
    if entry.removing:
        parts.append(f"removes {brokers_text(entry.removing)}")
    return ", ".join([*parts, f"leads to {list(entry.target)}"])


def hindrance_text(obstacle: Hindrance) -> str:
    """In words that follow "it cannot end:"."""
    brokers, one = brokers_text(obstacle.brokers), len(obstacle.brokers) == 1
    are = "is" if one else "are"
    match obstacle.kind:
        case NeverEnds.SENT_BACK:
            return f"it was sent back in mid-copy, and so adds and removes {brokers}"
        case NeverEnds.TARGET_AWAY:
            replicas = "a replica" if one else "replicas"
            return f"it adds {replicas} on {brokers}, which {are} not alive"
        case NeverEnds.NO_SOURCE:
            away = f": {brokers} {are} not alive" if obstacle.brokers else ""
            return f"the partition has no leader to copy from{away}"
        case NeverEnds.KEPT_AWAY:
            return (
                "it keeps fewer replicas than there were, all of which have to be in sync, and "
                f"{brokers} {are} not alive"
            )


def back_text(obstacle: Hindrance) -> str:
    """Who has to be back, in words that follow "it ends when"; "" = the brokers are all there."""
    match obstacle.kind:
        case NeverEnds.SENT_BACK:
            return ""
        case NeverEnds.NO_SOURCE:
            return "a broker with a complete replica is back"
        case NeverEnds.TARGET_AWAY | NeverEnds.KEPT_AWAY:
            one = len(obstacle.brokers) == 1
            return "that broker is back" if one else "those brokers are back"


def another_target_text(obstacle: Hindrance) -> str:
    """How Kafka's own tool ends it where the controller refuses a cancel. "" = by nothing: there is
    no replica in sync to copy from.
    """
    if not obstacle.in_sync:
        return ""
    return (
        "kafka-reassign-partitions.sh --execute --additional, to as many live brokers as the "
        f"partition is to have replicas, among them {brokers_text(obstacle.in_sync)} (in sync) and "
        "at least one that has no replica of it"
    )


def cannot_end(entry: OngoingReassignment, live: Collection[BrokerId]) -> str:
    """Why a reassignment does not end while the brokers are as they are; "" = it may."""
    obstacle = hindrance(entry, live)
    return "" if obstacle is None else hindrance_text(obstacle)


@dataclass(frozen=True, slots=True)
class Watched:
    """Another client's reassignment.

    :param move: what it changes, with the newest target seen.
    :param since: when it was first seen with that target.
    """

    move: Move
    since: datetime

    def to_json(self) -> dict[str, Any]:
        """What a trigger is given and returns; :meth:`from_json` reads it."""
        topic, partition = self.move.partition
        return {
            "topic": topic,
            "partition": partition,
            "current": list(self.move.current),
            "target": list(self.move.target),
            "since": self.since.isoformat(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Watched:
        """The inverse of :meth:`to_json`."""
        move = Move(
            TopicPartition(data["topic"], data["partition"]),
            tuple(data["current"]),
            tuple(data["target"]),
            size_bytes=0,
            reason=MoveReason.REQUESTED,
        )
        return cls(move, datetime.fromisoformat(data["since"]))


def in_flight(
    ongoing: Mapping[TopicPartition, OngoingReassignment], now: datetime
) -> tuple[Watched, ...]:
    """Everything that is in flight, to be watched from now on."""
    return tuple(Watched(move, now) for move in moves_of(ongoing))


def follow(watched: Collection[Watched], observation: Observation) -> tuple[Watched, ...]:
    """The same reassignments with the targets that their owners have given them since."""
    entries = {move.partition: move for move in moves_of(observation.ongoing)}
    followed = []
    for item in watched:
        entry = entries.get(item.move.partition)
        if entry is not None and entry.target != item.move.target:
            item = replace(item, move=entry, since=observation.taken_at)
        followed.append(item)
    return tuple(followed)


def fates(
    watched: Collection[Watched], observation: Observation
) -> dict[TopicPartition, tuple[Fate, str]]:
    """What has become of each, and the reason in words."""
    return {
        item.move.partition: fate(
            item.move,
            observation,
            observation.taken_at,
            sent_at=item.since,
            grace_s=METADATA_GRACE_S,
        )
        for item in watched
    }
