"""A run of an installation, whose ledger and warehouse are of one directory."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.run.context import RunContext
from rehome.warehouse import PlanDirectory, Warehouse
from tests.ledger.small_plans import make_plan

PARAMS = {"action": "drain", "brokers": [4]}


class Site:
    """A run whose plan may be recorded, and a ledger and a warehouse that may be others."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory = directory
        self._monkeypatch = monkeypatch
        self.xcom: str | None = None
        nowhere = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(nowhere))
        monkeypatch.setenv("REHOME_WAREHOUSE", (directory / "warehouse").as_uri())
        self.use("ledger")

    @property
    def context(self) -> dict[str, Any]:
        run = SimpleNamespace(
            dag_id="a-dag", run_id="run-1", run_after=datetime(2030, 1, 1, tzinfo=UTC)
        )
        attempt = SimpleNamespace(xcom_pull=lambda task_ids: self.xcom)
        return {"dag_run": run, "params": PARAMS, "ti": attempt}

    def use(self, name: str) -> Path:
        """Have tasks open the ledger of that name."""
        path = self._directory / f"{name}.db"
        self._monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{path}")
        return path

    def plan(self, *, recorded: bool, action: str = "reassign") -> PlanDirectory:
        """As the task `plan` leaves it, or one that was interrupted."""
        plan_id = RunContext(self.context).plan_id
        directory = Warehouse(installation.settings().warehouse).plan(plan_id)
        plan = replace(make_plan(plan_id), action=action)
        with installation.open_ledger() as ledger:
            summary = replace(plan.summary, ledger_id=ledger.ledger_id)
            plan = replace(plan, summary=summary)
            directory.save(plan, parse_request(PARAMS))
            if recorded:
                ledger.create_plan(plan, PARAMS, directory.uri, "run-1", "ann")
                self.xcom = plan_id
        return directory

    def reported_by(self, operator: type[Any]) -> str:
        """What a teardown fails with; "" = it does not."""
        try:
            operator(task_id="teardown", kafka_config_id="kafka_default").execute(self.context)
        except AirflowSkipException as skipped:
            return f"skipped: {skipped}"
        except AirflowException as error:
            return str(error)
        return ""
