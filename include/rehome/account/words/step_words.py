"""What to do next about a plan, in words: for any reader, and for one who has the button."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.account.account import PlanAccount
from rehome.account.standing import PlanStep, Stand
from rehome.account.words.attempt_words import PLAN_ANEW
from rehome.account.words.hurt_words import hurt_text
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.paused.paused_plan import NeedsPerson, Why
from rehome.domain.run.paused.paused_text import DECIDE, DECIDE_HERE, PausedText, paused_text
from rehome.domain.run.states import Control

SWEEP = "Run sweep_throttles when the cause is gone: it removes what is left."

_Texts = Callable[[PlanAccount], tuple[str, str]]

ALERT_STEPS: Mapping[AlertKind, tuple[Control, str]] = {
    AlertKind.ORPHANED: (Control.RESUME, "Resume the plan, or cancel it."),
    AlertKind.DAG_PAUSED: (
        Control.CANCEL,
        "Unpause the plan's DAG in Airflow: the run then goes on by itself. Or cancel the plan.",
    ),
    AlertKind.THROTTLE_RESTORED: (
        Control.PAUSE,
        "Find out who removes the throttle: kafka-reassign-partitions does, without "
        "--preserve-throttles. Or pause the plan.",
    ),
    AlertKind.OUTPACED: (
        Control.CHANGE_THROTTLE,
        "Raise the throttle above the rate named here. Where the approval or a policy forbids "
        "that, "
        "cancel the plan, and move these partitions when less is written to them.",
    ),
    AlertKind.WINDOW_WILL_BE_MISSED: (
        Control.CHANGE_THROTTLE,
        "What has not started by then is left for the next window. A higher throttle may bring it "
        "in.",
    ),
}
"""By kind: the request that the step is about, and the step. Of others, the alert's own is said."""
HURT_CONTROLS: Mapping[HurtKind, Control] = {
    HurtKind.DEAD_BROKERS: Control.CANCEL,
    HurtKind.WAITS_FOR_ROOM: Control.CANCEL,
    HurtKind.WAITS_FOR_WINDOW: Control.CHANGE_THROTTLE,
    HurtKind.OUTPACED: Control.CHANGE_THROTTLE,
}
"""The request that the step of a hurt is about."""


def next_step_of(account: PlanAccount) -> tuple[str, str]:
    """What to do, for any reader; and for one who has the button that it is about."""
    both = [STEP_TEXTS[step](account) for step in account.standing.steps]
    everywhere, here = (" ".join(filter(None, texts)) for texts in zip(*both, strict=True))
    return everywhere, here


def waits_text(account: PlanAccount) -> PausedText | None:
    """What it waits for, that is paused or handed over; None = for nothing, or not known."""
    if account.outlook is None:
        return None
    return paused_text(account.outlook, account.resume_refused)


def handed_over_words(account: PlanAccount) -> PausedText:
    """What a plan that is handed over waits for, also where that is not known."""
    unknown = NeedsPerson(Why.NOT_KNOWN, "see its page", handed_over=True)
    return waits_text(account) or paused_text(unknown)


def worst_hurt(account: PlanAccount) -> Hurt:
    """What slows it down or holds it up most, of a plan that something does."""
    return next(each for each in account.hurts if each.kind is not HurtKind.ALERT)


def _both(text: str) -> _Texts:
    return lambda _: (text, text)


def _remedy(account: PlanAccount) -> tuple[str, str]:
    remedy = account.cause.remedy if account.cause is not None else ""
    return remedy, remedy


def _as_it_waits(account: PlanAccount) -> tuple[str, str]:
    if account.standing.stand is Stand.HANDED_OVER:
        words = handed_over_words(account)
        return words.next_step, words.step_here
    waits = waits_text(account)
    return (DECIDE, DECIDE_HERE) if waits is None else (waits.next_step, waits.step_here)


