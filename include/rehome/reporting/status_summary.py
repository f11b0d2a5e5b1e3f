"""The state of a plan and what to do next: the first lines of its report and of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rehome.account.attempts import Barred
from rehome.account.words.attempt_words import (
    PLAN_ANEW,
    label_of,
    superseded_text,
    tried_text,
)
from rehome.account.words.finding_words import found_sentence
from rehome.account.words.hurt_words import hurt_text
from rehome.domain.request.request import Action
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.findings import Severity
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.errors import sentence
from rehome.execution.completion.demoted import demotion_text
from rehome.execution.completion.preferred_leaders import not_elected, not_elected_text
from rehome.ledger.base.records import EndReason
from rehome.reporting.number_text import count_text, duration_text
from rehome.reporting.status_facts import StatusFacts, StatusSummary, Tone
from rehome.watching.paused_plan import NeedsPerson, Why
from rehome.watching.paused_text import paused_text

_OF_THE_PLAN = frozenset({CauseKind.PLAN_FAILED, CauseKind.CANCELLED})
"""Kinds whose words are the plan's own cause."""
_UNCHANGED = "Nothing was changed on the cluster."
_IN_PLACE = "Every partition is where the plan says"
SWEEP = "Run sweep_throttles when the cause is gone: it takes back what is owed."


def summarize_status(facts: StatusFacts) -> StatusSummary:
    """The plan's state in a few lines. What was not verified is never called good."""
    return _with_attempt(_BY_STATE[facts.state](facts), facts)


def _with_attempt(summary: StatusSummary, facts: StatusFacts) -> StatusSummary:
    """A plan's state with what was last tried with it, and what that leaves."""
    account = facts.account
    if account is not None and account.barred is Barred.SUPERSEDED:
        text = superseded_text(account.overtaken_by or "")
        return StatusSummary(Tone.BAD, "Superseded", text, _UNCHANGED, PLAN_ANEW)
    last = account.attempt if account is not None else None
    if last is None or last.cause.kind in _OF_THE_PLAN:
        return summary
    cause, tried = last.cause, tried_text(last)
    step = cause.remedy or summary.next_step
    match facts.state:
        case PlanState.PLANNED | PlanState.APPROVED:
            left = cause.left or summary.state_left
            tone = Tone.CALM if cause.kind.by_person else Tone.BAD
            here = f"{step} Then run it." if step else "Run it."
            return StatusSummary(tone, label_of(cause.kind), tried, left, step, Control.RUN, here)
        case PlanState.PAUSED:
            return replace(summary, tone=Tone.BAD, headline=f"{tried} {summary.headline}")
        case PlanState.FAILED | PlanState.CANCELLED if cause.kind is not CauseKind.REJECTED:
            here = " ".join(filter(None, (cause.remedy, summary.step_here)))
            return replace(summary, headline=tried, next_step=step, step_here=here)
        case PlanState.DONE if summary.tone is not Tone.GOOD:
            return replace(summary, headline=f"{tried} {summary.headline}")
    return summary


def _planned(facts: StatusFacts) -> StatusSummary:
    if facts.dry_run is None:
        return StatusSummary(
            Tone.CALM,
            "Planned",
            "The plan is made; its dry run is still to come.",
            _UNCHANGED,
            "Wait for the dry run.",
        )
    if not facts.dry_run.get("ok"):
        return _refused(facts)
    if facts.request.get("dry_run") and facts.for_window:
        unknown = NeedsPerson(Why.NOT_KNOWN, "see its page", handed_over=True)
        words = paused_text(facts.outlook or unknown)
        return StatusSummary(
            Tone.GOOD,
            "Waits for its window",
            words.text,
            _UNCHANGED,
            words.next_step,
            Control.RUN,
            words.step_here,
        )
    if facts.request.get("dry_run"):
        return StatusSummary(
            Tone.GOOD,
            "Ready",
            found_sentence(facts.findings),
            _UNCHANGED,
            "Run it as it is: on its page, or by control_reassignment with action run.",
            Control.RUN,
            "Run it as it is.",
        )
    step = (
        f"Approve it in Airflow, task approve. The approval holds for hash "
        f"{facts.plan_hash[:12]} only, and for the rate and the window that it names."
        if facts.request.get("approval")
        else "Nothing: the run goes on by itself."
    )
    return StatusSummary(Tone.CALM, "Ready", found_sentence(facts.findings), _UNCHANGED, step)


