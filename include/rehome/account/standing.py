"""Where a plan stands, and what is to be done next: as types, for all who show or send it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass, replace

from rehome.account.attempts import Barred, attempt_of, barred_by, controls_of
from rehome.account.counts import PlanMoves, PlanThrottles
from rehome.account.evidence import PlanEvidence
from rehome.domain.actions import Action
from rehome.domain.plan.infeasible_lines import misses_of
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.execution.completion.preferred_leaders import all_elected
from rehome.ledger.base.records import EndReason, PlanRecord
from rehome.ledger.stores.by_run.causes import EndedRun


class Tone(enum.StrEnum):
    """By which views choose colour and icon."""

    GOOD = "good"
    BAD = "bad"
    BUSY = "busy"
    CALM = "calm"


class Stand(enum.Enum):
    """Where a plan stands: its state, and what else decides about it. Each with its tone."""

    SUPERSEDED = "superseded", Tone.BAD
    """Another plan has moved partitions of it."""
    DRY_RUN_TO_COME = "dry_run_to_come", Tone.CALM
    REFUSED = "refused", Tone.BAD
    """By its dry run."""
    HANDED_OVER = "handed_over", Tone.GOOD
    """To the windows of its cluster."""
    READY = "ready", Tone.GOOD
    """It was only tried out, and can be run."""
    GOING_ON = "going_on", Tone.CALM
    """It was tried out, and its run goes on, or asks a person first."""
    APPROVED = "approved", Tone.CALM
    RUNNING = "running", Tone.BUSY
    HURT = "hurt", Tone.BAD
    """It runs, and something keeps it from going on as it should."""
    LEFT_RUNNING = "left_running", Tone.BAD
    """It runs by the ledger, and its run does nothing more, or sends no heartbeat."""
    PAUSED = "paused", Tone.CALM
    FINISHING = "finishing", Tone.BUSY
    """Every move has ended, and its run is still at work."""
    NOT_VERIFIED = "not_verified", Tone.BAD
    """Done, and no proof was made."""
    DIFFERS = "differs", Tone.BAD
    """Done, and a fresh read differs."""
    OWES = "owes", Tone.BAD
    """Done, and throttles may still be set."""
    NOT_EMPTY = "not_empty", Tone.BAD
    """Done, and what was to be emptied is not, or that could not be read."""
    NOT_DEMOTED = "not_demoted", Tone.BAD
    NOT_ELECTED = "not_elected", Tone.BAD
    NOT_REACHED = "not_reached", Tone.CALM
    """Done without a move, and not all that was asked for is so."""
    AS_ASKED = "as_asked", Tone.GOOD
    """Done without a move: all was so already."""
    DONE = "done", Tone.GOOD
    FAILED_BEFORE = "failed_before", Tone.BAD
    """Before anything was changed."""
    FAILED = "failed", Tone.BAD
    REJECTED = "rejected", Tone.CALM
    """Cancelled before anything was changed, by a person who was asked to approve it."""
    CANCELLED_BEFORE = "cancelled_before", Tone.CALM
    CANCELLED = "cancelled", Tone.BAD
    ROLLED_BACK = "rolled_back", Tone.CALM

    def __init__(self, _: str, tone: Tone) -> None:
        self.tone = tone


class PlanStep(enum.Enum):
    """What is to be done next about a plan."""

    NOTHING = "nothing"
    PLAN_ANEW = "plan_anew"
    REMEDY = "remedy"
    """What the last run about it has named."""
    THEN_RUN = "then_run"
    """After the remedy, run the plan: for readers who have the button."""
    REMOVE_AND_TRIGGER = "remove_and_trigger"
    AWAIT_DRY_RUN = "await_dry_run"
    FIX_FINDINGS = "fix_findings"
    AS_IT_WAITS = "as_it_waits"
    """What follows from what it waits for."""
    RUN = "run"
    APPROVE = "approve"
    GOES_ON = "goes_on"
    HURT = "hurt"
    """What the worst hurt asks for."""
    WATCH = "watch"
    RESUME_OR_CANCEL = "resume_or_cancel"
    AWAIT_PROOF = "await_proof"
    COMPARE = "compare"
    SWEEP = "sweep"
    EMPTY_AGAIN = "empty_again"
    DEMOTE_AGAIN = "demote_again"
    ELECT_AGAIN = "elect_again"
    ASK_FOR_LESS = "ask_for_less"
    CHECK_ISR = "check_isr"
    MAY_ROLL_BACK = "may_roll_back"
    """All is well: what to do if it is not to stay."""
    SEE_IN_FLIGHT = "see_in_flight"
    REST_OR_ROLL_BACK = "rest_or_roll_back"
    ROLL_BACK = "roll_back"
    """Nothing is left to move; what was moved can be taken back."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a plan stands, and what is to be done next, in this order.

    :param control: the request that the steps are about; None = about none.
    :param tried: the last run about it, where that has to be said; None = it has not.
    """

    stand: Stand
    tone: Tone
    steps: tuple[PlanStep, ...]
    control: Control | None = None
    tried: EndedRun | None = None


_OF_THE_PLAN = frozenset({CauseKind.PLAN_FAILED, CauseKind.CANCELLED})
"""Kinds of causes that are the plan's own."""
_LESS_THAN_A_REMEDY = (PlanStep.FIX_FINDINGS, PlanStep.REMOVE_AND_TRIGGER, PlanStep.NOTHING)
"""Steps that say less than what the last run has named."""
_BY_ITS_RUN = (PlanStep.AWAIT_DRY_RUN, PlanStep.APPROVE, PlanStep.GOES_ON)
"""Steps of a plan that has not started, whose run is still at work."""
_BY_STAND = {
    Stand.DRY_RUN_TO_COME: (PlanStep.AWAIT_DRY_RUN, None),
    Stand.REFUSED: (PlanStep.FIX_FINDINGS, None),
    Stand.HANDED_OVER: (PlanStep.AS_IT_WAITS, Control.RUN),
    Stand.READY: (PlanStep.RUN, Control.RUN),
    Stand.APPROVED: (PlanStep.GOES_ON, None),
    Stand.RUNNING: (PlanStep.WATCH, None),
    Stand.HURT: (PlanStep.HURT, None),
    Stand.LEFT_RUNNING: (PlanStep.RESUME_OR_CANCEL, Control.RESUME),
    Stand.PAUSED: (PlanStep.AS_IT_WAITS, Control.RESUME),
    Stand.FINISHING: (PlanStep.AWAIT_PROOF, None),
    Stand.NOT_VERIFIED: (PlanStep.COMPARE, None),
    Stand.DIFFERS: (PlanStep.COMPARE, None),
    Stand.OWES: (PlanStep.SWEEP, None),
    Stand.NOT_EMPTY: (PlanStep.EMPTY_AGAIN, None),
    Stand.NOT_DEMOTED: (PlanStep.DEMOTE_AGAIN, None),
    Stand.NOT_ELECTED: (PlanStep.ELECT_AGAIN, None),
    Stand.NOT_REACHED: (PlanStep.ASK_FOR_LESS, None),
    Stand.AS_ASKED: (PlanStep.NOTHING, None),
    Stand.FAILED_BEFORE: (PlanStep.REMOVE_AND_TRIGGER, None),
    Stand.REJECTED: (PlanStep.NOTHING, None),
    Stand.CANCELLED_BEFORE: (PlanStep.NOTHING, None),
    Stand.ROLLED_BACK: (PlanStep.NOTHING, None),
}
"""The step of those that have one step, and the request that it is about."""


