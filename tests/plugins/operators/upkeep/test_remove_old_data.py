"""Plans that are older than they are kept go with their files; a dry run removes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException

from rehome import installation
from rehome.ledger.store import Ledger
from rehome.operators.upkeep.remove_old_data import RemoveOldDataOperator
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

DAYS = 30
OLD = "20200101T000000Z-drain-abc"
REFUSED = "20200101T000000Z-drain-refused"
ANOTHERS = "20200101T000000Z-drain-another"
"""Of another ledger, which shares the warehouse."""
FLEET = "20200101T000000Z-fleet-abc.json"


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "warehouse"
    monkeypatch.setenv("REHOME_WAREHOUSE", place.as_uri())
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_PLAN_RETENTION_DAYS", str(DAYS))
    for name in (OLD, REFUSED, "20200101T000000Z-drain-new", "by-hand"):
        (place / "plans" / name / "data_docs").mkdir(parents=True)
        (place / "plans" / name / "report.html").write_text("a report")
    (place / "plans" / FLEET).write_text("{}")
    (place / "plans" / ANOTHERS).mkdir()
    (place / "plans" / ANOTHERS / "summary.json").write_text("{}")
    return place / "plans"


@pytest.fixture
def ledger(warehouse: Path) -> Iterator[Ledger]:
    """Of a cluster with an old plan and a new one; names of folders do not tell which is which."""
    clock = SetClock()
    clock.pass_s(-timedelta(days=DAYS + 1).total_seconds())
    with Ledger.open(installation.settings().ledger_url, clock=clock) as before:
        record(before, warehouse, OLD)
    with installation.open_ledger() as opened:
        record(opened, warehouse, "20200101T000000Z-drain-new")
        yield opened


def record(ledger: Ledger, plans: Path, plan_id: str) -> None:
    ledger.create_plan(make_plan(plan_id), {}, (plans / plan_id).as_uri(), "run-1", "ann")


def remove(**params: Any) -> dict[str, int]:
    run = SimpleNamespace(dag_id="remove_old_data", run_id="r1", run_type="scheduled")
    task = RemoveOldDataOperator(task_id="remove_old_data")
    context: Any = {"params": params, "dag_run": run, "task": task}
    removed: dict[str, int] = task.execute(context)
    return removed


def test_what_is_old_goes_from_the_ledger_and_from_the_warehouse(
    ledger: Ledger, warehouse: Path
) -> None:
    assert remove() == {"plans": 1, "folders": 1, "rows": 0}
    assert [plan.plan_id for plan in ledger.plans()] == ["20200101T000000Z-drain-new"]
    left = {path.name for path in warehouse.iterdir()}
    assert left == {"20200101T000000Z-drain-new", "by-hand", FLEET, ANOTHERS}
    assert remove() == {"plans": 0, "folders": 0, "rows": 0}


def test_a_dry_run_names_it_and_removes_nothing(ledger: Ledger, warehouse: Path) -> None:
    before = {path.name for path in warehouse.iterdir()}
    assert remove(dry_run=True) == {"plans": 1, "folders": 1, "rows": 0}
    assert {path.name for path in warehouse.iterdir()} == before
    assert {plan.plan_id for plan in ledger.plans()} == {OLD, "20200101T000000Z-drain-new"}


def test_a_plan_whose_files_cannot_be_removed_stays_and_is_named(
    ledger: Ledger, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warehouse was moved: its files are not below it."""
    place = warehouse.parent.parent / "another"
    monkeypatch.setenv("REHOME_WAREHOUSE", place.as_uri())
    with pytest.raises(AirflowException, match=f"The files of plan {OLD} cannot be removed"):
        remove()
    assert ledger.plan(OLD).plan_id == OLD
    assert (warehouse / OLD / "report.html").exists()
