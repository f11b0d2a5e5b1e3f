"""Disks that will be full are told of by the roll-up, as replicas lie and grow now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rehome import installation
from rehome.operators.rollup import RollUpSnapshotsOperator
from tests.e2e.webhook import Webhook
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.mailbox import Mailbox, Told, told_by


def test_a_disk_that_will_be_full_is_told_of_once_by_the_roll_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_MIN_HISTORY_HOURS", "1")
    monkeypatch.setenv("REHOME_SNAPSHOT_RETENTION_DAYS", "100000")
    monkeypatch.setenv("REHOME_ROLLUP_RETENTION_DAYS", "100000")
    cluster = Cluster((tmp_path / "warehouse").as_uri())

    def small(rows: Any) -> None:
        for row in rows.log_dirs:
            row.update(total_bytes=10**9, usable_bytes=10**8)

    def large(rows: Any) -> None:
        for row in rows.log_dirs:
            row.update(total_bytes=10**15, usable_bytes=10**15 - 10**9)

    with Webhook() as webhook, Mailbox() as mailbox:
        told_by(monkeypatch, webhook, mailbox)
        told = Told(webhook, mailbox)
        for minutes in range(0, 130, 10):
            newest = cluster.snapshot(minutes, small)
        for _ in range(2):
            task = RollUpSnapshotsOperator(task_id="roll_up", snapshot=newest)
            task.execute({"params": {"kafka_config_id": "kafka_default"}})  # type: ignore[arg-type]
        assert told.kinds() == ["disk_forecast"]
        alert = told.only("disk_forecast")
        assert (alert["cluster_id"], alert["connection"]) == (CLUSTER, "kafka_default")
        assert "disks are full within 30 days, counted from now: broker" in alert["text"]
        newest = cluster.snapshot(130, large)
        task = RollUpSnapshotsOperator(task_id="roll_up", snapshot=newest)
        task.execute({"params": {"kafka_config_id": "kafka_default"}})  # type: ignore[arg-type]
        assert told.kinds() == ["disk_forecast"]
    with installation.open_ledger() as ledger:
        (record,) = ledger.alerts()
    assert record.closed_at is not None
