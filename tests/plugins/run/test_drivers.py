"""Which run drives a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from airflow.sdk.api.client import ServerResponseError
from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.sdk.execution_time.comms import ErrorResponse

from rehome.ledger.store import Ledger
from rehome.run import drivers
from tests.ledger.small_plans import make_plan


@pytest.mark.parametrize(
    ("dag_id", "drives"), [("rebalance_in_window", True), ("another", False), (None, True)]
)
def test_a_run_drives_the_plans_of_its_own_dag_only(
    dag_id: str | None, drives: bool, tmp_path: Path
) -> None:
    run = {"dag_run": SimpleNamespace(dag_id="rebalance_in_window", run_id="scheduled__2030")}
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(make_plan("p1"), {}, "file:///x", "scheduled__2030", "ann")
        record = replace(ledger.plan("p1"), dag_id=dag_id)
    assert drivers.drives(run, record) is drives
    assert not drivers.drives(run, replace(record, run_id="scheduled__2031"))


class Airflow:
    """A task instance that may ask whether a DAG is paused."""

    def get_dag(self, dag_id: str) -> SimpleNamespace:
        if dag_id == "unknown":
            raise AirflowRuntimeError(ErrorResponse())
        if dag_id == "unknown to dag.test":
            gone = httpx.Response(404, request=httpx.Request("GET", "http://127.0.0.1"))
            raise ServerResponseError("not found", request=gone.request, response=gone)
        return SimpleNamespace(is_paused=dag_id == "paused")


def test_whether_a_dag_is_paused_is_asked_of_airflow_and_may_be_unknown() -> None:
    context = {"ti": Airflow()}
    dags = ("paused", "runs", "unknown", "unknown to dag.test")
    assert [drivers.dag_paused(context, dag) for dag in dags] == [True, False, None, None]
    assert drivers.dag_paused({"ti": SimpleNamespace()}, "runs") is None
