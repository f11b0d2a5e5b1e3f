"""The predicted time of a plan, and what came of it."""

from __future__ import annotations

from rehome.account.account import PlanAccount
from rehome.account.known import Known
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import PlanState
from rehome.domain.time_range import TimeRange
from rehome.reporting.data import ReportData
from rehome.reporting.number_text import duration_text, percent_text


def predicted_time(data: ReportData) -> TimeRange | None:
    """What a dry run predicted of the whole plan; None = it saw only a part, or there was none."""
    if data.account is not None:
        return of_all(data.account)
    found = (data.dry_run or {}).get("predicted")  # planned by hand: the ledger has no record
    return TimeRange(found["least_s"], found["most_s"]) if found else None


def of_all(account: PlanAccount) -> TimeRange | None:
    """What was predicted of the whole plan; None = not known."""
    found = account.predicted
    return found.value.time if isinstance(found, Known) and not found.value.a_part else None


def not_comparable(data: ReportData) -> str:
    """Why the time taken says nothing about the prediction; "" = it does."""
    if data.state.ended and data.state is not PlanState.DONE:
        state = data.state.replace("_", " ")
        return f"The plan is {state}: its time is not compared with the prediction."
    if any(event.kind is EventKind.PAUSED for event in data.events):
        return "The plan has paused: its time is not compared with the prediction."
    if any(change.reason is RateReason.REQUESTED for change in data.rates):
        return "Its rate was changed on request: its time is not compared with the prediction."
    return ""


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
    return f"{duration_text(seconds)} ({percent_text(seconds, bound_s)})"
