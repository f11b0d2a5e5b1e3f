"""The guard in Airflow's own API, with Airflow's middlewares, routes and rights around it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rehome.api import bounded, decisions
from rehome.api.decisions import Recorder
from rehome.ledger.base.audit_entry import Decided, Door
from rehome.ledger.store import Ledger
from tests.dags.own.how_to import blocks, parsed
from tests.dags.runs import register
from tests.ledger.audit_rows import audit_of
from tests.ui.site import token_of

DAGS = Path(__file__).parents[3] / "dags"
DAG = "/api/v2/dags/control_reassignment"
RUNS = f"{DAG}/dagRuns"
ASKED = {"logical_date": None, "conf": {"plan_id": "p1", "action": "pause"}}


@pytest.fixture(scope="module")
def airflow(airflow_database: None) -> FastAPI:
    """Airflow's API server without its port, and one DAG."""
    from airflow.api_fastapi.app import create_app
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(str(DAGS / "control_reassignment.py"), bundle_name="dags-folder")
    sync_bag_to_db(bag, "dags-folder", None)
    app: FastAPI = create_app("core")
    return app


@pytest.fixture
def audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: list[object]
) -> Iterator[Ledger]:
    """The ledger that decisions are written to."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    monkeypatch.setenv("REHOME_LEDGER_URL", url)
    monkeypatch.setattr(decisions, "RECORDER", Recorder(decisions.to_ledger))
    with Ledger.open(url) as ledger:
        yield ledger
        assert decisions.RECORDER.flush(30)


def client(app: FastAPI, role: str) -> TestClient:
    headers = {"authorization": f"Bearer {token_of(role)}"} if role else {}
    return TestClient(app, headers=headers, client=("192.0.2.7", 5))


@pytest.mark.parametrize(("role", "code"), [("", 401), ("viewer", 403)])
def test_who_may_not_trigger_is_refused_before_thirteen_megabytes_are_read(
    airflow: FastAPI, monkeypatch: pytest.MonkeyPatch, role: str, code: int
) -> None:
    async def read(*_: Any) -> bytes:
        pytest.fail("the body was read")

    monkeypatch.setattr(bounded, "body_of", read)
    assert client(airflow, role).post(RUNS, content=b"[" * 13_000_000).status_code == code


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"[" * 13_000_000, 413),
        (b'{"conf": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400),
        (b'{"conf": {"throttle": 1' + b"0" * 400 + b"}}", 400),
        (b"{", 422),
        (json.dumps({"logical_date": None, "conf": {}}).encode(), 400),
    ],
)
def test_what_is_wrong_is_never_an_error_of_the_server(
    airflow: FastAPI, content: bytes, code: int
) -> None:
    headers = {"content-type": "application/json"}
    answer = client(airflow, "user").post(RUNS, content=content, headers=headers)
    assert answer.status_code == code
    assert answer.json()["detail"]


@pytest.mark.parametrize("path", [f"{RUNS}%0A", "/api/v2/dags/control_reassignment%2FdagRuns"])
def test_no_spelling_of_the_path_leads_around_the_check(airflow: FastAPI, path: str) -> None:
    answer = client(airflow, "user").post(path, json={"logical_date": None, "conf": {}})
    assert answer.status_code == 400
    assert "This run would be refused" in answer.json()["detail"]


def ask_a_person(ti_id: str) -> None:
    """What a task does that waits for an answer."""
    from airflow.models.hitl import HITLDetail
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(HITLDetail(ti_id=UUID(ti_id), options=["Approve"], subject="?", params={}))


def test_what_people_do_by_airflows_api_is_in_the_audit_with_their_address(
    airflow: FastAPI, audit: Ledger
) -> None:
    user, op = client(airflow, "user"), client(airflow, "op")
    run_id = user.post(RUNS, json=ASKED).raise_for_status().json()["dag_run_id"]
    run = f"{RUNS}/{run_id}"
    found = user.get(f"{run}/taskInstances").json()["task_instances"]
    task = f"{run}/taskInstances/{found[0]['task_id']}"
    ask_a_person(found[0]["id"])
    answer = {"chosen_options": ["Approve"], "params_input": {"new_throttle": "auto"}}
    op.patch(f"{task}/-1/hitlDetails", json=answer).raise_for_status()
    assert user.patch(f"{task}/-1/hitlDetails", json=answer).status_code == 409
    xcom = {"key": "return_value", "value": "forged"}
    user.post(f"{task}/xcomEntries", json=xcom).raise_for_status()
    user.patch(task, json={"new_state": "success"}).raise_for_status()
    user.post(f"{run}/clear", json={"dry_run": False}).raise_for_status()
    user.patch(run, json={"state": "failed"}).raise_for_status()
    op.patch(DAG, json={"is_paused": True}).raise_for_status()
    assert client(airflow, "viewer").patch(run, json={"state": "success"}).status_code == 403
    assert decisions.RECORDER.flush(30)
    rows = audit_of(audit)
    assert [row.decision for row in rows] == [
        Decided.TRIGGERED,
        Decided.ANSWERED,
        Decided.XCOM_WRITTEN,
        Decided.TASK_STATE_SET,
        Decided.CLEARED,
        Decided.RUN_STATE_SET,
        Decided.DAG_CHANGED,
    ]
    assert [row.user_id for row in rows] == ["user", "op", *["user"] * 4, "op"]
    assert {row.address for row in rows} == {"192.0.2.7"}
    assert {row.door for row in rows} == {Door.AIRFLOW_API}
    assert {row.run_id for row in rows[:6]} == {run_id}
    assert rows[0].plan_id == "p1"
    assert rows[1].detail["chosen_options"] == ["Approve"]
    assert rows[1].task_id == found[0]["task_id"]
    assert rows[2].detail["key"] == "return_value"


def test_a_dag_of_peoples_own_is_in_the_audit_and_takes_no_other_values(
    airflow: FastAPI, audit: Ledger, tmp_path: Path
) -> None:
    own = register(parsed(blocks()[0], tmp_path))
    runs, user = f"/api/v2/dags/{own.dag_id}/dagRuns", client(airflow, "user")
    other = user.post(runs, json={"logical_date": None, "conf": {"brokers": [1]}})
    assert other.status_code == 400
    assert "brokers" in other.json()["detail"]
    assert client(airflow, "viewer").post(runs, json={"logical_date": None}).status_code == 403
    run_id = user.post(runs, json={"logical_date": None}).raise_for_status().json()["dag_run_id"]
    assert decisions.RECORDER.flush(30)
    (row,) = audit_of(audit)
    assert (row.decision, row.user_id, row.run_id) == (Decided.TRIGGERED, "user", run_id)


def test_airflow_answers_though_the_ledger_is_away(
    airflow: FastAPI, audit: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: Any) -> None:
        raise OSError("no ledger")

    recorder = Recorder(away, wait=lambda _: None)
    monkeypatch.setattr(decisions, "RECORDER", recorder)
    assert client(airflow, "user").post(RUNS, json=ASKED).status_code == 200
    assert recorder.flush(30)
    assert recorder.not_recorded == 1
