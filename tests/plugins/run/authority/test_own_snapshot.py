"""A run reads the snapshot that it has taken itself, whatever an XCom says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rehome import installation
from rehome.errors import PlanConflictError, RehomeError
from rehome.ledger.store import Ledger
from rehome.run.authority import own_snapshot
from rehome.run.context import RunContext
from rehome.warehouse import Warehouse, read_snapshot
from tests.plugins.run.asked import run_of, task_of
from tests.quality.snapshots import Rows

RUN = run_of("r1")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    with installation.open_ledger() as opened:
        yield opened


def take(ledger: Ledger, hours: int = 0, task_id: str = "snapshot", run: object = RUN) -> str:
    taken = Rows().snapshot()
    taken = replace(taken, taken_at=taken.taken_at + timedelta(hours=hours))
    context = {**task_of(run_of("r1"), task_id), "dag_run": run}
    return own_snapshot.keep(RunContext(context), taken, "kafka_default")


def test_each_task_of_a_run_reads_its_own_and_after_a_clear_the_newer_one(ledger: Ledger) -> None:
    first = take(ledger)
    take(ledger, 9, run=run_of("another"))
    follow_up = take(ledger, 5, "follow_up.snapshot")
    assert own_snapshot.uri_of(RunContext(task_of(RUN, "plan"))) == first
    assert own_snapshot.uri_of(RunContext(task_of(RUN, "follow_up.plan"))) == follow_up
    again = take(ledger, 1)
    assert own_snapshot.uri_of(RunContext(task_of(RUN, "dry_run"))) == again
    assert read_snapshot(again).cluster_id == "test"


def test_a_run_that_has_taken_none_here_takes_another_one(ledger: Ledger) -> None:
    take(ledger)
    for run in (run_of("r2"), run_of("r1", dag_id="add_partitions")):
        with pytest.raises(PlanConflictError, match="Clear the task snapshot, with what comes"):
            own_snapshot.uri_of(RunContext(task_of(run, "plan")))


@pytest.mark.parametrize("name", ["snapshot.json", "replicas.parquet", "brokers.parquet"])
def test_files_that_were_changed_since_are_not_planned_on(
    ledger: Ledger, tmp_path: Path, name: str
) -> None:
    place = Path(take(ledger).removeprefix("file://"))
    other = Path(take(ledger, 1, run=run_of("another")).removeprefix("file://"))
    assert own_snapshot.uri_of(RunContext(task_of(RUN, "plan")))
    changed = (other / name).read_bytes()
    if name.endswith(".parquet"):
        changed += b" "
    (place / name).write_bytes(changed)
    with pytest.raises(PlanConflictError, match="have changed since it was taken"):
        own_snapshot.uri_of(RunContext(task_of(RUN, "plan")))


def test_a_snapshot_that_was_removed_is_missing(ledger: Ledger) -> None:
    uri = take(ledger)
    Warehouse(installation.settings().warehouse).remove_snapshot(uri)
    with pytest.raises(RehomeError, match="does not exist"):
        own_snapshot.uri_of(RunContext(task_of(RUN, "plan")))
