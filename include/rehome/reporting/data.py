"""What a report shows, as plain data: it reads no ledger, no file and no cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.account.account import PlanAccount
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import RateChange
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.records import Event, MoveRecord, PlanRecord, Reassignment, ThrottleEntry
from rehome.watching.paused_plan import Outlook


@dataclass(frozen=True, slots=True)
class ReportData:
    """A plan and what has become of it so far. Every stage may still be to come.

    :param written_at: when the report is made; aware UTC, like every time in it.
    :param record: the plan's row in the ledger; None = it was planned by hand.
    :param account: what the ledger knows of the plan; None = likewise.
    :param gates: ``gates.json``: the results of the gates, in the order they were made.
    :param dry_run: ``dry_run.json``; None = there was no dry run yet.
    :param verification: ``verification.json``; None = nothing was verified yet.
    :param leaders: ``leaders.json``; None = no preferred leader was restored yet.
    :param drained: ``drained.json``; None = the plan was no drain, or is not done.
    :param demoted: ``demoted.json``; None = the plan was no demotion, or is not done.
    :param rates: every rate that was set, oldest first.
    :param outlook: what the plan waits for while it is paused; None = that is not known.
    :param delivered: at each poll, what the busiest broker had copied per second since the last.
    """

    plan: Plan
    written_at: datetime
    request: Mapping[str, Any] = field(default_factory=dict)
    record: PlanRecord | None = None
    account: PlanAccount | None = None
    gates: tuple[Mapping[str, Any], ...] = ()
    dry_run: Mapping[str, Any] | None = None
    verification: Mapping[str, Any] | None = None
    leaders: Mapping[str, Any] | None = None
    drained: Mapping[str, Any] | None = None
    demoted: Mapping[str, Any] | None = None
    moves: Mapping[TopicPartition, MoveRecord] = field(default_factory=dict)
    reassignments: tuple[Reassignment, ...] = ()
    throttles: tuple[ThrottleEntry, ...] = ()
    samples: tuple[ProgressSample, ...] = ()
    events: tuple[Event, ...] = ()
    rates: tuple[RateChange, ...] = ()
    delivered: tuple[tuple[datetime, float], ...] = ()
    outlook: Outlook | None = None

    @property
    def state(self) -> PlanState:
        """The plan's state; one that the ledger does not know is planned."""
        return self.record.state if self.record else PlanState.PLANNED

    @property
    def cause(self) -> str:
        """Why the plan is in its state."""
        return self.record.cause if self.record else ""

    @property
    def started(self) -> bool:
        """Whether anything may have been changed on the cluster."""
        return bool(self.record and self.record.started_at)

    @property
    def elapsed_s(self) -> float | None:
        """Seconds from the start to the end, or to now; None before the start."""
        if self.record is None or self.record.started_at is None:
            return None
        return ((self.record.ended_at or self.written_at) - self.record.started_at).total_seconds()

    @property
    def owed(self) -> tuple[ThrottleEntry, ...]:
        """Throttles of ours that may still be set on the cluster."""
        return tuple(entry for entry in self.throttles if entry.state.open)

    def moves_in(self, *states: MoveState) -> int:
        """How many moves are in one of these states."""
        return sum(record.state in states for record in self.moves.values())