def _approve(account: PlanAccount) -> tuple[str, str]:
    text = (
        f"Approve it in Airflow, task approve. The approval holds for hash "
        f"{account.record.plan_hash[:12]} only, and for the rate and the window that it names."
    )
    return text, text


def _of_worst(account: PlanAccount) -> tuple[str, str]:
    step = hurt_text(worst_hurt(account))[1]
    return step, step


def _empty_again(account: PlanAccount) -> tuple[str, str]:
    drained = account.files.drained or {}
    what = "the log dirs" if drained.get("log_dirs") else "the brokers"
    step = f"See below what was found. Do not take {what} away; trigger a new run of the action."
    if drained.get("follow_up") is not None:
        step = f"See the report of plan {drained['follow_up']}, which moves what is left. {step}"
    return step, step


def _roll_back(account: PlanAccount) -> str:
    return f"reassign_partitions with action rollback and plan_id {account.record.plan_id}"


STEP_TEXTS: Mapping[PlanStep, _Texts] = {
    PlanStep.NOTHING: _both("Nothing is left to do."),
    PlanStep.PLAN_ANEW: _both(PLAN_ANEW),
    PlanStep.REMEDY: _remedy,
    PlanStep.THEN_RUN: lambda _: ("", "Then run it."),
    PlanStep.REMOVE_AND_TRIGGER: _both(
        "Remove the cause, then trigger a new run: it plans with what is there then."
    ),
    PlanStep.AWAIT_DRY_RUN: _both("Wait for the dry run."),
    PlanStep.FIX_FINDINGS: _both("Each finding below names its remedy. Then trigger a new run."),
    PlanStep.AS_IT_WAITS: _as_it_waits,
    PlanStep.RUN: lambda _: (
        "Run it as it is: on its page, or by control_reassignment with action run.",
        "Run it as it is.",
    ),
    PlanStep.APPROVE: _approve,
    PlanStep.GOES_ON: _both("Nothing: the run goes on by itself."),
    PlanStep.HURT: _of_worst,
    PlanStep.WATCH: _both("Watch the log of the task progress in Airflow."),
    PlanStep.RESUME_OR_CANCEL: lambda _: (DECIDE, DECIDE_HERE),
    PlanStep.AWAIT_PROOF: _both("Wait for the proof."),
    PlanStep.COMPARE: _both(
        "See below what differs. Without a proof, clear the task verify: it reads the cluster "
        "afresh."
    ),
    PlanStep.SWEEP: _both(SWEEP),
    PlanStep.EMPTY_AGAIN: _empty_again,
    PlanStep.DEMOTE_AGAIN: _both("Trigger a new run of the demotion."),
    PlanStep.ELECT_AGAIN: _both("Trigger a new run of it when they are in sync."),
    PlanStep.ASK_FOR_LESS: _both(
        "Change what is in the way, or ask for less; then trigger a new run."
    ),
    PlanStep.CHECK_ISR: _both(
        "See below which replicas of the plan are out of the ISR, and check their brokers: the "
        "moves themselves are done."
    ),
    PlanStep.MAY_ROLL_BACK: lambda account: (
        f"To roll it back: {_roll_back(account)}.",
        "Roll it back, if it is not to stay.",
    ),
    PlanStep.SEE_IN_FLIGHT: _both(
        "Whether all has ended is not known: kafka-reassign-partitions --list shows what is still "
        "in flight."
    ),
    PlanStep.REST_OR_ROLL_BACK: lambda account: (
        f"Trigger a new run to move the rest, or take back what moved: {_roll_back(account)}.",
        "Plan again to move the rest, or roll back what moved.",
    ),
    PlanStep.ROLL_BACK: lambda account: (
        f"Nothing is left to move. Take back what moved: {_roll_back(account)}.",
        "Nothing is left to move. Roll back what moved.",
    ),
}
"""Each step, for any reader, and for one who has the button."""


def step_here(kind: AlertKind, elsewhere: str) -> tuple[Control | None, str]:
    """The step of an alert on the plan's page."""
    return ALERT_STEPS.get(kind, (None, elsewhere))
