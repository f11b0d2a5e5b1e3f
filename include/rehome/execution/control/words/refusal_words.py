"""Why what is asked of a plan is refused, and what to do, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rehome.domain.text import clock_text, count_text
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
from rehome.ledger.stores.requests import ONLY_WITH_OPEN_PLANS

_STATE_STEPS: Mapping[NotPossible, str] = {
    NotPossible.ENDED: "What it has moved can be taken back: by Roll back… on the plan's page, or "
    "by control_reassignment with action roll_back.",
    NotPossible.NOTHING_TO_PAUSE: "Nothing of the plan has started, so there is "
    "nothing to pause. To stop it for good, cancel it.",
    NotPossible.NOTHING_TO_RESUME: "The plan has not started, so there is nothing to "
    "resume. The page of the plan says what it waits for.",
    NotPossible.BEGUN: "A run has begun the plan already: see that run. Resume the plan if it "
    "is paused.",
    NotPossible.TAKES_BACK: "Roll the plan back that it takes back.",
    NotPossible.ACTIVE: "Cancel it first, then roll it back.",
    NotPossible.TAKEN_BACK: "The plan has been taken back already.",
    NotPossible.NEVER_STARTED: "The plan never started: there is nothing to take back.",
}
"""What to do, of reasons that need no more than that."""
_MISSING: Mapping[PaceMissing, str] = {
    PaceMissing.THROTTLE: "change_throttle needs a throttle in bytes per second.",
    PaceMissing.MOVES: "change_moves needs max_moves_per_broker.",
    PaceMissing.NOTHING_TO_CHANGE: "The plan runs without a throttle, so there is none to change. "
    "Run it, or pause and resume it, with a throttle: that run asks for an approval where it needs "
    "one.",
}


def state_text(refusal: StateRefusal) -> tuple[str, str]:
    """What is not possible, and what to do."""
    record = refusal.record
    ended = " and has ended" if record.state.ended else ""
    return (
        f"Plan {record.plan_id} is {record.state}{ended} ({record.cause}): {refusal.control} is "
        "not possible",
        _state_step(refusal),
    )


def _state_step(refusal: StateRefusal) -> str:
    record, other = refusal.record, refusal.other
    if refusal.why is NotPossible.OTHER_ACTIVE and other is not None:
        return f"Plan {other.plan_id} is {other.state} on this cluster, and has to end first."
    if refusal.why is not NotPossible.CARRIED_OUT:
        return _STATE_STEPS[refusal.why]
    step = f"Run {record.driver} carries it out. If it has failed, clear its failed task."
    if record.for_window_at is not None:
        step += " Else the next window carries the plan out."
    return step


def continue_text(refusal: ContinueRefusal) -> tuple[str, str]:
    """Why no run may resume a plan, and what to do."""
    record, until = refusal.record, _clock(refusal.lease_ends_at)
    match refusal.why:
        case NotContinued.DRIVEN:
            return (
                f"Run {record.driver} drives plan {record.plan_id}, so no other run can resume it",
                f"Follow that run. If it is dead, resume the plan after {until}.",
            )
        case NotContinued.TAKEN_UP:
            return (
                f"Run {record.driver} carries plan {record.plan_id} out already",
                "Follow that run. If it has failed, clear its failed task, with what comes after "
                "it.",
            )
        case NotContinued.NOT_OPEN:
            return (
                f"No run can resume plan {record.plan_id}: it is {record.state} ({record.cause})",
                ONLY_WITH_OPEN_PLANS,
            )
    return (
        f"Plan {record.plan_id} is paused, but run {record.driver}, which drove it, has not taken "
        "its throttles back yet",
        f"Resume the plan when that run has ended; if it is dead, after {until}.",
    )


def pace_text(refusal: PaceRefusal) -> str:
    """Why a plan cannot, or may not, have the pace that is asked for, and what to do."""
    match refusal:
        case BelowInflow():
            return (
                f"At {refusal.rate} bytes per second the copies in flight would hardly ever end: "
                f"at one broker they grow by {refusal.inflow:.0f} bytes per second. Ask for more "
                f"than {refusal.least:.0f}, or pause the plan. The throttle stays as it is."
            )
        case AboveApproval():
            return (
                f"{refusal.by} approved {_above_approval_text(refusal)}. "
                "The throttle stays as it is. Pause the plan and resume it with the higher "
                "throttle: that run asks for another approval."
            )
        case MoreThanApproved():
            return (
                f"{refusal.by} approved {count_text(refusal.most, 'move')} at once at most for "
                "each broker and direction, and nothing else limits the plan. They stay as they "
                "are. Pause the plan and resume it with more: that run asks for another approval."
            )
    return _MISSING[refusal]


def _above_approval_text(refusal: AboveApproval) -> str:
    if not refusal.brokers:
        return f"at most {refusal.was.rate_bytes_per_s} bytes per second"
    above = ", ".join(f"broker {broker} ({side})" for side, broker in refusal.brokers)
    return f"less for {above}: {refusal.was.pace}; {refusal.was.by_broker}"


def _clock(at: datetime | None) -> str:
    return "" if at is None else clock_text(at)