def standing_of(
    evidence: PlanEvidence, moves: PlanMoves, throttles: PlanThrottles, hurts: Collection[Hurt]
) -> Standing:
    """By its state, its files, and what was last tried with it."""
    if barred_by(evidence) is Barred.SUPERSEDED:
        return Standing(Stand.SUPERSEDED, Tone.BAD, (PlanStep.PLAN_ANEW,))
    stand = _stand(evidence, moves, throttles, hurts)
    steps, control = _steps(stand, evidence, moves, throttles)
    if evidence.run_over and steps[0] in _BY_ITS_RUN:
        steps = (PlanStep.REMOVE_AND_TRIGGER,)
    standing = Standing(stand, stand.tone, steps, control)
    last = attempt_of(evidence)
    if last is None or last.cause.kind in _OF_THE_PLAN:
        return standing
    return _with_attempt(standing, last, evidence)


def _with_attempt(standing: Standing, last: EndedRun, evidence: PlanEvidence) -> Standing:
    """What was last tried with the plan, and what that leaves to be done."""
    cause, remedy = last.cause, (PlanStep.REMEDY,) if last.cause.remedy else ()
    match evidence.record.state:
        case PlanState.PLANNED | PlanState.APPROVED:
            own = standing.steps if standing.stand is Stand.HANDED_OVER else (PlanStep.RUN,)
            runs = Control.RUN in controls_of(evidence)
            instead = own if runs else (PlanStep.REMOVE_AND_TRIGGER,)
            steps = (*remedy, PlanStep.THEN_RUN) if remedy else instead
            tone = Tone.CALM if cause.kind.by_person else Tone.BAD
            return Standing(standing.stand, tone, steps, Control.RUN, last)
        case PlanState.PAUSED:
            return replace(standing, tone=Tone.BAD, tried=last)
        case PlanState.FAILED | PlanState.CANCELLED if cause.kind is not CauseKind.REJECTED:
            rest = tuple(s for s in standing.steps if not remedy or s not in _LESS_THAN_A_REMEDY)
            return replace(standing, steps=(*remedy, *rest), tried=last)
        case PlanState.DONE if standing.tone is not Tone.GOOD:
            return replace(standing, tried=last)
    return standing


