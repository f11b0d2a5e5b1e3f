"""What the ledger knows of a running plan, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from rehome.domain.broker_rates import BrokerRates, RateKey
from rehome.domain.kafka import BrokerId, HighWatermark, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.flows import FlowSample, OwnRate, RateChange
from rehome.domain.run.states import MoveState, PlanState

LONGEST_BETWEEN_S = 60.0
"""Between two asks of the same, at most."""
_DOUBLED = 16
"""So often, at most, the time between two asks is doubled: it is at its longest by far then."""


@dataclass(frozen=True, slots=True)
class RefusedCancel:
    """A move in flight that could not be cancelled when it was asked for.

    :param since: when it was first refused; ``asked_at``: last.
    :param asks: how often it was.
    :param answer: the last one, for people.
    """

    since: datetime
    asked_at: datetime
    asks: int
    answer: str

    def due(self, now: datetime, poll_interval_s: float) -> bool:
        """Whether it is to be asked again: after twice as long each time, up to a minute."""
        between_s = poll_interval_s * 2 ** min(self.asks, _DOUBLED)
        return now - self.asked_at >= timedelta(seconds=min(between_s, LONGEST_BETWEEN_S))

    def given_up(self, now: datetime, patience_s: float) -> bool:
        """Whether it has been refused for so long that the plan ends all the same."""
        return now - self.since >= timedelta(seconds=patience_s)

    def again(self, answer: str, now: datetime) -> RefusedCancel:
        """Refused once more."""
        return RefusedCancel(self.since, now, self.asks + 1, answer)


RefusedCancels = Mapping[TopicPartition, RefusedCancel]


def refused_to_json(refusals: RefusedCancels) -> list[list[Any]]:
    """As plain JSON types."""
    return [
        [p.topic, p.partition, r.since.isoformat(), r.asked_at.isoformat(), r.asks, r.answer]
        for p, r in sorted(refusals.items())
    ]


def refused_from_json(rows: Iterable[Iterable[Any]] | None) -> dict[TopicPartition, RefusedCancel]:
    """The reverse; None = there are none."""
    return {
        TopicPartition(topic, number): RefusedCancel(
            datetime.fromisoformat(since), datetime.fromisoformat(asked_at), asks, answer
        )
        for topic, number, since, asked_at, asks, answer in rows or ()
    }


class MoveSums(NamedTuple):
    """How many moves, and their bytes.

    :param bytes_to_copy: what they were to copy.
    :param recorded: the part of it that moves were to copy whose bytes in place are recorded: they
        are done, and no earlier Rehome has settled them.
    :param in_place: what the copies of these hold.
    :param grown: by how much those together hold more that hold more than was planned.
    """

    moves: int = 0
    bytes_to_copy: int = 0
    recorded: int = 0
    in_place: int = 0
    grown: int = 0

    @property
    def shrunk(self) -> int:
        """By how much those together hold less that hold less than was planned."""
        return self.recorded + self.grown - self.in_place

    @property
    def not_recorded(self) -> int:
        """What moves were to copy whose bytes in place are not recorded."""
        return self.bytes_to_copy - self.recorded


NO_MOVES = MoveSums()


class MoveStep(NamedTuple):
    """What the controller was asked for last of a move in flight: its target, or a step to it.

    :param before: replicas at that time; ``target``: those that were asked for.
    """

    before: tuple[BrokerId, ...]
    target: tuple[BrokerId, ...]

    def of_several(self, move: Move) -> bool:
        """Whether the move is made in several steps."""
        return move.copies_at(self.target) is not None or move.copies_at(self.before) is not None


class DataSeen(NamedTuple):
    """What polls have seen of the messages of a partition that moves.

    :param high_watermark: of its leader, at the last poll that could read it; None = none could.
    :param lost: what was there at an earlier poll and is gone, as offsets; empty = nothing that is
        known of.
    """

    high_watermark: HighWatermark | None = None
    lost: range = range(0)

    def then(self, now: HighWatermark) -> DataSeen:
        """With what a later poll has read."""
        before = self.high_watermark
        if before is None or now.offset >= before.offset:
            return DataSeen(now, self.lost)
        first = min(now.offset, self.lost.start) if self.lost else now.offset
        return DataSeen(now, range(first, max(before.offset, self.lost.stop)))

    @property
    def lost_text(self) -> str:
        """What is gone, after a name or a sentence; "" = nothing that is known of."""
        if not self.lost:
            return ""
        return (
            f"messages are lost: all in-sync replicas had offsets {self.lost.start} to "
            f"{self.lost.stop - 1}, and its leader has them no more"
        )


@dataclass(frozen=True, slots=True)
class LedgerView:
    """What the ledger knows of a plan, as plain data.

    :param moves: states of the moves that have not ended, and maybe of some that have.
    :param settled: by the state that they have ended in, the moves that ``moves`` leaves out.
    :param done: of all moves that are done, whether ``moves`` leaves them out or not.
    :param refused_cancels: moves in flight that could not be cancelled, since the plan last ran.
    :param data: what was seen of the messages of those that are admitted.
    :param version: grows with every change of a move's state: see ``MoveStore.view``.
    :param last_progress_at: when bytes or messages last moved, by the samples.
    :param held_at: when another client's reassignment was last seen to hold all of it up.
    :param sent: admitted moves that the controller has accepted, and when.
    :param steps: what the controller was, or is to be, asked for last of admitted moves.
    :param rate_bytes_per_s: throttle set now; None before the set-up.
    :param requested_rate_bytes_per_s: throttle an operator asked for in mid-run.
    :param requested_rates_by_broker, requested_moves_per_broker: rates of single brokers, and moves
        at once, that one asked for in mid-run; None = they are as they were.
    :param rates: the newest changes of the rate, oldest first.
    :param flows: the newest samples of what brokers copy, oldest first.
    """

    state: PlanState
    moves: Mapping[TopicPartition, MoveState]
    last_progress_at: datetime | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    sent: Mapping[TopicPartition, datetime] = field(default_factory=dict)
    rate_bytes_per_s: int | None = None
    requested_rate_bytes_per_s: int | None = None
    rates: tuple[RateChange, ...] = ()
    flows: tuple[FlowSample, ...] = ()
    held_at: datetime | None = None
    settled: Mapping[MoveState, MoveSums] = field(default_factory=dict)
    done: MoveSums = NO_MOVES
    data: Mapping[TopicPartition, DataSeen] = field(default_factory=dict)
    version: int = 0
    refused_cancels: RefusedCancels = field(default_factory=dict)
    requested_rates_by_broker: BrokerRates | None = None
    requested_moves_per_broker: int | None = None
    steps: Mapping[TopicPartition, MoveStep] = field(default_factory=dict)

    @property
    def own_rates(self) -> tuple[OwnRate, ...]:
        """Rates of brokers that have one of their own now."""
        set_now = self.rates and self.rates[-1].rate_bytes_per_s == self.rate_bytes_per_s
        return self.rates[-1].own if set_now else ()

    @property
    def own_targets(self) -> dict[RateKey, int]:
        """What brokers are to deliver that have a rate of their own, by direction."""
        return {each.key: each.target_bytes_per_s for each in self.own_rates}

    @property
    def least_rate_bytes_per_s(self) -> int | None:
        """The lowest rate that is set for any broker; None = none is."""
        rates = [each.rate_bytes_per_s for each in self.own_rates]
        return None if self.rate_bytes_per_s is None else min([self.rate_bytes_per_s, *rates])

    @property
    def still_since(self) -> datetime | None:
        """Since when nothing has moved that might have; None = the plan has not started."""
        return max(filter(None, (self.last_progress_at, self.held_at)), default=None)

    @property
    def target_bytes_per_s(self) -> int | None:
        """What brokers are to deliver; of a rate that is not governed, the rate. None = not set."""
        if self.rates and self.rates[-1].rate_bytes_per_s == self.rate_bytes_per_s:
            return self.rates[-1].target_bytes_per_s
        return self.rate_bytes_per_s
