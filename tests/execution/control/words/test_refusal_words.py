"""Why what is asked of a plan is refused: each reason in its words, with what to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rehome.domain.broker_rates import BrokerRates, RateSide
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.states import Control, PlanState
from rehome.errors import STEP_UNCHANGED
from rehome.execution.control.refusals import (
    AboveApproval,
    BelowInflow,
    ContinueRefusal,
    MoreThanApproved,
    NotContinued,
    NotPossible,
    PaceMissing,
    PaceRefusal,
    StateRefusal,
)
from rehome.execution.control.refused import (
    NotContinuedError,
    PaceRefusedError,
    StateRefusedError,
)
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan

ENDS = datetime(2030, 1, 1, 2, 3, 4, tzinfo=UTC)
TERMS = Terms("0" * 64, 5_000_000, rates_by_broker=BrokerRates({3: 2_000_000}))


@pytest.fixture
def record(ledger: Ledger) -> PlanRecord:
    ledger.create_plan(make_plan("p1"), {}, "file:///p1", "run-1", "test", dag_id="dag")
    return replace(ledger.plan("p1"), state=PlanState.PAUSED, cause="as a person asked")


@pytest.mark.parametrize(
    ("why", "step"),
    [
        (
            NotPossible.ENDED,
            "What it has moved can be taken back: by Roll back… on the plan's page, or by "
            "control_reassignment with action roll_back.",
        ),
        (NotPossible.OTHER_ACTIVE, "Plan p2 is paused on this cluster, and has to end first."),
        (
            NotPossible.NOTHING_TO_PAUSE,
            "Nothing of the plan has started, so there is "
            "nothing to pause. To stop it for good, cancel it.",
        ),
        (
            NotPossible.NOTHING_TO_RESUME,
            "The plan has not started, so there is nothing to "
            "resume. The page of the plan says what it waits for.",
        ),
        (
            NotPossible.BEGUN,
            "A run has begun the plan already: see that run. Resume the plan if it is paused.",
        ),
        (
            NotPossible.CARRIED_OUT,
            "Run dag/run-1 carries it out. If it has failed, clear its failed task.",
        ),
        (NotPossible.TAKES_BACK, "Roll the plan back that it takes back."),
        (NotPossible.ACTIVE, "Cancel it first, then roll it back."),
        (NotPossible.TAKEN_BACK, "The plan has been taken back already."),
        (NotPossible.NEVER_STARTED, "The plan never started: there is nothing to take back."),
    ],
)
def test_each_reason_of_a_state_has_its_step(
    why: NotPossible, step: str, record: PlanRecord
) -> None:
    other = replace(record, plan_id="p2")
    error = StateRefusedError(StateRefusal(record, Control.RUN, why, other))
    assert error.what == "Plan p1 is paused (as a person asked): run is not possible"
    assert (error.state_left, error.next_step) == (STEP_UNCHANGED, step)


def test_a_plan_that_has_ended_and_one_that_waits_for_a_window_say_so(record: PlanRecord) -> None:
    ended = replace(record, state=PlanState.DONE, cause="all moved")
    error = StateRefusedError(StateRefusal(ended, Control.PAUSE, NotPossible.ENDED))
    assert error.what == "Plan p1 is done and has ended (all moved): pause is not possible"
    waits = replace(record, for_window_at=ENDS)
    error = StateRefusedError(StateRefusal(waits, Control.RUN, NotPossible.CARRIED_OUT))
    assert error.next_step.endswith(" Else the next window carries the plan out.")


@pytest.mark.parametrize(
    ("why", "what", "step"),
    [
        (
            NotContinued.DRIVEN,
            "Run dag/run-1 drives plan p1, so no other run can resume it",
            "Follow that run. If it is dead, resume the plan after 02:03:04 UTC.",
        ),
        (
            NotContinued.TAKEN_UP,
            "Run dag/run-1 carries plan p1 out already",
            "Follow that run. If it has failed, clear its failed task, with what comes after it.",
        ),
        (
            NotContinued.NOT_OPEN,
            "No run can resume plan p1: it is paused (as a person asked)",
            "A run can go on only with a plan that is paused, or that a dry run has made. Trigger "
            "a new run: it makes a new plan.",
        ),
        (
            NotContinued.THROTTLES_SET,
            "Plan p1 is paused, but run dag/run-1, which drove it, has not taken its throttles "
            "back yet",
            "Resume the plan when that run has ended; if it is dead, after 02:03:04 UTC.",
        ),
    ],
)
def test_each_reason_why_no_run_goes_on_has_its_words(
    why: NotContinued, what: str, step: str, record: PlanRecord
) -> None:
    error = NotContinuedError(ContinueRefusal(record, why, ENDS))
    assert (error.what, error.state_left, error.next_step) == (what, STEP_UNCHANGED, step)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (PaceMissing.THROTTLE, "change_throttle needs a throttle in bytes per second."),
        (PaceMissing.MOVES, "change_moves needs max_moves_per_broker."),
        (
            PaceMissing.NOTHING_TO_CHANGE,
            "The plan runs without a throttle, so there is none to change. Run it, or pause and "
            "resume it, with a throttle: that run asks for an approval where it needs one.",
        ),
        (
            BelowInflow(1_250, 1_000.4, 1_250.5),
            "At 1250 bytes per second the copies in flight would hardly ever end: at one broker "
            "they grow by 1000 bytes per second. Ask for more than 1250, or pause the plan. The "
            "throttle stays as it is.",
        ),
        (
            AboveApproval("ben", TERMS),
            "ben approved at most 5000000 bytes per second. The throttle stays as it is. Pause the "
            "plan and resume it with the higher throttle: that run asks for another approval.",
        ),
        (
            AboveApproval("ben", TERMS, ((RateSide.LEADER, 3),)),
            "ben approved less for broker 3 (leader): at 5 MB/s (5000000 bytes per second) for "
            "each broker and direction at most; broker 3 sends 2 MB/s at most. The throttle stays "
            "as it is. Pause the plan and resume it with the higher throttle: that run asks for "
            "another approval.",
        ),
        (
            MoreThanApproved("bob", 1),
            "bob approved 1 move at once at most for each broker and direction, and nothing else "
            "limits the plan. They stay as they are. Pause the plan and resume it with more: that "
            "run asks for another approval.",
        ),
    ],
)
def test_each_reason_of_a_pace_has_its_words(refusal: PaceRefusal, said: str) -> None:
    assert PaceRefusedError(refusal).problems == (said,)
