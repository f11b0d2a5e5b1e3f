"""What was last tried with a plan and did not go through: it stands in the first line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from include.domain.run.causes.cause import CauseKind
from include.domain.run.event_kind import EventKind
from include.domain.run.states import PlanState
from include.ledger.base.records import PlanRecord
from include.ledger.store import Ledger
from include.ledger.stores.by_run.causes import EndedRun
from include.reporting.status_facts import StatusFacts, StatusSummary, Tone

ATTEMPT_LABELS: Mapping[CauseKind, str] = {
    CauseKind.STALE: "Out of date",
    CauseKind.CHANGED_FILES: "Files changed",
    CauseKind.NOT_APPROVED: "Not approved",
    CauseKind.NO_ANSWER: "Not answered",
    CauseKind.REJECTED: "Rejected",
    CauseKind.CANCELLED: "Cancelled",
    CauseKind.SILENT: "Ended silently",
}
"""The state of a plan whose last run has ended by a cause of this kind; else see
:func:`label_of`.
"""
_REFUSALS = frozenset(
    {
        *(CauseKind.REQUEST, CauseKind.NOT_ASKED, CauseKind.POLICY, CauseKind.RIGHTS),
        *(CauseKind.WRONG_CLUSTER, CauseKind.BUSY, CauseKind.NOT_DONE, CauseKind.PLAN_STATE),
        *(CauseKind.SNAPSHOT, CauseKind.GATE, CauseKind.PLANNER, CauseKind.DRY_RUN),
        *(CauseKind.NOT_HEALED,),
    }
)
_OF_THE_PLAN = frozenset({CauseKind.PLAN_FAILED, CauseKind.CANCELLED})
"""Kinds whose words are the plan's own cause."""


def label_of(kind: CauseKind) -> str:
    """The state of a plan, in one or two words, whose last run has ended so."""
    return ATTEMPT_LABELS.get(kind) or ("Refused" if kind in _REFUSALS else "Failed")


def last_attempt(
    runs: Sequence[EndedRun], record: PlanRecord, continued_at: datetime | None
) -> EndedRun | None:
    """The last run about a plan, where something has ended or refused it; None = it has gone
    through, it goes on, or nothing is known of it.

    :param runs: of the plan, the last one first.
    :param continued_at: when a run last took the plan up; None = none has.
    """
    if record.state is PlanState.RUNNING or not runs:
        return None
    last = runs[0]
    if last.driver == record.driver or continued_at is None or last.cause.at > continued_at:
        return last
    return None


def attempt_with(ledger: Ledger, record: PlanRecord) -> EndedRun | None:
    """The last run about a plan, where something has ended or refused it."""
    runs = ledger.ended_runs_of(record.plan_id)
    continued = ledger.last_event_at(record.plan_id, EventKind.CONTINUED) if runs else None
    return last_attempt(runs, record, continued)


def with_attempt(summary: StatusSummary, facts: StatusFacts) -> StatusSummary:
    """A plan's state with what was last tried with it, and what that leaves."""
    last = facts.attempt
    if last is None or last.cause.kind in _OF_THE_PLAN:
        return summary
    cause = last.cause
    tried = f"{cause.short} (Run {last.run_id}, task {cause.task_id}.)"
    step = cause.remedy or summary.next_step
    match facts.state:
        case PlanState.PLANNED | PlanState.APPROVED:
            left = cause.left or summary.state_left
            tone = Tone.CALM if cause.kind.by_person else Tone.BAD
            return StatusSummary(tone, label_of(cause.kind), tried, left, step)
        case PlanState.PAUSED:
            waits = f"{tried} {summary.headline}"
            return replace(summary, tone=Tone.BAD, headline=waits)
        case PlanState.FAILED | PlanState.CANCELLED if cause.kind is not CauseKind.REJECTED:
            return replace(summary, headline=tried, next_step=cause.remedy or summary.next_step)
        case PlanState.DONE if summary.tone is not Tone.GOOD:
            return replace(summary, headline=f"{tried} {summary.headline}")
    return summary
