"""What may be asked of a plan now, and what it would lead to, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rehome.account.known import Known
from rehome.account.words.figure_words import (
    elapsed_text,
    in_place_sentence,
    left_sentence,
    predicted_text,
)
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.run.paused.paused_plan import GoesOn, Outlook
from rehome.domain.run.paused.paused_text import handed_over_text
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.domain.text import bytes_text, count_text, duration_text
from rehome.execution.access.connection_policy import ConnectionPolicy, PolicyError
from rehome.page.plan_view import PlanView

BUTTONS = {
    Control.RUN: "Run the plan",
    Control.NEXT_WINDOW: "Hand it over",
    Control.PAUSE: "Pause the plan",
    Control.RESUME: "Resume the plan",
    Control.CHANGE_THROTTLE: "Set the throttle",
    Control.CHANGE_MOVES: "Set the moves at once",
    Control.CANCEL: "Cancel the plan",
    Control.ROLL_BACK: "Roll the plan back",
}
"""What the button says that makes the request."""
LABELS = {
    Control.RUN: "Run",
    Control.NEXT_WINDOW: "Next window",
    Control.PAUSE: "Pause",
    Control.RESUME: "Resume",
    Control.CHANGE_THROTTLE: "Throttle",
    Control.CHANGE_MOVES: "Moves at once",
    Control.CANCEL: "Cancel",
    Control.ROLL_BACK: "Roll back",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """One request that a person can make of a plan.

    :param effects: what will happen, one sentence each.
    :param refusal: why it is not possible; "" = it is.
    :param asks_rate: whether a throttle goes with it; ``rate_bytes_per_s`` is today's.
    :param rates_by_broker: today's throttles of single brokers; None = none go with it.
    :param moves_per_broker: today's moves at once; None = none go with it.
    """

    control: Control
    label: str
    button: str
    effects: tuple[str, ...]
    refusal: str = ""
    asks_rate: bool = False
    rate_bytes_per_s: int | None = None
    rates_by_broker: BrokerRates | None = None
    moves_per_broker: int | None = None


def offer(
    view: PlanView,
    control: Control,
    policy: ConnectionPolicy,
    rate_bytes_per_s: int | None = None,
    window: Outlook | None = None,
    before: Sequence[str] = (),
    by_broker: BrokerRates | None = None,
) -> Offer:
    """What one request would lead to.

    :param rate_bytes_per_s: the throttle that goes with it; None = none was named.
    :param window: which one takes it up, or why none does; None = that is not known.
    :param by_broker: throttles of single brokers that go with it; None = none were named.
    :param before: plans that windows of the cluster carry out first.
    """
    if control is Control.NEXT_WINDOW:
        effects = _next_window(view, window, before)
    else:
        effects = _EFFECTS[control](view)
    return Offer(
        control,
        LABELS[control],
        BUTTONS[control],
        tuple(filter(None, effects)),
        _refusal(view, control, policy, rate_bytes_per_s, by_broker or NO_OWN_RATES),
        asks_rate=control not in (Control.PAUSE, Control.CHANGE_MOVES, Control.CANCEL),
        rate_bytes_per_s=view.account.throttle_bytes_per_s,
        rates_by_broker=view.record.asked_rates_by_broker
        if control is Control.CHANGE_THROTTLE
        else None,
        moves_per_broker=view.record.asked_moves_per_broker
        if control is Control.CHANGE_MOVES
        else None,
    )


def _not_any_more(view: PlanView, control: Control) -> str:
    barred = view.account.barred
    if barred is not None and control in (Control.RUN, Control.NEXT_WINDOW):
        return f"The plan is {barred}: make it anew."
    return f"The plan is {view.record.state} by now: this is not possible any more."


def _refusal(
    view: PlanView,
    control: Control,
    policy: ConnectionPolicy,
    rate_bytes_per_s: int | None,
    by_broker: BrokerRates,
) -> str:
    if control not in view.account.controls:
        return _not_any_more(view, control)
    limit = _approved_limit(view) if control is Control.CHANGE_THROTTLE else None
    if limit is not None and rate_bytes_per_s is not None and rate_bytes_per_s > limit:
        return f"{view.record.approved_by} approved {bytes_text(limit)}/s at most."
    try:
        policy.require_control(control, rate_bytes_per_s, by_broker)
        if control in (Control.RUN, Control.NEXT_WINDOW):
            rate = rate_bytes_per_s or view.record.asked_rate_bytes_per_s
            free = view.record.unthrottled and rate_bytes_per_s is None
            policy.require_carried_out(view.record.action, rate, unthrottled=free)
    except PolicyError as error:
        return " ".join(error.texts)
    return ""


def _approved_limit(view: PlanView) -> int | None:
    """The highest throttle that a person has approved; None = no person was asked."""
    approval = view.record.approval
    return approval.terms.rate_bytes_per_s if approval and approval.by_person else None


def _run(view: PlanView) -> tuple[str, ...]:
    left = bytes_text(view.account.bytes.planned)
    predicted = predicted_text(view.account.predicted)
    asks = "A person approves it first." if view.record.request.get("approval") else ""
    return (
        f"A new run of reassign_partitions carries out this very plan: "
        f"{count_text(view.account.moves.total, 'move')}, {left} to copy.",
        f"The dry run predicted {predicted}; the new run tries it out again, and stops before "
        "anything changes where a partition has changed since."
        if predicted
        else "",
        asks,
        "Its window has closed: it runs without one."
        if view.record.window_end is not None and view.record.window_end <= datetime.now(UTC)
        else "",
    )


def _next_window(view: PlanView, window: Outlook | None, before: Sequence[str]) -> tuple[str, ...]:
    moves, planned = view.account.moves.total, bytes_text(view.account.bytes.planned)
    size = f"{count_text(moves, 'move')}, {planned} to copy"
    return (
        "It is not known which window takes it up." if window is None else handed_over_text(window),
        f"Its run carries out this very plan, and makes none of its own: {size}.",
        f"These plans go first, one a window: {', '.join(before)}." if before else "",
        _lasts(view, window),
        "It tries the plan out again, and gives it up where a partition has changed by then.",
        "A person approves it first, once the window is open."
        if view.record.request.get("approval")
        else "",
    )


def _lasts(view: PlanView, window: Outlook | None) -> str:
    """How long the window is, and whether all of the plan fits."""
    if not isinstance(window, GoesOn) or window.closes_at is None:
        return ""
    lasts_s = (window.closes_at - window.opens_at).total_seconds()
    prediction = view.account.predicted
    long = isinstance(prediction, Known) and prediction.value.time.most_s > lasts_s
    text = f"The window is open for {duration_text(lasts_s)}."
    if not long or window.stuck:
        return text
    predicted = predicted_text(prediction)
    return f"{text} The dry run predicted {predicted}: what does not fit goes on in the one after."


def _pause(view: PlanView) -> tuple[str, ...]:
    waiting = view.account.moves.count(MoveState.PENDING)
    flying, free = (
        count_text(view.account.moves.in_flight, "move") + " in flight",
        view.record.unthrottled,
    )
    return (
        f"{flying} go on until they have ended, {view.record.goes_on}."
        if view.account.moves.in_flight
        else "",
        f"{count_text(waiting, 'move')} wait until the plan is resumed; no window resumes it "
        "before.",
        "" if free else "Its throttles are taken back once nothing is in flight.",
    )


def _resume(view: PlanView) -> tuple[str, ...]:
    waiting = count_text(view.account.moves.open, "move")
    if view.record.state is PlanState.RUNNING:
        return (f"The request to pause is withdrawn: {waiting} go on.",)
    return (
        f"A new run of reassign_partitions resumes {waiting}.",
        left_sentence(view.account.bytes),
        "Where a person had to approve the plan, and the throttle or the window differ, that run "
        "asks for another approval.",
    )


def _change_throttle(view: PlanView) -> tuple[str, ...]:
    limit = _approved_limit(view)
    return (
        "The next poll sets it on every broker of the plan; the governor keeps to it from then on.",
        f"{view.record.approved_by} approved {bytes_text(limit)}/s at most. For more, pause the "
        "plan and resume it: that run asks for another approval."
        if limit is not None
        else "",
        left_sentence(view.account.bytes),
    )


def _change_moves(view: PlanView) -> tuple[str, ...]:
    approved = _approved_moves(view)
    return (
        "From the next poll on no more is started at a broker that has as many in flight; what is "
        "in flight goes on.",
        f"{view.record.approved_by} approved {count_text(approved, 'move')} at most. For more, "
        "pause the plan and resume it: that run asks for another approval."
        if approved is not None
        else "",
        left_sentence(view.account.bytes),
    )


def _approved_moves(view: PlanView) -> int | None:
    """The most that a person has approved; None = no person was asked, or a throttle limits it."""
    approval = view.record.approval
    return approval.terms.unthrottled if approval and approval.by_person else None


def _cancel(view: PlanView) -> tuple[str, ...]:
    done = view.account.moves.count(MoveState.DONE)
    if view.record.started_at is None:
        return ("Nothing of it has started: nothing on the cluster changes.",)
    flying, waiting = view.account.moves.in_flight, view.account.moves.count(MoveState.PENDING)
    return (
        f"{count_text(flying, 'move')} in flight {'is' if flying == 1 else 'are'} taken back: the "
        "brokers delete what was copied."
        if flying
        else "",
        f"{count_text(waiting, 'move')} that wait never start." if waiting else "",
        f"{count_text(done, 'finished move')} stay where they are." if done else "",
        "Its run ends as failed."
        if view.record.unthrottled
        else "Its throttles are taken back, and its run ends as failed.",
    )


def _roll_back(view: PlanView) -> tuple[str, ...]:
    done = view.account.moves.count(MoveState.DONE)
    took = elapsed_text(view.account.elapsed)
    return (
        f"A new run of reassign_partitions makes a plan that takes {count_text(done, 'move')} "
        f"back. {in_place_sentence(view.account.bytes)} The plan took {took}.",
        "It goes through the same gates and the same dry run; partitions that have changed since "
        "are left alone and named.",
    )


_EFFECTS = {
    Control.RUN: _run,
    Control.PAUSE: _pause,
    Control.RESUME: _resume,
    Control.CHANGE_THROTTLE: _change_throttle,
    Control.CHANGE_MOVES: _change_moves,
    Control.CANCEL: _cancel,
    Control.ROLL_BACK: _roll_back,
}
