"""A recorded cluster, and the rules that it is watched by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.load_history.recorded import Cluster
from tests.plugins.fleet.recorded import Rules


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_WINDOW_DURATION_S", str(24 * 3600.0 - 1))
    monkeypatch.setenv("REHOME_WINDOW_CRON", "0 0 * * *")
    monkeypatch.setenv("REHOME_MAX_SNAPSHOT_AGE_S", "1e9")  # they are of a day long ago
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "b1:9092"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    return Cluster((tmp_path / "warehouse").as_uri())


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    def give(**given: Any) -> None:
        base = {"grace_s": 1200, "snapshots_to_close": 1, "balance_tolerance": 1.0}
        monkeypatch.setenv("REHOME_WATCH_RULES", json.dumps({**base, **given}))

    give()
    return give
