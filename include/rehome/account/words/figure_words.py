"""Figures of a plan in words: bytes, pace and times; and why one of them is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.account.account import PlanAccount
from rehome.account.known import Fact, Known, NotKnown
from rehome.account.pace import PlanPace
from rehome.account.plan_bytes import Copying, PlanBytes
from rehome.account.times import Elapsed, EndRange, Incomparable, Predicted
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import PlanState
from rehome.domain.text import bytes_text, count_text, duration_text
from rehome.domain.time_range import TimeRange

WHY_UNKNOWN: Mapping[NotKnown, str] = {
    NotKnown.NOT_RECORDED: "nothing was recorded, by an earlier version of Rehome, or because no "
    "poll had read the copies",
    NotKnown.NOT_POLLED: "no poll has read the cluster yet",
    NotKnown.NOT_TRIED: "no dry run has tried the plan out yet",
    NotKnown.NEVER_ENDS: "the plan would never end as things stand: see the findings of its dry "
    "run",
    NotKnown.BROKER_DEAD: "moves wait for a broker that is not alive",
    NotKnown.LEADERLESS: "moves wait for partitions that have no leader",
    NotKnown.OUTPACED: "producers write more than the throttle lets through",
    NotKnown.HELD: "the plan is held back, and nothing starts meanwhile",
    NotKnown.NOT_RUNNING: "the plan does not run",
    NotKnown.ONE_POLL: "there was one poll so far, and nothing to compare it with",
    NotKnown.OLD_POLL: "the newest poll is more than a minute old",
    NotKnown.NOTHING_COMES: "no copy has gained anything of late, or producers write more than the "
    "throttle lets through",
    NotKnown.AFTER_WINDOW: "not all ends before the window closes",
    NotKnown.PAST: "the predicted end has passed, and no poll has predicted another since",
    NotKnown.BROKER_SILENT: "the broker that sends this copy, or the one that receives it, did not "
    "answer the newest poll",
    NotKnown.NO_SNAPSHOT: "there is no snapshot yet: collect_snapshots takes them",
    NotKnown.NOT_JUDGED: "watch_clusters has judged no snapshot of this cluster yet",
    NotKnown.SIZES_UNREAD: "a broker has not said how full its disks are",
}
"""After "not known:"."""

UNTIL_SILENT = "what came until a broker did not answer the newest poll"
"""Of the rate of a partition that is not known up to the newest poll."""


def in_place_text(plan_bytes: PlanBytes) -> str:
    """``91 MB of 97 MB are in place``; or why that is not known; or that there are none."""
    copying = plan_bytes.copying
    if isinstance(copying, Known):
        whole = copying.value
        if not whole.total:
            return "there are no bytes to copy"
        return f"{bytes_text(whole.in_place)} of {bytes_text(whole.total)} are in place"
    return f"how many bytes the new replicas hold is not known: {WHY_UNKNOWN[copying.why]}"


def in_place_sentence(plan_bytes: PlanBytes) -> str:
    """The same as a sentence."""
    return _sentence(in_place_text(plan_bytes))


def left_sentence(plan_bytes: PlanBytes) -> str:
    """``20 MB are left to copy.``"""
    if isinstance(plan_bytes.copying, Known):
        if not plan_bytes.copying.value.total:
            return _sentence(in_place_text(plan_bytes))
        return f"{bytes_text(plan_bytes.copying.value.left)} are left to copy."
    return _sentence(
        f"how much is left to copy is not known: {WHY_UNKNOWN[plan_bytes.copying.why]}"
    )


def total_text(plan_bytes: PlanBytes) -> str:
    """What the total consists of: ``86 MB planned, 11 MB grown since``; "" = it is as planned, or
    not known.
    """
    if not isinstance(plan_bytes.copying, Known):
        return ""
    changes = _changes(plan_bytes, plan_bytes.copying.value)
    return f"{bytes_text(plan_bytes.planned)} planned{''.join(changes)}" if changes else ""


def _changes(plan_bytes: PlanBytes, copying: Copying) -> list[str]:
    parts = (
        (copying.grown, "grown since"),
        (copying.shrunk, "less than planned: topics have shrunk, or replicas were there already"),
        (plan_bytes.dropped, "not copied: the moves have ended otherwise"),
    )
    return [f", {bytes_text(size)} {what}" for size, what in parts if size]


def received_text(plan_bytes: PlanBytes) -> str:
    """``98 MB received, 5 MB of it taken back``; "" = no more than is in place, or not known."""
    received, taken_back, copying = plan_bytes.received, plan_bytes.taken_back, plan_bytes.copying
    if not isinstance(received, Known) or not received.value:
        return ""
    if isinstance(copying, Known) and received.value <= copying.value.in_place:
        return ""
    text = f"{bytes_text(received.value)} received"
    if isinstance(taken_back, Known) and taken_back.value:
        text += f", {bytes_text(taken_back.value)} of it taken back"
    return text


def bytes_sentence(plan_bytes: PlanBytes) -> str:
    """All of it in one sentence, for notes, messages and reports."""
    text = in_place_text(plan_bytes)
    total = total_text(plan_bytes)
    parts = [f"{text} ({total})" if total else text, received_text(plan_bytes)]
    return _sentence("; ".join(filter(None, parts)))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def rate_of(pace: Fact[PlanPace]) -> tuple[float | None, str]:
    """Bytes per second of the whole plan; or None, and why."""
    if isinstance(pace, Known):
        return pace.value.total, ""
    return None, WHY_UNKNOWN[pace.why]


def rate_of_partition(
    pace: Fact[PlanPace], partition: TopicPartition, *, in_flight: bool = True
) -> tuple[float | None, str]:
    """Bytes per second of a partition, and what is to be known of them; or None, and why. Of one
    whose move has ended within the time that the plan's pace is measured over, what it has copied
    until then, and likewise of one that a broker is silent about: so the rows of a plan add up to
    its head.
    """
    if not in_flight:
        ended = pace.value.partitions.get(partition) if isinstance(pace, Known) else None
        return (ended, "") if ended else (None, "it is not being copied")
    if not isinstance(pace, Known):
        return None, WHY_UNKNOWN[pace.why]
    rate = pace.value.of_partition(partition)
    if not isinstance(rate, float):
        return None, WHY_UNKNOWN[rate]
    return rate, UNTIL_SILENT if partition in pace.value.silent else ""


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
