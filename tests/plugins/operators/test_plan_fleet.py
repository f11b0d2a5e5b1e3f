"""Clusters that are due get plans for their windows; nothing is carried out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from rehome import installation
from rehome.domain.run.states import PlanState
from rehome.ledger.base.audit_entry import Decided, Door
from rehome.ledger.store import Ledger
from rehome.operators.plan_fleet import PlanFleetOperator
from rehome.run.words.plan_words import NOTHING_TO_MOVE
from rehome.warehouse import PlanDirectory, Warehouse
from tests.dags.runs import plan_fleet_without_gates
from tests.ledger.audit_rows import audit_of
from tests.plugins.run.taken import taken
from tests.spark.fleets import snapshot

FILE = """
clusters:
  berlin:
    connection: kafka_berlin
    windows: [{{cron: "{soon}", hours: 1}}]
    targets: {{tolerance: 0.02}}
    caps: {{default: {{replicas: 40}}}}
    settings: {{max_partitions_in_flight: 7}}
  even:
    connection: kafka_even
    windows: [{{cron: "{soon}", hours: 1}}]
    targets: {{tolerance: 0.9}}
  lima:
    connection: kafka_lima
    windows: [{{cron: "{soon}", hours: 1}}]
    targets: {{exclude_brokers: [77]}}
  oslo: {{connection: kafka_oslo}}
  paris:
    connection: kafka_paris
    windows: [{{cron: "{soon}", hours: 1}}]
  rome:
    connection: kafka_rome
    windows: [{{cron: "* * * * *", hours: 1}}]
"""
RUN_AFTER = datetime.now(UTC)
SEEN = ("berlin", "even", "lima", "oslo", "rome")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Of an installation with snapshots of most clusters of its file."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(tmp_path / "clusters.yaml"))
    soon = datetime.now(UTC) + timedelta(hours=2)
    text = FILE.format(soon=f"{soon.minute} {soon.hour} * * *")
    (tmp_path / "clusters.yaml").write_text(text)
    spark = {"conn_type": "spark", "host": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    warehouse = Warehouse((tmp_path / "warehouse").as_uri())
    opened = installation.open_ledger()
    for name in SEEN:
        kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "b1:9092"}}
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{name.upper()}", json.dumps(kafka))
        taken(opened, warehouse.write_snapshot(snapshot(name, 10_000)), f"kafka_{name}")
        opened.record_connection(f"kafka_{name}", name)
    return opened


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    return plan_fleet_without_gates(monkeypatch)


def plan_fleet(run_id: str = "r1", **params: Any) -> list[str]:
    task = PlanFleetOperator(task_id="plan_fleet")
    run = SimpleNamespace(
        dag_id="plan_fleet",
        run_id=run_id,
        run_type="scheduled",
        run_after=RUN_AFTER,
    )
    context: Any = {"params": params, "dag_run": run, "task": task}
    plan_ids: list[str] = task.execute(context)
    return plan_ids


@pytest.mark.slow
def test_clusters_that_are_due_are_plan_settings_their_own_values_for_their_window(
    ledger: Ledger, submitted: list[list[str]]
) -> None:
    names = ["berlin", "oslo", "rome", "paris"]
    (plan_id,) = plan_fleet(clusters=names)
    record = ledger.plan(plan_id)
    assert (record.cluster_id, record.state) == ("berlin", PlanState.PLANNED)
    assert (record.planned_through, record.dag_id) == ("kafka_berlin", "plan_fleet")
    assert record.request["dry_run"]
    assert record.request["tolerance"] == 0.02
    assert record.request["caps"] == {"default": {"replicas": 40}}
    assert PlanDirectory(record.plan_dir).read_json("settings.json") == {
        "caps": {"default": {"replicas": 40}},
        "broker_sets": [],
        "targets": {"tolerance": 0.02},
        "of_run": [],
    }
    plan = PlanDirectory(record.plan_dir).load()
    assert plan.plan_hash == record.plan_hash
    assert plan.summary.ledger_id == ledger.ledger_id
    (arguments,) = submitted
    asked = json.loads(Path(arguments[arguments.index("--request") + 1][7:]).read_text())
    assert asked["options"]["berlin"]["max_partitions_in_flight"] == 7
    assert asked["options"]["berlin"]["small_bytes"] == 1_000_000
    assert list(asked["clusters"]) == ["berlin"]

    assert record.may_be_begun_by("rebalance_in_window__berlin")
    assert ledger.handed_over("berlin") == [], "that is for a person to say"
    assert ledger.active_plan("berlin") is None
    assert plan_fleet("r2", clusters=names) == [], "it is planned already"
    assert len(submitted) == 1


@pytest.mark.slow
def test_a_cluster_that_cannot_be_planned_does_not_stop_plans_of_others(
    ledger: Ledger, submitted: list[list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(AirflowFailException, match="No plan was made for lima"):
        plan_fleet()
    assert {plan.cluster_id for plan in ledger.plans()} == {"berlin", "even"}
    with pytest.raises(AirflowFailException, match="lima"):
        plan_fleet("r1")
    assert submitted[1].count("--snapshots") == 1
    assert [name for name in SEEN if any(f"cluster={name}/" in each for each in submitted[1])] == [
        "lima"
    ]


@pytest.mark.slow
def test_a_run_that_is_cleared_before_the_next_window_replaces_no_plan(
    ledger: Ledger, submitted: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (plan_id,) = plan_fleet(clusters=["berlin"])
    files = PlanDirectory(ledger.plan(plan_id).plan_dir)
    before = files.file_digests(), files.read_json("request.json")
    monkeypatch.setattr(
        "rehome.fleet.due_clusters.why_not_due", lambda *_, is_named: None
    )  # a day later
    with pytest.raises(AirflowFailException, match="No plan was made for berlin"):
        plan_fleet(clusters=["berlin"])
    assert len(submitted) == 1
    assert (files.file_digests(), files.read_json("request.json")) == before


@pytest.mark.slow
def test_two_names_of_one_cluster_are_refused_and_other_clusters_are_planned(
    ledger: Ledger, submitted: list[list[str]]
) -> None:
    ledger.record_connection("kafka_paris", "berlin")
    with pytest.raises(AirflowFailException, match="No plan was made for berlin, paris"):
        plan_fleet(clusters=["berlin", "even", "paris"])
    assert [plan.cluster_id for plan in ledger.plans()] == ["even"]
    assert len(submitted) == 1
    told = [each for each in audit_of(ledger) if each.decision is Decided.REFUSED]
    assert {each.detail["why"] for each in told} == {"two_entries"}
    assert {each.door for each in told} == {Door.SCHEDULE}


@pytest.mark.slow
def test_a_plan_that_moves_nothing_waits_for_no_window(
    ledger: Ledger, submitted: list[list[str]]
) -> None:
    (plan_id,) = plan_fleet(clusters=["even"])
    record = ledger.plan(plan_id)
    assert (record.state, record.cause) == (PlanState.CANCELLED, NOTHING_TO_MOVE)


def test_a_fleet_run_with_an_unknown_cluster_plans_nothing(
    ledger: Ledger, submitted: list[list[str]]
) -> None:
    with pytest.raises(AirflowFailException, match="no cluster madrid"):
        plan_fleet(clusters=["berlin", "madrid"])
    assert not submitted
