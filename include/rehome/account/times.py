"""How long a plan has taken, over all its parts, and when it ends. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rehome.account.evidence import PlanEvidence
from rehome.account.known import Fact, Known, NotKnown, Source, Unknown
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import RateReason
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import PlanState
from rehome.domain.time_range import TimeRange
from rehome.execution.estimate.estimate import around


@dataclass(frozen=True, slots=True)
class Elapsed:
    """From a plan's first start to its end, or to now.

    :param paused: the part of it in which the plan was paused; ``pauses``: how often it was.
    """

    total: timedelta
    paused: timedelta
    pauses: int


def elapsed_of(evidence: PlanEvidence, now: datetime) -> Elapsed | None:
    """Of all parts of a plan; None before its start."""
    record = evidence.record
    if record.started_at is None:
        return None
    until = record.ended_at or now
    paused, pauses, since = timedelta(), 0, None
    for kind, at in evidence.turns:
        if kind is EventKind.PAUSED:
            since, pauses = at, pauses + 1
        elif since is not None:
            paused, since = paused + (at - since), None
    if since is not None:
        paused += max(timedelta(), until - since)
    return Elapsed(until - record.started_at, paused, pauses)


@dataclass(frozen=True, slots=True)
class Predicted:
    """What a dry run predicted, from the start of the moves that it tried out to their end.

    :param a_part: not of the whole plan, but of what was left when it went on.
    """

    time: TimeRange
    a_part: bool = False


def predicted_of(evidence: PlanEvidence) -> Fact[Predicted]:
    """What the newest dry run of the whole plan predicted; where none saw all, the newest."""
    record = evidence.record
    moves = sum(each.moves for each in evidence.sums.values())
    dry_runs = [dry_run for dry_run in evidence.dry_runs if dry_run.moves is not None]
    if not dry_runs:
        return Unknown(NotKnown.NOT_RECORDED if evidence.dry_runs else NotKnown.NOT_TRIED)
    of_all = [dry_run for dry_run in dry_runs if dry_run.moves == moves]
    newest = (of_all or dry_runs)[-1]
    if newest.least_s is None or newest.most_s is None:
        return Unknown(NotKnown.NEVER_ENDS)
    prediction = Predicted(TimeRange(newest.least_s, newest.most_s), a_part=not of_all)
    return Known(prediction, newest.tried_at or record.created_at, Source.DRY_RUN)


class Incomparable(enum.StrEnum):
    """Why the time that a plan took says nothing about what was predicted."""

    ENDED_OTHERWISE = "ended_otherwise"
    PAUSED = "paused"
    RATE_CHANGED = "rate_changed"
    """On request."""


def incomparable_of(evidence: PlanEvidence, elapsed: Elapsed | None) -> Incomparable | None:
    """None = the two can be compared."""
    state = evidence.record.state
    if state.ended and state is not PlanState.DONE:
        return Incomparable.ENDED_OTHERWISE
    if elapsed is not None and elapsed.pauses:
        return Incomparable.PAUSED
    changed = any(change.reason is RateReason.REQUESTED for change in evidence.rates)
    return Incomparable.RATE_CHANGED if changed else None


@dataclass(frozen=True, slots=True)
class EndRange:
    """When the last copy is complete: between ``least`` and ``most``, by what is known about
    ``likely``.
    """

    least: datetime
    likely: datetime
    most: datetime


_STANDS: Mapping[HurtKind, NotKnown] = {
    HurtKind.DEAD_BROKERS: NotKnown.BROKER_DEAD,
    HurtKind.WAITS_FOR_LEADER: NotKnown.LEADERLESS,
    HurtKind.WAITS_FOR_WINDOW: NotKnown.AFTER_WINDOW,
    HurtKind.OUTPACED: NotKnown.OUTPACED,
}
"""While a poll finds this, some copies do not end, and nobody knows until when."""


def ends_of(evidence: PlanEvidence, now: datetime) -> Fact[EndRange]:
    """By the newest poll; not known where that would have been by now."""
    record = evidence.record
    if record.state is not PlanState.RUNNING:
        return Unknown(NotKnown.NOT_RUNNING)
    ends = ends_at_poll(evidence.sample, record.window_end, evidence.hurts)
    if isinstance(ends, Known) and ends.value.most < now:
        return Unknown(NotKnown.PAST)
    return ends


def ends_at_poll(
    sample: ProgressSample | None, window_end: datetime | None, hurts: Iterable[Hurt]
) -> Fact[EndRange]:
    """As a poll has found it, for everybody who shows it; not known, and why, where something
    stands in the way of copies, or where it is not before the window closes.
    """
    if sample is None:
        return Unknown(NotKnown.NOT_POLLED)
    for hurt in hurts:
        if hurt.holds or (hurt.kind in _STANDS and (hurt.moves or hurt.why)):
            return Unknown(_STANDS.get(hurt.kind, NotKnown.HELD))
    time_range = around(sample)
    if time_range is None or sample.eta_s is None:
        return Unknown(NotKnown.NOTHING_COMES)
    least, likely, most = (
        sample.sampled_at + timedelta(seconds=seconds)
        for seconds in (time_range.least_s, sample.eta_s, time_range.most_s)
    )
    if window_end is not None and likely > window_end:
        return Unknown(NotKnown.AFTER_WINDOW)
    most = most if window_end is None else min(most, window_end)
    return Known(EndRange(least, likely, most), sample.sampled_at, Source.POLL)
