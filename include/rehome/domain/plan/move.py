"""One partition's change of replica set."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.plan.causes.move_cause import MoveCause


class MoveReason(enum.StrEnum):
    """Why a partition's replica set changes."""

    DRAIN = "drain"  # a replica sat on a broker to be emptied
    REPLACE = "replace"  # a replica sat on a broker that another one replaces
    OFFLINE = "offline"  # a replica sat on a dead broker, or in a failed log dir
    BALANCE = "balance"  # an overloaded broker sheds, an underloaded one receives
    RACK = "rack"  # replicas were not spread over the rack tree as evenly as it allows
    REPLICATION_FACTOR = "replication_factor"
    REQUESTED = "requested"  # named in the operator's own reassignment JSON
    LOG_DIR = "log_dir"  # within a broker, between its log dirs
    EVACUATE = "evacuate"  # a replica lay in a log dir that is to be emptied
    LEADER = "leader"  # only the order of replicas changes: no data moves
    ELECTION = "election"  # no replica changes: its preferred leader is to lead
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's change of replica set. Sizes in bytes, brokers by id.

    :param current: replicas in stored order when planned, preferred leader first.
    :param target: replicas wanted, preferred leader first.
    :param size_bytes: size of one replica (the leader's, or the largest known).
    :param current_log_dirs: log dir of each current replica, aligned with ``current``.
    :param target_log_dirs: log dir wanted for each target replica, aligned with ``target``;
        ``any`` lets the broker choose. Empty means ``any`` for all.
    :param causes: why it moves, for a person; empty = not known, as for moves of the ledger.
    :param topic_id: Kafka's id of the topic that was planned on (KIP-516); "" = not known.
    :param in_sync: replicas that were in the ISR when it was planned; -1 = not known.
    :param end_offset: up to which all replicas in the ISR had its messages when it was planned:
        its high watermark never falls below that unless messages are lost; -1 = not known.
    """

    partition: TopicPartition
    current: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]
    size_bytes: int
    reason: MoveReason
    causes: tuple[MoveCause, ...] = ()
    current_log_dirs: tuple[str, ...] = ()
    target_log_dirs: tuple[str, ...] = ()
    topic_id: str = ""
    in_sync: int = -1
    end_offset: int = -1

    @property
    def danger(self) -> int | None:
        """What the order of its start goes by where replicas are offline: replicas in sync, the
        fewest first; None = it has no such order.
        """
        return self.in_sync if self.reason is MoveReason.OFFLINE else None

    def is_of(self, topic_id: str) -> bool:
        """Whether a topic of this name and id is the one that was planned on.

        A name alone does not identify it: a topic may have been deleted and created again. Brokers
        before 2.8, and plans stored without ids, know none: then the name has to do.
        """
        return not self.topic_id or not topic_id or self.topic_id == topic_id

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        """Brokers that receive a copy, in target order."""
        current = self.current
        return tuple([broker for broker in self.target if broker not in current])

    def with_copies(self, copies: int) -> tuple[BrokerId, ...]:
        """Its replicas once so many of the brokers that are added have theirs, where they get them
        in steps. None of the old ones is given up before the last step, which is the target: so
        going back to them never copies anything.
        """
        adding = self.adding
        return self.target if copies >= len(adding) else (*self.current, *adding[:copies])

    def copies_at(self, replicas: tuple[BrokerId, ...]) -> int | None:
        """How many of the brokers that are added have theirs, where these are its replicas between
        two steps, in any order: a cancel loses it. None = they are not.
        """
        copies = len(replicas) - len(self.current)
        between = 0 < copies < len(self.adding)
        return copies if between and set(replicas) == set(self.with_copies(copies)) else None

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        """Brokers that give their copy up, in current order."""
        return tuple(broker for broker in self.current if broker not in self.target)

    @property
    def relocating(self) -> tuple[BrokerId, ...]:
        """Brokers that keep their replica and copy it to another log dir of theirs."""
        if not self.target_log_dirs:
            return ()
        before = dict(zip(self.current, self.current_log_dirs, strict=False))
        return tuple(
            broker
            for broker, path in zip(self.target, self.target_log_dirs, strict=False)
            if path != ANY_LOG_DIR and broker in self.current and before.get(broker) != path
        )

    @property
    def copies_nothing(self) -> bool:
        """Whether it changes the order of replicas at most. The controller carries that out at
        once, even with a replica that is offline.
        """
        return not (self.adding or self.removing or self.relocating)

    @property
    def needs_alive(self) -> tuple[BrokerId, ...]:
        """Brokers without which it could not be complete. Of another order that is the preferred
        leader alone, and only where another one was preferred before.
        """
        if not self.copies_nothing:
            return self.target
        return self.target[:1] if self.target[:1] != self.current[:1] else ()

    @property
    def bytes_to_move(self) -> int:
        """Bytes that cross the network: one replica's size per added broker."""
        return self.size_bytes * len(self.adding)

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that are written anew: over the network or between log dirs."""
        return self.size_bytes * (len(self.adding) + len(self.relocating))
