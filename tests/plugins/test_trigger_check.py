"""Requests that trigger a run are checked before there is one; others pass unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from rehome.params import FORM_DEFAULTS
from rehome.trigger_check import LARGEST_BODY_BYTES, TriggerCheck, problems_of

PATH = "/api/v2/dags/{}/dagRuns"


@pytest.fixture(params=["", "/airflow"])
def client(request: pytest.FixtureRequest) -> Iterator[TestClient]:
    """An API that answers with what it was sent."""
    app = FastAPI(root_path=request.param)
    app.add_middleware(TriggerCheck)

    @app.post("/{path:path}")
    async def echo(asked: Request) -> dict[str, int]:
        return {"bytes": len(await asked.body())}

    with TestClient(app, root_path=request.param) as opened:
        yield opened


def trigger(client: TestClient, dag_id: str, conf: Any) -> Any:
    return client.post(PATH.format(dag_id), json={"logical_date": None, "conf": conf})


def test_every_problem_of_a_run_is_answered_at_once(client: TestClient) -> None:
    conf = {"action": "drain", "throttle_min": 9, "throttle_max": 2, "window_end": "2020-01-01"}
    answer = trigger(client, "reassign_partitions", conf)
    assert answer.status_code == 400
    for part in ("needs brokers", "above throttle_max=2", "no time zone"):
        assert part in answer.json()["detail"]


def test_a_run_without_problems_reaches_airflow_whole(client: TestClient) -> None:
    big = {"action": "reassign", "reassignment": {"version": 1, "partitions": []}}
    big["reassignment"]["partitions"] = [
        {"topic": "t", "partition": n, "replicas": [1, 2]} for n in range(20_000)
    ]
    sent = json.dumps({"logical_date": None, "conf": big}, separators=(",", ":"))
    answer = client.post(PATH.format("reassign_partitions"), content=sent)
    assert answer.json() == {"bytes": len(sent)}


@pytest.mark.parametrize(
    ("dag_id", "conf", "code"),
    [
        ("reassign_partitions", None, 400),
        ("reassign_partitions", {}, 400),
        ("reassign_partitions", dict(FORM_DEFAULTS), 400),
        ("reassign_partitions", {"preset": "check_only"}, 200),
        ("reassign_partitions", {"plan_id": "p"}, 200),
        ("rebalance_in_window", None, 200),
    ],
)
def test_a_form_that_was_not_edited_starts_a_run_only_in_a_window(
    client: TestClient, dag_id: str, conf: Any, code: int
) -> None:
    answer = trigger(client, dag_id, conf)
    assert answer.status_code == code
    assert "An action is needed." in answer.text or code == 200


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"conf": 3}', b"x" * (LARGEST_BODY_BYTES + 1)]
)
def test_what_cannot_be_read_is_left_to_airflow(client: TestClient, content: bytes) -> None:
    answer = client.post(PATH.format("reassign_partitions"), content=content)
    assert answer.json() == {"bytes": len(content)}


@pytest.mark.parametrize("path", [PATH.format("theirs"), "/api/v2/dags/reassign_partitions/clear"])
def test_other_requests_are_passed_on_without_a_check(client: TestClient, path: str) -> None:
    assert client.post(path, json={"conf": {"action": "drain"}}).status_code == 200


@pytest.mark.parametrize(
    ("dag_id", "conf", "problem"),
    [
        ("reassign_partitions", {"preset": "drain_gently"}, "Action drain needs brokers."),
        ("rebalance_in_window", {"actoin": "drain"}, "Unknown parameter 'actoin'"),
        ("add_partitions", {"partitions": {}}, "at least one topic"),
        ("control_reassignment", {"plan_id": "p", "action": "change_throttle"}, "needs throttle"),
    ],
)
def test_each_dag_has_its_own_check(dag_id: str, conf: dict[str, Any], problem: str) -> None:
    assert problem in " ".join(problems_of(dag_id, conf))