def _refused(facts: StatusFacts) -> StatusSummary:
    errors = sum(g.count for g in facts.findings if g.kind.severity is Severity.ERROR)
    return StatusSummary(
        Tone.BAD,
        "Refused",
        f"The dry run refuses this plan: {count_text(errors, 'error')}.",
        _UNCHANGED,
        "Each finding below names its remedy. Then plan anew.",
    )


def _approved(facts: StatusFacts) -> StatusSummary:
    return StatusSummary(
        Tone.CALM,
        "Approved",
        "The plan is approved and about to start.",
        _UNCHANGED,
        "Nothing: the run goes on by itself.",
    )


def _running(facts: StatusFacts) -> StatusSummary:
    done, left = f"{_done_of_all(facts)} so far.", _throttle_left(facts)
    worst = next((each for each in facts.hurts if each.kind is not HurtKind.ALERT), None)
    if worst is not None:
        text, step = hurt_text(worst)
        return StatusSummary(Tone.BAD, "Running", f"{text} {done}", left, step)
    step = "Watch the log of the task progress in Airflow."
    return StatusSummary(Tone.BUSY, "Running", done, left, step)


def _paused(facts: StatusFacts) -> StatusSummary:
    headline = f"The plan is paused: {facts.cause}. {_done_of_all(facts)}."
    next_step = "Resume the plan, or cancel it, with control_reassignment."
    if facts.outlook is not None:
        refused = facts.account.resume_refused if facts.account is not None else None
        words = paused_text(facts.outlook, refused)
        headline, next_step = f"{words.text} {_done_of_all(facts)}.", words.next_step
    left = f"Nothing of it is in flight. {_throttle_left(facts)}"
    return StatusSummary(
        Tone.CALM,
        "Paused",
        headline,
        left,
        next_step,
        Control.RESUME,
        "Resume the plan, or cancel it.",
    )


def _done(facts: StatusFacts) -> StatusSummary:
    verified = facts.verification is not None and facts.verification.get("ok")
    if facts.finishing and (facts.verification is None or facts.owed):
        return StatusSummary(
            Tone.BUSY,
            "Finishing",
            "Every move has ended. The plan's run takes throttles back and proves the result.",
            _throttle_left(facts),
            "Wait for the proof.",
        )
    if not verified:
        what = "did not verify" if facts.verification else "was not verified"
        step = "See below what differs, or compare with kafka-reassign-partitions --verify."
        return _bad(facts, "Not verified", f"Every move ended, but the plan {what}.", step)
    if facts.owed:
        return _bad(facts, "Throttles owed", f"{_IN_PLACE}, but {_owed(facts)}.", SWEEP)
    if facts.drained is not None and not facts.drained["as_planned"]:
        return _not_empty(facts, facts.drained)
    if facts.demoted is not None and not facts.demoted["as_planned"]:
        text = f"{_IN_PLACE}. {demotion_text(facts.demoted)}"
        return _bad(facts, "Not demoted", text, "Trigger a new run of the demotion.")
    about_elections = (facts.request or {}).get("action") == Action.ELECT_PREFERRED
    if about_elections and facts.leaders is not None and (missed := not_elected(facts.leaders)):
        text = f"Not every preferred leader leads: {not_elected_text(missed)}."
        return _bad(facts, "Not elected", text, "Trigger a new run of it when they are in sync.")
    if not facts.moves and facts.not_reached:
        return StatusSummary(
            Tone.CALM,
            "Done",
            _not_reached(facts.not_reached),
            _UNCHANGED,
            "Change what is in the way, or ask for less; then plan anew.",
        )
    if not facts.moves:
        return StatusSummary(
            Tone.GOOD,
            "Done",
            "The cluster was already as asked: nothing had to move.",
            _UNCHANGED,
            "Nothing.",
        )
    took = f", after {duration_text(facts.elapsed_s)}" if facts.elapsed_s is not None else ""
    gone = len((facts.verification or {}).get("gone", ()))
    moved = count_text(facts.moves - gone, "partition is", "partitions are")
    return StatusSummary(
        Tone.GOOD,
        "Done",
        f"{moved} where the plan says{took}. A fresh read proves it.",
        f"{_gone(gone)}{_unpaid(facts)}{_out_of_isr(facts)}{_throttle_left(facts)}",
        f"{_after_done(facts)} To roll it back: {_roll_back(facts)}.",
        Control.ROLL_BACK,
        f"{_after_done(facts)} Roll it back, if it is not to stay.",
    )


