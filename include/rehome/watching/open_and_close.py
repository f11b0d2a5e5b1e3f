"""How findings open and close from snapshot to snapshot. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.run.watched.finding import FindingKey, FindingRecord, FindingsAfter, Seen
from rehome.domain.run.watched.finding_kinds import AFTER_GRACE, FindingKind
from rehome.domain.text import minute_text

_DAY = timedelta(days=1)
MOST_ABSENCES = 3
"""A broker that is away more often within a day flaps: nobody restarts one so often on purpose."""


def after_snapshot(
    sightings: Collection[Seen],
    rules: WatchRules,
    unknown: Collection[FindingKind | FindingKey] = (),
    *,
    longest_gap: timedelta,
) -> FindingsAfter:
    """What one more snapshot makes of a cluster's findings; the ledger writes it down.

    :param sightings: all that it shows.
    :param unknown: see :func:`follow_all`; ``longest_gap``: see :func:`follow`.
    """

    def after(
        before: Mapping[FindingKey, FindingRecord],
        cluster_id: str,
        taken_at: datetime,
        latest: datetime,
    ) -> Mapping[FindingKey, FindingRecord]:
        records = {key: by_this_clock(each, taken_at, latest) for key, each in before.items()}
        return follow_all(records, sightings, unknown, cluster_id, taken_at, rules, longest_gap)

    return after


def follow_all(
    before: Mapping[FindingKey, FindingRecord],
    sightings: Iterable[Seen],
    unknown: Collection[FindingKind | FindingKey],
    cluster_id: str,
    taken_at: datetime,
    rules: WatchRules,
    longest_gap: timedelta,
) -> dict[FindingKey, FindingRecord]:
    """Update a cluster's findings with one more snapshot: all of them after it, by their keys.

    :param sightings: what the snapshot shows; brokers that flap are found here, by what was before.
    :param unknown: kinds, or kinds and subjects, whose absence proves nothing: findings that it
        does not show stay as they are.
    """

    def follow_one(key: FindingKey, shown: Mapping[FindingKey, Seen]) -> FindingRecord | None:
        old = before.get(key)
        if key not in shown and (key[0] in unknown or key in unknown):
            return old
        return follow(old, shown.get(key), cluster_id, taken_at, rules, longest_gap)

    shown = {each.key: each for each in sightings}
    of_snapshot = [key for key in {*before, *shown} if key[0] is not FindingKind.FLAPPING_BROKER]
    findings = {key: follow_one(key, shown) for key in of_snapshot}
    records = [each for each in findings.values() if each is not None]
    flaps = {each.key: each for each in flapping(records, taken_at)}
    of_days = [key for key in before if key[0] is FindingKind.FLAPPING_BROKER]
    findings |= {key: follow_one(key, flaps) for key in {*of_days, *flaps}}
    return {key: each for key, each in sorted(findings.items()) if each is not None}


def follow(
    before: FindingRecord | None,
    sighting: Seen | None,
    cluster_id: str,
    taken_at: datetime,
    rules: WatchRules,
    longest_gap: timedelta,
) -> FindingRecord | None:
    """Update a finding with one more snapshot; None = nothing to record.

    A snapshot that was evaluated before, or is older than that one, changes nothing.

    :param sighting: what the snapshot shows; None = it does not show it.
    :param longest_gap: longest time between two snapshots that count as consecutive. After a longer
        gap, the count towards opening starts again.
    """
    if before is not None and taken_at <= before.judged_at:
        return before
    if sighting is None:
        return None if before is None else _clean(before, taken_at, rules)
    if before is None:
        before = FindingRecord(
            cluster_id,
            sighting.kind,
            sighting.subject,
            taken_at,
            taken_at,
            taken_at,
            0,
            0,
            None,
            None,
            {},
        )
    comes = before.seen == 0
    if not before.open and (comes or taken_at - before.last_seen_at > longest_gap):
        before = replace(before, first_seen_at=taken_at, seen=0, opened_at=None, closed_at=None)
    began = [at for at in before.began if taken_at - at < _DAY]
    if comes and not before.open:
        began.append(taken_at)
    after = replace(
        before,
        seen=before.seen + 1,
        clean=0,
        last_seen_at=taken_at,
        judged_at=taken_at,
        facts=dict(sighting.facts),
        began=tuple(began),
    )
    return replace(after, opened_at=taken_at) if _opens(after, rules) else after


def flapping(findings: Iterable[FindingRecord], taken_at: datetime) -> Iterator[Seen]:
    """Brokers that are away again and again, each time too short to be a finding."""
    for finding in findings:
        if finding.kind is not FindingKind.DEAD_BROKER or finding.open:
            continue
        began = [at for at in finding.began if taken_at - at < _DAY]
        if len(began) > MOST_ABSENCES:
            about = {"times": len(began), "since": minute_text(began[0])}
            yield Seen(FindingKind.FLAPPING_BROKER, finding.subject, about)


def by_this_clock(finding: FindingRecord, taken_at: datetime, latest: datetime) -> FindingRecord:
    """A finding without what a clock has said that went ahead: else nothing would change it until
    that time has come.

    :param latest: what is later is from the future.
    """
    if finding.judged_at <= latest or taken_at > latest:
        return finding
    before = taken_at - timedelta(microseconds=1)
    return replace(
        finding,
        first_seen_at=min(finding.first_seen_at, before),
        last_seen_at=min(finding.last_seen_at, before),
        judged_at=before,
        seen=0,
        clean=0,
        opened_at=finding.opened_at and min(finding.opened_at, before),
        closed_at=finding.closed_at and min(finding.closed_at, before),
        began=tuple(at for at in finding.began if at <= latest),
    )


def _opens(finding: FindingRecord, rules: WatchRules) -> bool:
    if finding.opened_at is not None:
        return False
    lasted = finding.last_seen_at - finding.first_seen_at
    grace = rules.grace_s if finding.kind in AFTER_GRACE else 0.0
    return finding.seen >= rules.opens_after(finding.kind) and lasted >= timedelta(seconds=grace)


def _clean(before: FindingRecord, taken_at: datetime, rules: WatchRules) -> FindingRecord:
    after = replace(before, seen=0, clean=before.clean + 1, judged_at=taken_at)
    if before.open and after.clean >= rules.snapshots_to_close:
        return replace(after, closed_at=taken_at)
    return after
