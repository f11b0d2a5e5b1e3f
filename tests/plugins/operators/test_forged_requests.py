"""Who may write to the warehouse asks for nothing: a plan is recorded with what its run asked for,
whatever the job that makes it has read. No broker is asked, and there is no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from rehome import installation
from rehome.ledger.store import Ledger
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.plan_fleet import PlanFleetOperator
from rehome.warehouse import Warehouse
from spark_jobs import fleet, plan
from tests.dags.runs import plan_fleet_without_gates, plan_without_gates
from tests.plugins.run.taken import taken
from tests.spark.fleets import snapshot

CLUSTERS = """
clusters:
  berlin: {{connection: kafka_default, windows: [{{cron: "{soon}", hours: 1}}]}}
"""
FORGED = {"approval": False, "cordon": "keep", "throttle": 45_000_000}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of an installation that has a snapshot of one cluster, taken by the runs below."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    for name, kind in {"kafka_default": "kafka", "spark_default": "spark"}.items():
        extra = {"bootstrap.servers": "b1:9092"} if kind == "kafka" else {}
        host = "local[2]" if kind == "spark" else ""
        connection = {"conn_type": kind, "host": host, "extra": extra}
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(connection))
    monkeypatch.setattr("rehome.operators.assets.tell_of_plan", lambda *_: None)
    warehouse = Warehouse((tmp_path / "warehouse").as_uri())
    with installation.open_ledger() as opened:
        uri = warehouse.write_snapshot(snapshot("berlin", 10_000))
        taken(opened, uri, run=("reassign_partitions", "r1"))
        opened.record_connection("kafka_default", "berlin")
        yield opened


def forge_in(monkeypatch: pytest.MonkeyPatch, job: Any, warehouse: Path) -> None:
    """Have somebody change what was asked for, when the job has read it."""
    real: Callable[..., int] = job.main

    def main(arguments: Any) -> int:
        code = real(arguments)
        for file in (warehouse / "plans").glob("*/request.json"):
            file.write_text(json.dumps({**json.loads(file.read_text()), **FORGED}))
        return code

    monkeypatch.setattr(job, "main", main)


def make_a_plan() -> str:
    """Ann's run, which wants to be approved."""
    run = SimpleNamespace(
        dag_id="reassign_partitions",
        run_id="r1",
        run_type="manual",
        run_after=datetime.now(UTC),
        data_interval_end=None,
        triggering_user_name="ann",
    )
    task = PlanReassignmentOperator(task_id="plan")
    params = {"action": "drain", "brokers": [4], "approval": True, "throttle": 1_000_000}
    params |= {"kafka_config_id": "kafka_default"}
    ti = SimpleNamespace(xcom_pull=lambda **_: None)
    context: Any = {"dag_run": run, "params": params, "task": task, "ti": ti}
    plan_id: str = task.execute(context)
    return plan_id


def plan_the_fleet() -> list[str]:
    """The schedule's."""
    run = SimpleNamespace(
        dag_id="plan_fleet", run_id="r1", run_type="scheduled", run_after=datetime.now(UTC)
    )
    task = PlanFleetOperator(task_id="plan_fleet")
    context: Any = {"params": {"clusters": ["berlin"]}, "dag_run": run, "task": task}
    plan_ids: list[str] = task.execute(context)
    return plan_ids


def test_a_request_that_was_edited_while_its_plan_is_made_makes_none(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_without_gates(monkeypatch)
    forge_in(monkeypatch, plan, tmp_path / "warehouse")
    with pytest.raises(AirflowFailException, match=r"request\.json is not what was written"):
        make_a_plan()
    assert ledger.plans() == []


@pytest.mark.slow
def test_so_does_one_of_a_fleet(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "clusters.yaml"
    soon = datetime.now(UTC) + timedelta(hours=2)
    file.write_text(CLUSTERS.format(soon=f"{soon.minute} {soon.hour} * * *"))
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(file))
    plan_fleet_without_gates(monkeypatch)
    forge_in(monkeypatch, fleet, tmp_path / "warehouse")
    with pytest.raises(AirflowFailException, match="No plan was made for berlin"):
        plan_the_fleet()
    assert ledger.plans() == []


def test_a_plan_is_recorded_with_what_its_run_asked_for(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_without_gates(monkeypatch)
    record = ledger.plan(make_a_plan())
    asked = {name: record.request[name] for name in FORGED}
    assert asked == {"approval": True, "cordon": "no", "throttle": 1_000_000}
