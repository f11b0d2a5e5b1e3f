"""How findings open and close from snapshot to snapshot. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from include.watching.finding import FindingRecord, Seen
from include.watching.kinds import AFTER_GRACE
from include.watching.rules import WatchRules


def follow(
    before: FindingRecord | None,
    seen: Seen | None,
    cluster_id: str,
    taken_at: datetime,
    rules: WatchRules,
    longest_gap: timedelta,
) -> FindingRecord | None:
    """Update a finding with one more snapshot; None = nothing to record.

    A snapshot that was evaluated before, or is older than that one, changes nothing.

    :param seen: what the snapshot shows; None = it does not show it.
    :param longest_gap: longest time between two snapshots that count as consecutive. After a longer
        gap, the count towards opening starts again.
    """
    if before is not None and taken_at <= before.judged_at:
        return before
    if seen is None:
        return None if before is None else _clean(before, taken_at, rules)
    if before is None:
        before = FindingRecord(
            cluster_id, seen.kind, seen.subject, taken_at, taken_at, taken_at, 0, 0, None, None, {}
        )
    elif not before.open and (before.seen == 0 or taken_at - before.last_seen_at > longest_gap):
        before = replace(before, first_seen_at=taken_at, seen=0, opened_at=None, closed_at=None)
    after = replace(
        before,
        seen=before.seen + 1,
        clean=0,
        last_seen_at=taken_at,
        judged_at=taken_at,
        facts=dict(seen.facts),
    )
    return replace(after, opened_at=taken_at) if _opens(after, rules) else after


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
