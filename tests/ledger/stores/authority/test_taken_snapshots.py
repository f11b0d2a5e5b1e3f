"""Which snapshot a task has taken."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rehome.ledger.store import Ledger
from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot

FIRST = TakenSnapshot(
    "cluster=c/taken_at=1",
    "c",
    "kafka_default",
    datetime(2030, 1, 1, tzinfo=UTC),
    "digest",
    "reassign_partitions",
    "r1",
    "snapshot",
)
SECOND = replace(FIRST, name="cluster=c/taken_at=2", taken_at=FIRST.taken_at + timedelta(hours=1))


def test_a_task_that_was_cleared_has_taken_the_newer_snapshot(ledger: Ledger) -> None:
    of_task = FIRST.dag_id, FIRST.run_id, FIRST.task_id
    assert ledger.snapshot_taken_by(*of_task) is None
    for each in (SECOND, FIRST):
        ledger.record_snapshot(each)
    assert ledger.snapshot_taken_by(*of_task) == SECOND
    assert ledger.snapshot_taken_by(FIRST.dag_id, FIRST.run_id, "follow_up.snapshot") is None
    assert ledger.snapshot_taken_by(FIRST.dag_id, "r2", FIRST.task_id) is None


def test_rows_go_with_the_snapshots_and_no_others(ledger: Ledger) -> None:
    for each in (FIRST, SECOND):
        ledger.record_snapshot(each)
    ledger.forget_snapshots([*(f"unknown-{n}" for n in range(1200)), FIRST.name])
    assert ledger.taken_snapshot(FIRST.name) is None
    assert ledger.taken_snapshot(SECOND.name) == SECOND