def _not_reached(lines: Sequence[str]) -> str:
    """What is in the way first; the page and the report list all of it."""
    more = f" Other reasons: {len(lines) - 1:,}, listed below." if len(lines) > 1 else ""
    return (
        f"Nothing can be moved, and what was asked for is not reached. {sentence(lines[0])}{more}"
    )


def _not_empty(facts: StatusFacts, drained: Mapping[str, Any]) -> StatusSummary:
    what, where = "the brokers", "on the brokers to be drained"
    if drained.get("log_dirs"):
        what, where = "the log dirs", "in the log dirs to be emptied"
    found = f"{count_text(len(drained['left']), 'replica was', 'replicas were')} found {where}"
    if not drained["left"]:
        found = f"what lies {where} could not be read"
    step = f"See below what was found. Do not take {what} away; trigger a new run of the action."
    if drained["follow_up"] is not None:
        step = f"See the report of plan {drained['follow_up']}, which follows this one up. {step}"
    label = "Not empty" if drained["left"] else "Not proved"
    return _bad(facts, label, f"{_IN_PLACE}, but {found}.", step)


def _bad(facts: StatusFacts, label: str, headline: str, step: str) -> StatusSummary:
    """Of a plan whose moves have ended."""
    return StatusSummary(Tone.BAD, label, headline, _throttle_left(facts), step)


def _gone(partitions: int) -> str:
    """A sentence on partitions that need no moving any more; "" = none."""
    if not partitions:
        return ""
    are = count_text(partitions, "partition of the plan is", "partitions of the plan are")
    return f"{are} gone, with the topic: nothing of it is left to move. "


def _unpaid(facts: StatusFacts) -> str:
    """A sentence on what a budget has left on drained brokers; "" = nothing."""
    found = len((facts.drained or {}).get("unpaid", ()))
    if not found:
        return ""
    stay = count_text(found, "replica stays", "replicas stay")
    return f"{stay} on the brokers to be drained, because the budget is spent: they are not empty. "


def _out_of_isr(facts: StatusFacts) -> str:
    """A sentence on partitions that are done with a replica out of the ISR; "" = none."""
    found = len((facts.verification or {}).get("findings", ()))
    if not found:
        return ""
    return f"{count_text(found, 'partition has', 'partitions have')} replicas out of the ISR. "


def _after_done(facts: StatusFacts) -> str:
    if not _out_of_isr(facts):
        return "Nothing."
    return "See below which replicas are out of the ISR, and check their brokers."


def _failed(facts: StatusFacts) -> StatusSummary:
    if not facts.started:
        if facts.dry_run is not None and not facts.dry_run.get("ok"):
            return _refused(facts)
        return StatusSummary(
            Tone.BAD,
            "Failed",
            f"The plan failed before it started: {facts.cause}.",
            _UNCHANGED,
            "Remove the cause, then trigger a new run: it plans with what is there then.",
        )
    return _stopped(facts, "Failed", f"The plan failed: {facts.cause}.")


def _stopped(facts: StatusFacts, label: str, headline: str) -> StatusSummary:
    """Of a plan that has changed something, and ended before all of it was done."""
    left, step, here = _left_by(facts), _after_failure(facts), _after_failure(facts, here=True)
    return StatusSummary(Tone.BAD, label, headline, left, step, Control.ROLL_BACK, here)


