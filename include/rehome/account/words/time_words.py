"""Times of a plan in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.account.account import PlanAccount
from rehome.account.known import Fact, Known
from rehome.account.times import Elapsed, EndRange, Incomparable, Predicted
from rehome.account.words.unknown_words import WHY_UNKNOWN
from rehome.domain.run.states import PlanState
from rehome.domain.text import count_text, duration_text
from rehome.domain.time_range import TimeRange


def end_of(ends: Fact[EndRange]) -> tuple[EndRange | None, str]:
    """When the last copy is complete; or None, and why that is not known."""
    if isinstance(ends, Known):
        return ends.value, ""
    return None, WHY_UNKNOWN[ends.why]


def predicted_text(predicted: Fact[Predicted]) -> str:
    """``1 min 2 s to 2 min 23 s``; "" = it is not known."""
    if not isinstance(predicted, Known):
        return ""
    part = " for what was left when it went on" if predicted.value.a_part else ""
    return f"{predicted.value.time}{part}"


def elapsed_text(elapsed: Elapsed | None) -> str:
    """``4 min 13 s, 1 min 2 s of it paused``; "–" before the start."""
    if elapsed is None:
        return "–"
    text = duration_text(elapsed.total.total_seconds())
    if not elapsed.pauses:
        return text
    paused = duration_text(elapsed.paused.total_seconds())
    times = "" if elapsed.pauses == 1 else f" in {count_text(elapsed.pauses, 'pause')}"
    return f"{text}, {paused} of it paused{times}"


_INCOMPARABLE: Mapping[Incomparable, Callable[[PlanState], str]] = {
    Incomparable.ENDED_OTHERWISE: lambda state: f"The plan is {state.replace('_', ' ')}",
    Incomparable.PAUSED: lambda _: "The plan has paused",
    Incomparable.RATE_CHANGED: lambda _: "Its rate was changed on request",
}


def incomparable_text(account: PlanAccount) -> str:
    """Why the time taken says nothing about the prediction; "" = it does."""
    if account.incomparable is None:
        return ""
    why = _INCOMPARABLE[account.incomparable](account.state)
    return f"{why}: its time is not compared with the prediction."


def time_taken(account: PlanAccount) -> str:
    """How long it took against what was predicted; "" before the start, and where nothing moves."""
    elapsed, predicted = account.elapsed, account.predicted_of_all
    if elapsed is None or not account.moves.total:
        return ""
    text = elapsed_text(elapsed)
    took = f"It took {text}" if account.state.ended else f"It has taken {text} so far"
    if why_not := incomparable_text(account):
        return f"{took}. {why_not}"
    if predicted is None:
        return f"{took}."
    compared = outcome(predicted, elapsed.total.total_seconds(), ended=account.state.ended)
    return f"{took}; predicted was {predicted}: {compared}."


def outcome(predicted: TimeRange, seconds: float, *, ended: bool) -> str:
    """How a time compares with the range, and by how much it lies outside."""
    if seconds > predicted.most_s:
        return f"longer than predicted by {_by(seconds - predicted.most_s, predicted.most_s)}"
    if not ended:
        return "so far"
    if predicted.holds(seconds):
        return "as predicted"
    return f"shorter than predicted by {_by(predicted.least_s - seconds, predicted.least_s)}"


def _by(seconds: float, bound_s: float) -> str:
    """How far outside: ``12 min (8 %)``."""
    percent = f"{100 * seconds / bound_s:.0f} %" if bound_s else "100 %"
    return f"{duration_text(seconds)} ({percent})"
