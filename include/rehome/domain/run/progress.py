"""How far a plan is, and the state of each of its replicas (KIP-179)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from rehome.domain.kafka import BrokerId, ReplicaId

PACE_WINDOW, PACE_POLLS = timedelta(seconds=60), 13
"""The pace of copies is measured over so long at most, and over no more than so many polls."""


class ReplicaState(enum.StrEnum):
    """The state of a replica (KIP-179's Status column)."""

    IN_SYNC = "in_sync"
    BEHIND = "behind"
    UNKNOWN_TOPIC = "unknown_topic"
    UNREADABLE = "unreadable"  # the brokers do not describe its topic
    UNKNOWN_PARTITION = "unknown_partition"
    UNKNOWN_BROKER = "unknown_broker"
    NOT_HOSTED = "not_hosted"  # the broker does not host this partition (yet)


class Gain(NamedTuple):
    """What a copy in flight has received from one poll to the next.

    :param read_from: the broker that it is copied from; its own of a log-dir move; None = not
        known.
    :param size_bytes: None = its broker has answered earlier polls, and not this one.
    """

    replica: ReplicaId
    read_from: BrokerId | None
    size_bytes: int | None


class PollGains(NamedTuple):
    """What all copies have received at one poll since the poll before."""

    at: datetime
    gains: tuple[Gain, ...]


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """KIP-179's ReplicaStatus of one replica, with bytes. None where it is not known.

    :param status_at: when this was seen.
    :param last_in_isr_at: when the replica was last seen in the ISR; None = not yet.
    :param messages_behind: leader's log end offset less this replica's own.
    :param max_messages_behind: the largest ``messages_behind`` seen since the move began.
    :param bytes_behind: leader's size less this replica's (log-dir move: the current log's
        size less the future one's).
    """

    replica: ReplicaId
    state: ReplicaState
    status_at: datetime
    last_in_isr_at: datetime | None = None
    messages_behind: int | None = None
    max_messages_behind: int | None = None
    bytes_behind: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """How far a plan is at one moment.

    :param bytes_done: in place: of moves that are done, and of copies in flight.
    :param bytes_total: what they come to in the end, by what sources hold now; of moves that wait,
        as planned. Moves that ended without being done count to neither.
    :param received_bytes: what copies have grown by from poll to poll since the plan's start: it
        never falls. None = not known: an earlier Rehome has polled the plan, too.
    :param grown_bytes: by how much those moves together are larger than planned that are larger;
        ``shrunk_bytes``: that are smaller, likewise. None = not known, likewise.
    :param messages_behind: over all replicas in flight that could be asked.
    :param rate_bytes_per_s: what all copies have received, over the window of their pace; None
        before there are two samples, or where that is not known.
    :param eta_s: time left until the last copy is complete at this pace, whatever window there is
        (see ``eta``); None while nothing comes through.
    :param busiest_bytes: bytes left at the broker and direction where most are left.
    """

    sampled_at: datetime
    bytes_done: int
    bytes_total: int
    moves_done: int
    moves_total: int
    in_flight: int
    messages_behind: int = 0
    rate_bytes_per_s: float | None = None
    eta_s: float | None = None
    busiest_bytes: int | None = None
    received_bytes: int | None = None
    grown_bytes: int | None = None
    shrunk_bytes: int | None = None

    @property
    def fraction(self) -> float:
        """Part of the bytes that is in place; of the moves that is done, where there are none."""
        if self.bytes_total:
            return self.bytes_done / self.bytes_total
        return self.moves_done / self.moves_total if self.moves_total else 1.0

    @property
    def at_this_pace(self) -> datetime | None:
        """When the last copy were complete, whatever window there is; None = not known."""
        if self.eta_s is None:
            return None
        return self.sampled_at + timedelta(seconds=self.eta_s)

    def ends_at(self, window_end: datetime | None) -> datetime | None:
        """When the last copy is complete; None = not known, or not before the window's end: what is
        in flight then is cancelled, and waits for the next one.
        """
        at = self.at_this_pace
        if at is None or (window_end is not None and at > window_end):
            return None
        return at