def _cancelled(facts: StatusFacts) -> StatusSummary:
    if not facts.started:
        by = f" by {facts.cancelled_by}" if facts.cancelled_by else ""
        rejected = facts.end_reason is EndReason.REJECTED
        what = f"rejected{by}" if rejected else f"cancelled: {facts.cause}"
        return StatusSummary(
            Tone.CALM, "Cancelled", f"The plan was {what}.", _UNCHANGED, "Nothing is left to do."
        )
    return _stopped(facts, "Cancelled", f"The plan was cancelled: {facts.cause}.")


def _roll_back(facts: StatusFacts) -> str:
    return f"reassign_partitions with action rollback and plan_id {facts.plan_id}"


def _rolled_back(facts: StatusFacts) -> StatusSummary:
    return StatusSummary(
        Tone.CALM,
        "Rolled back",
        f"The plan was rolled back: {facts.cause}.",
        _throttle_left(facts),
        "Nothing is left to do.",
    )


_BY_STATE = {
    PlanState.PLANNED: _planned,
    PlanState.APPROVED: _approved,
    PlanState.RUNNING: _running,
    PlanState.PAUSED: _paused,
    PlanState.DONE: _done,
    PlanState.FAILED: _failed,
    PlanState.CANCELLED: _cancelled,
    PlanState.ROLLED_BACK: _rolled_back,
}


def _done_of_all(facts: StatusFacts) -> str:
    total = facts.moves
    return f"{facts.moves_in(MoveState.DONE):,} of {count_text(total, 'move is', 'moves are')} done"


def _left_by(facts: StatusFacts) -> str:
    untouched = facts.moves_in(MoveState.PENDING, MoveState.CANCELLED)
    failed = facts.moves_in(MoveState.FAILED, MoveState.SUPERSEDED)
    flying = facts.moves_in(MoveState.ADMITTED)
    gone = facts.moves_in(MoveState.GONE)
    parts = [f"{_done_of_all(facts)} and stay where they are now."]
    if gone:
        parts.append(f"{count_text(gone, 'partition is', 'partitions are')} gone.")
    if untouched:
        parts.append(f"{count_text(untouched, 'partition is', 'partitions are')} as before.")
    if failed:
        parts.append(f"{count_text(failed, 'move')} failed: see why below.")
    if flying:
        parts.append(f"{count_text(flying, 'move')} may still be in flight.")
    return " ".join([*parts, _throttle_left(facts)])


def _after_failure(facts: StatusFacts, *, here: bool = False) -> str:
    """What to do.

    :param here: for a reader who has the button that rolls the plan back.
    """
    steps = [SWEEP] if facts.owed and not facts.finishing else []
    if facts.moves_in(MoveState.ADMITTED):
        steps.append("See with kafka-reassign-partitions --list what is still in flight.")
    left = facts.moves - facts.moves_in(MoveState.DONE, MoveState.GONE)
    again = (
        "Trigger a new run to move the rest, or take" if left else "Nothing is left to move. Take"
    )
    if not facts.moves_in(MoveState.DONE):
        steps.append("Remove the cause, then trigger a new run.")
    elif here:
        rest = "Plan again to move the rest, or roll" if left else "Nothing is left to move. Roll"
        steps.append(f"{rest} back what moved.")
    else:
        steps.append(f"{again} back what moved: {_roll_back(facts)}.")
    return " ".join(steps)


def _owed(facts: StatusFacts) -> str:
    return count_text(facts.owed, "throttle setting is owed", "throttle settings are owed")


def _throttle_left(facts: StatusFacts) -> str:
    if not facts.throttles:
        return "No throttle was set."
    if not facts.owed:
        return "None of its throttles is owed."
    if facts.state.active:
        return f"{count_text(facts.owed, 'throttle setting')} set, as its ledger has it."
    if facts.finishing:
        settings = count_text(facts.owed, "throttle setting is", "throttle settings are")
        return f"{settings} still to be taken back by its run."
    return f"{_owed(facts)[:1].upper()}{_owed(facts)[1:]}."
