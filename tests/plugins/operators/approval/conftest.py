"""Ann's plan, in a ledger and a warehouse of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.ledger.store import Ledger
from rehome.run import evidence
from rehome.warehouse import PlanDirectory, Warehouse
from tests.ledger.small_plans import make_plan
from tests.plugins.operators.approval.asked_plan import PARAMS


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    with installation.open_ledger() as opened:
        yield opened


@pytest.fixture
def directory(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlanDirectory:
    """Of ann's plan, which nobody has approved; its policy asks for another person's approval."""
    plan = make_plan("p1")
    found = Warehouse((tmp_path / "warehouse").as_uri()).plan("p1")
    found.save(plan, parse_request(PARAMS))
    files = evidence.digests_of(found)
    whence: dict[str, Any] = {"dag_id": "reassign_partitions", "files": files}
    ledger.create_plan(plan, PARAMS, found.uri, "first", "ann", **whence)
    policy = {"approval": True, "own_approval": False}
    extra = {"bootstrap.servers": "127.0.0.1:1", "rehome.policy": policy}
    kafka = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", kafka)
    return found
