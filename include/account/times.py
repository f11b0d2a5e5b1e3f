"""How long a plan has taken, over all its parts, and when it ends. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from include.account.evidence import PlanEvidence
from include.account.known import Fact, Known, NotKnown, Source, Unknown
from include.domain.run.event_kind import EventKind
from include.domain.run.states import PlanState
from include.domain.time_range import TimeRange


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
    known = [dry_run for dry_run in evidence.dry_runs if dry_run.moves is not None]
    if not known:
        return Unknown(NotKnown.NOT_RECORDED if evidence.dry_runs else NotKnown.NOT_TRIED)
    of_all = [dry_run for dry_run in known if dry_run.moves == moves]
    newest = (of_all or known)[-1]
    if newest.least_s is None or newest.most_s is None:
        return Unknown(NotKnown.NEVER_ENDS)
    found = Predicted(TimeRange(newest.least_s, newest.most_s), a_part=not of_all)
    return Known(found, newest.tried_at or record.created_at, Source.DRY_RUN)


def ends_of(evidence: PlanEvidence, now: datetime) -> Fact[datetime]:
    """When the last copy is complete; not known where that would have been by now, or where it is
    not before the window closes.
    """
    record, sample = evidence.record, evidence.sample
    if record.state is not PlanState.RUNNING:
        return Unknown(NotKnown.NOT_RUNNING)
    if sample is None:
        return Unknown(NotKnown.NOT_POLLED)
    at = sample.at_this_pace
    if at is None:
        return Unknown(NotKnown.NOTHING_COMES)
    if sample.ends_at(record.window_end) is None:
        return Unknown(NotKnown.AFTER_WINDOW)
    if at < now:
        return Unknown(NotKnown.PAST)
    return Known(at, sample.sampled_at, Source.POLL)