def _stand(
    evidence: PlanEvidence, moves: PlanMoves, throttles: PlanThrottles, hurts: Collection[Hurt]
) -> Stand:
    match evidence.record.state:
        case PlanState.PLANNED:
            return _of_planned(evidence)
        case PlanState.APPROVED:
            return Stand.APPROVED
        case PlanState.RUNNING if evidence.orphaned or evidence.run_over:
            return Stand.LEFT_RUNNING
        case PlanState.RUNNING:
            hurt = any(each.kind is not HurtKind.ALERT for each in hurts)
            return Stand.HURT if hurt else Stand.RUNNING
        case PlanState.PAUSED:
            return Stand.PAUSED
        case PlanState.DONE:
            return _of_done(evidence, moves, throttles)
        case PlanState.FAILED:
            return _of_failed(evidence)
        case PlanState.CANCELLED:
            return _of_cancelled(evidence.record)
    return Stand.ROLLED_BACK


def _of_failed(evidence: PlanEvidence) -> Stand:
    if evidence.record.started_at is not None:
        return Stand.FAILED
    tried = evidence.files.tried
    is_refused = tried is not None and not tried.get("ok")
    return Stand.REFUSED if is_refused else Stand.FAILED_BEFORE


def _of_cancelled(record: PlanRecord) -> Stand:
    if record.started_at is not None:
        return Stand.CANCELLED
    rejected = record.end_reason is EndReason.REJECTED
    return Stand.REJECTED if rejected else Stand.CANCELLED_BEFORE


def _of_planned(evidence: PlanEvidence) -> Stand:
    tried, record = evidence.files.tried, evidence.record
    if tried is None:
        return Stand.DRY_RUN_TO_COME
    if not tried.get("ok"):
        return Stand.REFUSED
    if not record.request.get("dry_run"):
        return Stand.GOING_ON
    return Stand.READY if record.for_window_at is None else Stand.HANDED_OVER


def _of_done(evidence: PlanEvidence, moves: PlanMoves, throttles: PlanThrottles) -> Stand:
    files, record = evidence.files, evidence.record
    proof = files.verification
    if throttles.finishing and (proof is None or throttles.still_set):
        return Stand.FINISHING
    if not proof:
        return Stand.NOT_VERIFIED
    if not proof.get("ok"):
        return Stand.DIFFERS
    if throttles.still_set:
        return Stand.OWES
    if files.drained is not None and not files.drained["as_planned"]:
        return Stand.NOT_EMPTY
    if files.demoted is not None and not files.demoted["as_planned"]:
        return Stand.NOT_DEMOTED
    elects = record.request.get("action") == Action.ELECT_PREFERRED
    if elects and files.leaders is not None and not all_elected(files.leaders):
        return Stand.NOT_ELECTED
    if moves.total:
        return Stand.DONE
    infeasible = () if files.summary is None else files.summary.infeasible
    less = record.cut_by_budget or misses_of(infeasible)
    return Stand.NOT_REACHED if less else Stand.AS_ASKED


def _steps(
    stand: Stand, evidence: PlanEvidence, moves: PlanMoves, throttles: PlanThrottles
) -> tuple[tuple[PlanStep, ...], Control | None]:
    if (step_and_control := _BY_STAND.get(stand)) is not None:
        return (step_and_control[0],), step_and_control[1]
    if stand is Stand.GOING_ON:
        asks = evidence.record.request.get("approval")
        return (PlanStep.APPROVE if asks else PlanStep.GOES_ON,), None
    if stand is Stand.DONE:
        out_of_isr = (evidence.files.verification or {}).get("findings")
        first = PlanStep.CHECK_ISR if out_of_isr else PlanStep.NOTHING
        return (first, PlanStep.MAY_ROLL_BACK), Control.ROLL_BACK
    return tuple(_after_failure(moves, throttles)), Control.ROLL_BACK


def _after_failure(moves: PlanMoves, throttles: PlanThrottles) -> list[PlanStep]:
    """Of a plan that has changed something, and ended before all of it was done."""
    steps = [PlanStep.SWEEP] if throttles.owed else []
    if moves.in_flight:
        steps.append(PlanStep.SEE_IN_FLIGHT)
    if not moves.count(MoveState.DONE):
        return [*steps, PlanStep.REMOVE_AND_TRIGGER]
    left = moves.total - moves.count(MoveState.DONE, MoveState.GONE)
    return [*steps, PlanStep.REST_OR_ROLL_BACK if left else PlanStep.ROLL_BACK]
