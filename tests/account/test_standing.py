"""Where a plan stands, and what is to be done next: one value, and words for all of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.account.standing import PlanStep, Stand, Tone
from rehome.account.words.standing_words import status_of
from rehome.account.words.step_words import next_step_of
from rehome.alerts.run_end import Ended, RunEnd
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.paused.paused_plan import GoesOn
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.ledger.base.records import EndReason, ThrottleState
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.reporting.data import ReportData
from tests.reporting.reported_plans import (
    NO_ROOM,
    START,
    carried_out,
    dry_run_only,
    failed_end,
    good_end,
    throttle,
    with_evidence,
    with_files,
    with_record,
    with_throttles,
)

OWED = throttle(ThrottleState.OWED)
NOT_EMPTY = {"as_planned": False, "left": [], "follow_up": "p2"}
NOT_LED = {"as_planned": False, "brokers": [4], "led": ["t-0"], "alone": []}
NOT_ELECTED = {"refused": {}, "waiting": ["t-0"]}
WAITING = carried_out(PlanState.PAUSED, "the window has closed", *[MoveState.PENDING] * 3)
FLIES = carried_out(PlanState.RUNNING, "", *[MoveState.ADMITTED] * 3)
PLANNED = dry_run_only()
ASKS = with_record(PLANNED, request={"approval": True})
ELECTS = with_record(good_end(), request={"action": "elect_preferred"})
NO_MOVES = with_evidence(good_end(), sums={})
CANCELLED = with_record(PLANNED, state=PlanState.CANCELLED, cause="asked to")

STANDS = {
    Stand.SUPERSEDED: with_evidence(PLANNED, overtaken_by="p2"),
    Stand.DRY_RUN_TO_COME: with_files(PLANNED, tried=None),
    Stand.REFUSED: dry_run_only(NO_ROOM),
    Stand.HANDED_OVER: with_record(PLANNED, for_window_at=START),
    Stand.READY: PLANNED,
    Stand.GOING_ON: with_record(PLANNED, request={}),
    Stand.APPROVED: with_record(PLANNED, state=PlanState.APPROVED),
    Stand.RUNNING: FLIES,
    Stand.HURT: with_evidence(FLIES, hurts=(Hurt(HurtKind.DEAD_BROKERS, (2,)),)),
    Stand.LEFT_RUNNING: with_evidence(FLIES, orphaned=True),
    Stand.PAUSED: WAITING,
    Stand.FINISHING: with_files(with_evidence(good_end(), run_over=False), verification=None),
    Stand.NOT_VERIFIED: with_files(good_end(), verification=None),
    Stand.DIFFERS: with_files(good_end(), verification={"ok": False}),
    Stand.OWES: with_throttles(good_end(), OWED),
    Stand.NOT_EMPTY: with_files(good_end(), drained=NOT_EMPTY),
    Stand.NOT_DEMOTED: with_files(good_end(), demoted=NOT_LED),
    Stand.NOT_ELECTED: with_files(ELECTS, leaders=NOT_ELECTED),
    Stand.NOT_REACHED: with_record(NO_MOVES, cut_by_budget=True),
    Stand.AS_ASKED: NO_MOVES,
    Stand.DONE: good_end(),
    Stand.FAILED_BEFORE: with_record(PLANNED, state=PlanState.FAILED, cause="a gate"),
    Stand.FAILED: failed_end(),
    Stand.REJECTED: with_record(CANCELLED, end_reason=EndReason.REJECTED),
    Stand.CANCELLED_BEFORE: CANCELLED,
    Stand.CANCELLED: carried_out(PlanState.CANCELLED, "asked to", *[MoveState.DONE] * 3),
    Stand.ROLLED_BACK: carried_out(PlanState.ROLLED_BACK, "by p2", *[MoveState.DONE] * 3),
}


def test_each_is_shown() -> None:
    assert list(STANDS) == list(Stand)


@pytest.mark.parametrize(("stand", "data"), STANDS.items(), ids=[each.name for each in STANDS])
def test_each_has_its_state_and_says_it_with_a_step(stand: Stand, data: ReportData) -> None:
    account = data.account
    assert (account.standing.stand, account.standing.tone) == (stand, stand.tone)
    said = status_of(account)
    for text in (said.label, said.headline, said.state_left, said.next_step, said.step_here):
        assert text.strip() == text != ""
        assert "  " not in text
        assert "{" not in text
    assert said.headline.endswith(".")
    assert (said.next_step, said.step_here) == next_step_of(account)


@pytest.mark.parametrize(
    ("data", "steps"),
    [
        (ASKS, (PlanStep.APPROVE,)),
        (failed_end(), (PlanStep.REST_OR_ROLL_BACK,)),
        (with_throttles(failed_end(), OWED), (PlanStep.SWEEP, PlanStep.REST_OR_ROLL_BACK)),
        (STANDS[Stand.CANCELLED], (PlanStep.ROLL_BACK,)),
        (
            carried_out(PlanState.FAILED, "", *[MoveState.ADMITTED] * 3),
            (PlanStep.SEE_IN_FLIGHT, PlanStep.REMOVE_AND_TRIGGER),
        ),
        (good_end(), (PlanStep.NOTHING, PlanStep.MAY_ROLL_BACK)),
        (
            with_files(good_end(), verification={"ok": True, "findings": {"t-0": "late"}}),
            (PlanStep.CHECK_ISR, PlanStep.MAY_ROLL_BACK),
        ),
    ],
)
def test_steps_follow_from_what_is_left(data: ReportData, steps: tuple[PlanStep, ...]) -> None:
    assert data.account.standing.steps == steps


def test_while_its_run_still_works_no_one_is_sent_to_sweep() -> None:
    owes = with_evidence(with_throttles(failed_end(), OWED), run_over=False)
    assert PlanStep.SWEEP not in owes.account.standing.steps
    later = replace(owes, written_at=owes.written_at + timedelta(minutes=3))
    assert PlanStep.SWEEP in later.account.standing.steps
    driven = with_evidence(later, driven=True)
    assert PlanStep.SWEEP not in driven.account.standing.steps


@pytest.mark.parametrize(
    "waits",
    [STANDS[Stand.DRY_RUN_TO_COME], STANDS[Stand.GOING_ON], ASKS, STANDS[Stand.APPROVED]],
    ids=["dry_run_to_come", "going_on", "asks", "approved"],
)
def test_nothing_goes_on_by_itself_once_its_run_is_over(waits: ReportData) -> None:
    over = with_evidence(waits, run_over=True).account
    assert over.standing.stand is waits.account.standing.stand
    assert over.standing.steps == (PlanStep.REMOVE_AND_TRIGGER,)
    alert = RunEnd("dag", "run-1", Ended.FAILED, plan=over).alert()
    assert alert.next_step == next_step_of(over)[0]
    assert alert.next_step.startswith("Remove the cause, then trigger a new run")


def tried(data: ReportData, kind: CauseKind, remedy: str = "Grant it.") -> ReportData:
    cause = Cause(kind, "Alter is missing.", "Nothing moved.", remedy, START, "snapshot")
    return with_evidence(data, ended_runs=(EndedRun("dag", "run-2", cause, "plan-1"),))


@pytest.mark.parametrize(
    ("data", "steps", "tone"),
    [
        (tried(PLANNED, CauseKind.RIGHTS), (PlanStep.REMEDY, PlanStep.THEN_RUN), Tone.BAD),
        (tried(PLANNED, CauseKind.REJECTED), (PlanStep.REMEDY, PlanStep.THEN_RUN), Tone.CALM),
        (tried(PLANNED, CauseKind.RIGHTS, ""), (PlanStep.RUN,), Tone.BAD),
        (
            tried(STANDS[Stand.APPROVED], CauseKind.RIGHTS, ""),
            (PlanStep.REMOVE_AND_TRIGGER,),
            Tone.BAD,
        ),
        (
            tried(STANDS[Stand.HANDED_OVER], CauseKind.RIGHTS, ""),
            (PlanStep.AS_IT_WAITS,),
            Tone.BAD,
        ),
        (
            tried(STANDS[Stand.HANDED_OVER], CauseKind.RIGHTS),
            (PlanStep.REMEDY, PlanStep.THEN_RUN),
            Tone.BAD,
        ),
        (
            tried(STANDS[Stand.HANDED_OVER], CauseKind.STALE, ""),
            (PlanStep.REMOVE_AND_TRIGGER,),
            Tone.BAD,
        ),
        (tried(WAITING, CauseKind.RIGHTS), (PlanStep.AS_IT_WAITS,), Tone.BAD),
        (
            tried(with_throttles(failed_end(), OWED), CauseKind.RIGHTS),
            (PlanStep.REMEDY, PlanStep.SWEEP, PlanStep.REST_OR_ROLL_BACK),
            Tone.BAD,
        ),
        (tried(STANDS[Stand.FAILED_BEFORE], CauseKind.RIGHTS), (PlanStep.REMEDY,), Tone.BAD),
    ],
)
def test_what_was_last_tried_comes_first(
    data: ReportData, steps: tuple[PlanStep, ...], tone: Tone
) -> None:
    standing = data.account.standing
    assert (standing.steps, standing.tone) == (steps, tone)
    assert status_of(data.account).headline.startswith("Alter is missing. (Run run-2")


def test_a_window_that_still_takes_the_plan_up_is_said_after_what_was_tried() -> None:
    handed_over = STANDS[Stand.HANDED_OVER]
    window = with_evidence(handed_over, outlook=GoesOn(START, handed_over=True))
    said = status_of(tried(window, CauseKind.RIGHTS, "").account)
    assert (
        "task snapshot.) This plan is handed over to the windows of its cluster." in said.headline
    )
    stale = status_of(tried(window, CauseKind.STALE, "").account)
    assert "handed over" not in stale.headline


def test_of_a_plan_that_is_well_nothing_that_was_tried_is_said() -> None:
    assert tried(good_end(), CauseKind.RIGHTS).account.standing.tried is None
    own = tried(failed_end(), CauseKind.PLAN_FAILED).account.standing
    assert (own.tried, own.control) == (None, Control.ROLL_BACK)
