"""Lines of lists that people page through, and what they may ask for."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from rehome.domain.kafka import BrokerId
from rehome.domain.plan.move import Move
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.progress import ProgressSample, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.records import PlanRecord, Reassignment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlanFilter:
    """Which plans to list; newest first.

    :param states: in one of these; empty = in any.
    :param text: part of the plan's id, action, run or requester, in any case; "" = any.
    :param dag_ids: made by one of these DAGs, or not known by which; None = by any.
    """

    states: frozenset[PlanState] = frozenset()
    text: str = ""
    dag_ids: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A plan in a list.

    :param sample: of its newest poll; None = there was none.
    :param sums: of its moves, by state.
    """

    record: PlanRecord
    sample: ProgressSample | None
    sums: Mapping[MoveState, MoveSums]


class MoveOrder(enum.StrEnum):
    """What moves are sorted by."""

    STATE = "state"  # what needs attention first
    PARTITION = "partition"
    SIZE = "size"  # bytes to copy, most first
    BEHIND = "behind"  # bytes behind, most first
    CHANGED = "changed"  # newest first


@dataclass(frozen=True, slots=True)
class MoveFilter:
    """Which moves to list, and in which order.

    :param states: in one of these; empty = in any.
    :param topic: what the topic's name begins with.
    :param broker: a broker that has a replica before or after; None = any.
    :param reverse: the other way round.
    """

    states: frozenset[MoveState] = frozenset()
    topic: str = ""
    broker: BrokerId | None = None
    order: MoveOrder = MoveOrder.STATE
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class MoveLine:
    """A move in a list.

    :param detail: why it is in its state, for people.
    :param start: its newest reassignment; None = it has not started.
    :param statuses: its replicas as the last poll that read them saw them.
    """

    move: Move
    state: MoveState
    detail: str
    start: Reassignment | None = None
    statuses: tuple[ReplicaStatus, ...] = field(default=())

    @property
    def bytes_behind(self) -> int | None:
        """Bytes that its copies in flight lack; None = nothing is in flight, or it is not known."""
        lags = [s.bytes_behind for s in self.statuses if s.bytes_behind is not None]
        return sum(lags) if lags and self.state is MoveState.ADMITTED else None

    @property
    def messages_behind(self) -> int | None:
        """The same in messages."""
        lags = [s.messages_behind for s in self.statuses if s.messages_behind is not None]
        return sum(lags) if lags and self.state is MoveState.ADMITTED else None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list, and how long the whole list is."""

    lines: list[T]
    total: int


class BusiestRate(NamedTuple):
    """What the broker and direction that copied most delivered between two polls.

    :param since: when the first of them was; None = a moment before.
    """

    at: datetime
    busiest_bytes_per_s: float
    since: datetime | None = None


class Mark(NamedTuple):
    """Equal to an earlier one of the same plan as long as nothing that people see has changed."""

    state: str
    cancel_requested: bool
    pause_requested: bool
    requested_rate_bytes_per_s: int | None
    moves_version: int
    newest_sample: datetime | None
    newest_event: int | None
    newest_rate_change: int | None
    newest_cause: datetime | None
    newest_dry_run: int | None
    newest_file: int | None
