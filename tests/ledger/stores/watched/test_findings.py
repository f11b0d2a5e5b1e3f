"""Findings from one snapshot to the next, on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.store import Ledger
from rehome.watching.open_and_close import after_snapshot

AT = datetime(2030, 1, 1, tzinfo=UTC)
RULES = WatchRules(snapshots_to_open=1, snapshots_to_close=1)
BYTES = Seen(FindingKind.IMBALANCE, "bytes", {"count": 1})
GAP = timedelta(minutes=30)
TRAFFIC = Seen(FindingKind.IMBALANCE, "bytes_in", {"count": 2})


def test_a_finding_that_a_snapshot_does_not_cover_stays_and_a_late_snapshot_changes_nothing(
    ledger: Ledger,
) -> None:
    opened = ledger.follow_findings(
        "c1", AT, after_snapshot([BYTES, TRAFFIC], RULES, longest_gap=GAP)
    ).opened
    assert [each.subject for each in opened] == ["bytes", "bytes_in"]
    ledger.follow_findings("c2", AT, after_snapshot([], RULES, longest_gap=GAP))
    assert [len(ledger.open_findings(each)) for each in ("c1", "c2")] == [2, 0]
    later = AT + timedelta(minutes=10)
    followed = ledger.follow_findings(
        "c1", later, after_snapshot([], RULES, {TRAFFIC.key}, longest_gap=GAP)
    )
    assert [each.subject for each in followed.closed] == ["bytes"]
    assert [each.subject for each in followed.open] == ["bytes_in"]
    late = ledger.follow_findings("c1", AT, after_snapshot([BYTES], RULES, longest_gap=GAP))
    assert (late.opened, late.closed) == ((), ())
    assert ledger.watched_clusters() == {"c1": later, "c2": AT}
    assert [each.subject for each in ledger.open_findings("c1")] == ["bytes_in"]
