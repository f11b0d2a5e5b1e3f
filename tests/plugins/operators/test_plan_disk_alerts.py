"""Disks that will be full: as replicas lie and grow now, and as a plan would leave them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.operators.plan import tell_of_full_disks
from rehome.operators.upkeep.rollup import RollUpSnapshotsOperator
from rehome.run.context import RunContext
from rehome.warehouse import PlanDirectory
from tests.e2e.webhook import Webhook
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.mailbox import Mailbox, Reported, alerts_to
from tests.plugins.run.taken import taken


@pytest.mark.slow
def test_a_disk_that_will_be_full_is_reported_once_by_the_roll_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_MIN_HISTORY_HOURS", "1")
    monkeypatch.setenv("REHOME_SNAPSHOT_RETENTION_DAYS", "100000")
    monkeypatch.setenv("REHOME_ROLLUP_RETENTION_DAYS", "100000")
    cluster = Cluster((tmp_path / "warehouse").as_uri())

    def roll_up(uri: str) -> None:
        """After the snapshot of one run."""
        run = SimpleNamespace(dag_id="collect_snapshots", run_id=uri)
        task = RollUpSnapshotsOperator(task_id="roll_up")
        with installation.open_ledger() as ledger:
            taken(ledger, uri, run=(run.dag_id, run.run_id))
        task.execute({"params": {"kafka_config_id": "kafka_default"}, "dag_run": run, "task": task})

    def small(rows: Any) -> None:
        for row in rows.log_dirs:
            row.update(total_bytes=10**9, usable_bytes=10**8)

    def large(rows: Any) -> None:
        for row in rows.log_dirs:
            row.update(total_bytes=10**15, usable_bytes=10**15 - 10**9)

    with Webhook() as webhook, Mailbox() as mailbox:
        alerts_to(monkeypatch, webhook, mailbox)
        reported = Reported(webhook, mailbox)
        for minutes in range(0, 130, 10):
            newest = cluster.snapshot(minutes, small)
        for _ in range(2):
            roll_up(newest)
        assert reported.kinds() == ["disk_forecast"]
        alert = reported.only("disk_forecast")
        assert (alert["cluster_id"], alert["connection"]) == (CLUSTER, "kafka_default")
        assert "disks are full within 30 days, counted from now: broker" in alert["text"]
        newest = cluster.snapshot(130, large)
        roll_up(newest)
        assert reported.kinds() == ["disk_forecast"]
    with installation.open_ledger() as ledger:
        (record,) = ledger.alerts()
    assert record.closed_at is not None


def test_a_plan_that_would_fill_a_disk_is_reported_by_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    directory = PlanDirectory(tmp_path.as_uri())
    with installation.open_ledger() as ledger:
        plan = make_plan("p1", move("t", 0, (1, 3), (2, 3)))
        ledger.create_plan(plan, {}, directory.uri, "run-1", "ann", "kafka_prod")
    rows: list[dict[str, Any]] = [
        {"broker": 1, "days_until_full": None, "growth_bytes_per_s": 0.0},
        {"broker": 2, "days_until_full": 31.0, "growth_bytes_per_s": 5.0},
    ]
    with Webhook() as webhook, Mailbox() as mailbox:
        alerts_to(monkeypatch, webhook, mailbox)
        reported = Reported(webhook, mailbox)
        tell_of_full_disks(RunContext({}), directory, "p1")  # there is no history to forecast from
        directory.write_json("load.json", {"forecast": rows, "forecast_days": 30})
        tell_of_full_disks(RunContext({}), directory, "p1")
        assert reported.kinds() == []
        rows[1]["days_until_full"] = 3.0
        directory.write_json("load.json", {"forecast": rows, "forecast_days": 30})
        tell_of_full_disks(RunContext({}), directory, "p1")
        assert reported.kinds() == ["disk_forecast"]
        alert = reported.only("disk_forecast")
    assert (alert["plan_id"], alert["connection"]) == ("p1", "kafka_prod")
    assert "broker 2" in alert["text"]
    assert "broker 1" not in alert["text"]
