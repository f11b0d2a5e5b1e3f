"""What was last tried with a plan, and what may be done with it now. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import datetime

from rehome.account.evidence import PlanEvidence
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.paused.paused_plan import RefusedResume, refused_by
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.execution.control.resume import can_be_run
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.stores.by_run.causes import EndedRun


class Barred(enum.StrEnum):
    """Why a plan that waits is not to be run as it is: it has to be made anew."""

    STALE = "stale"
    """A run has found that its partitions have changed since it was made."""
    REFUSED = "refused"
    """Its newest dry run, or a gate, has refused it."""
    SUPERSEDED = "superseded"
    """Another plan has moved some of its partitions since it was made."""


_BARS = {
    CauseKind.STALE: Barred.STALE,
    CauseKind.GATE: Barred.REFUSED,
    CauseKind.PLANNER: Barred.REFUSED,
    CauseKind.DRY_RUN: Barred.REFUSED,
}
_REFUSALS = frozenset(
    {
        *(CauseKind.REQUEST, CauseKind.NOT_ASKED, CauseKind.POLICY, CauseKind.RIGHTS),
        *(CauseKind.WRONG_CLUSTER, CauseKind.BUSY, CauseKind.NOT_DONE, CauseKind.PLAN_STATE),
        *(CauseKind.SNAPSHOT, CauseKind.GATE, CauseKind.PLANNER, CauseKind.DRY_RUN),
        *(CauseKind.NOT_HEALED,),
    }
)


def is_refusal(kind: CauseKind) -> bool:
    """Whether something has to change before such a run can go through."""
    return kind in _REFUSALS


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


def attempt_of(evidence: PlanEvidence) -> EndedRun | None:
    """The last run about the plan of the evidence, in the same way."""
    return last_attempt(evidence.ended_runs, evidence.record, evidence.continued_at)


def barred_by(evidence: PlanEvidence) -> Barred | None:
    """Why the plan, which waits, is not to be run as it is; None = nothing is known against it."""
    if evidence.record.state not in (PlanState.PLANNED, PlanState.APPROVED):
        return None
    last = attempt_of(evidence)
    newest = evidence.dry_runs[-1] if evidence.dry_runs else None
    bar = _BARS.get(last.cause.kind) if last is not None else None
    if last is not None and bar is not None:
        passed_since = (
            newest is not None
            and newest.ok
            and newest.tried_at is not None
            and newest.tried_at > last.cause.at
        )
        if not passed_since:
            return bar
    if evidence.overtaken_by is not None:
        return Barred.SUPERSEDED
    return Barred.REFUSED if newest is not None and not newest.ok else None


def controls_of(evidence: PlanEvidence) -> tuple[Control, ...]:
    """What a person may ask of the plan now, the usual first."""
    record = evidence.record
    match record.state:
        case PlanState.RUNNING if evidence.orphaned and not record.pause_requested:
            return Control.RESUME, *_of_running(record)
        case PlanState.RUNNING:
            return _of_running(record)
        case PlanState.PAUSED:
            return Control.RESUME, Control.CANCEL
        case PlanState.PLANNED if can_be_run(record) and barred_by(evidence) is None:
            handed_over = record.for_window_at is not None
            return (
                (Control.RUN, Control.CANCEL)
                if handed_over
                else (Control.RUN, Control.NEXT_WINDOW, Control.CANCEL)
            )
        case PlanState.PLANNED | PlanState.APPROVED:
            return (Control.CANCEL,)
        case PlanState.DONE | PlanState.CANCELLED | PlanState.FAILED if _moved_something(evidence):
            return (Control.ROLL_BACK,)
    return ()


def resume_refused_by(evidence: PlanEvidence) -> RefusedResume | None:
    """Why the last run that was to resume the plan, which is paused, has changed nothing."""
    return refused_by(evidence.files.tried) if evidence.record.state is PlanState.PAUSED else None


def _of_running(record: PlanRecord) -> tuple[Control, ...]:
    first = Control.RESUME if record.pause_requested else Control.PAUSE
    if record.unthrottled:
        return first, Control.CHANGE_MOVES, Control.CANCEL
    return first, Control.CHANGE_THROTTLE, Control.CHANGE_MOVES, Control.CANCEL


def _moved_something(evidence: PlanEvidence) -> bool:
    """What the end has left in flight may have ended since."""
    states = MoveState.DONE, MoveState.ADMITTED
    return any(evidence.sums.get(state, MoveSums()).moves for state in states)
