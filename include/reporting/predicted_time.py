"""The predicted time of a plan, and what came of it."""

from __future__ import annotations

from include.domain.run.flows import RateReason
from include.domain.run.states import PlanState
from include.domain.time_range import TimeRange
from include.reporting.data import ReportData


def predicted_time(data: ReportData) -> TimeRange | None:
    """What the dry run predicted of the whole plan; None where it looked at a part, or not yet."""
    tried = data.dry_run or {}
    found = tried.get("predicted")
    if not found or tried.get("partitions") != len(data.plan.moves):
        return None
    return TimeRange(found["least_s"], found["most_s"])


def not_comparable(data: ReportData) -> str:
    """Why the time taken says nothing about the prediction; "" = it does."""
    if data.state.ended and data.state is not PlanState.DONE:
        return f"The plan is {data.state}: its time is not compared with the prediction."
    if any(event.kind == PlanState.PAUSED for event in data.events):
        return "The plan has paused: its time is not compared with the prediction."
    if any(change.reason is RateReason.REQUESTED for change in data.rates):
        return "Its rate was changed on request: its time is not compared with the prediction."
    return ""


def outcome(predicted: TimeRange, seconds: float, *, ended: bool) -> str:
    """How a time compares with the range."""
    if seconds > predicted.most_s:
        return "longer than predicted"
    if not ended:
        return "so far"
    return "as predicted" if predicted.holds(seconds) else "shorter than predicted"
