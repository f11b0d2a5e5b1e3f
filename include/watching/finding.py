"""Findings, and how they open and close from snapshot to snapshot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from include.watching.kinds import AFTER_GRACE, FindingKind
from include.watching.rules import WatchRules


@dataclass(frozen=True, slots=True)
class Seen:
    """A problem that one snapshot shows.

    :param subject: ``broker 3``, ``broker 3 /data1``, ``leaders``; "" = the whole cluster.
    :param facts: numbers and names, as plain JSON types.
    """

    kind: FindingKind
    subject: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[FindingKind, str]:
        """The key of a finding: a cluster has at most one per key at a time."""
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class FindingRecord:
    """One row of the ledger's table of findings.

    :param first_seen_at: the first of the snapshots in a row that show it.
    :param judged_at: time of the last snapshot that was evaluated for it.
    :param seen, clean: number of snapshots in a row that show it; that do not show it.
    :param opened_at: None = it has not lasted long enough yet.
    :param closed_at: None = it is open, or was never.
    """

    cluster_id: str
    kind: FindingKind
    subject: str
    first_seen_at: datetime
    last_seen_at: datetime
    judged_at: datetime
    seen: int
    clean: int
    opened_at: datetime | None
    closed_at: datetime | None
    facts: Mapping[str, Any]

    @property
    def open(self) -> bool:
        """Whether it is open."""
        return self.opened_at is not None and self.closed_at is None


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
