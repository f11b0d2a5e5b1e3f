"""What tasks have written to the warehouse is in the ledger, by digests."""

from __future__ import annotations

from dataclasses import replace

from rehome.ledger.store import Ledger
from rehome.ledger.stores.approvals.written_files import DryRun
from tests.ledger.small_plans import make_plan

TRIED = DryRun("p1", "reassign_partitions", "run-1", True, 5_000_000, "half of it", "a" * 64)


def test_the_last_dry_run_of_a_run_is_the_runs_own(ledger: Ledger) -> None:
    assert ledger.last_dry_run("p1", "reassign_partitions", "run-1") is None
    later = replace(TRIED, ok=False, rate_bytes_per_s=1)
    for dry_run in (TRIED, later, replace(TRIED, run_id="run-2")):
        ledger.record_dry_run(dry_run)
    found = ledger.last_dry_run("p1", "reassign_partitions", "run-1")
    assert found is not None
    assert found.tried_at is not None
    assert replace(found, tried_at=None) == later
    assert ledger.last_dry_run("p1", "another_dag", "run-1") is None


def test_files_of_a_plan_are_recorded_with_it_and_the_last_digest_counts(ledger: Ledger) -> None:
    files = {"summary.json": "a" * 64, "gates.json": "b" * 64}
    ledger.create_plan(make_plan("p1"), {}, "file:///nowhere", "run-1", "bob", files=files)
    assert ledger.recorded_files("p1") == files
    ledger.record_files("p1", {"verification.json": "c" * 64})
    ledger.record_files("p1", {"verification.json": "d" * 64})
    assert ledger.recorded_files("p1") == {**files, "verification.json": "d" * 64}
    assert ledger.recorded_files("p2") == {}
