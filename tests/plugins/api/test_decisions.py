"""What people do to Rehome's DAGs is recorded; Airflow's answers never wait for it."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import Any

import pytest

from rehome.api import decisions
from rehome.api.airflow_routes import parse_api_request
from rehome.api.decisions import LONGEST_QUEUE, Followed, Recorder, entries_of, follow_and_record
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from tests.ui.site import token_of

DAG = "/api/v2/dags/reassign_partitions"
TASK = f"{DAG}/dagRuns/r/taskInstances/approve"
ENTRY = AuditEntry(Decided.TRIGGERED, Door.PAGE, user_name="ann")


def done(method: str, path: str, body: Any = None, answer: Any = None) -> Followed:
    what = parse_api_request({"type": "http", "method": method, "path": path})
    assert what is not None
    assert what.route.decided is not None
    values = what.values
    entry = AuditEntry(
        what.route.decided,
        Door.AIRFLOW_API,
        user_name="ann",
        dag_id=what.dag_id or None,
        run_id=values.get("dag_run_id"),
        task_id=values.get("task_id"),
    )
    return Followed(what, entry, json.dumps(body).encode(), json.dumps(answer).encode())


@pytest.mark.parametrize(
    ("method", "path", "body", "answer", "expected"),
    [
        (
            "POST",
            f"{DAG}/dagRuns",
            {"conf": {"plan_id": "p"}},
            {"dag_id": "reassign_partitions", "dag_run_id": "manual__1"},
            {"run_id": "manual__1", "plan_id": "p", "decision": Decided.TRIGGERED},
        ),
        (
            "PATCH",
            f"{TASK}/-1/hitlDetails",
            {"chosen_options": ["Approve"], "params_input": {"secret": 1}},
            None,
            {"run_id": "r", "task_id": "approve", "detail": {"chosen_options": ["Approve"]}},
        ),
        ("PATCH", f"{DAG}/dagRuns/r", {"state": "failed"}, None, {"detail": {"state": "failed"}}),
        ("DELETE", f"{TASK}/xcomEntries/a/b", None, None, {"detail": {"key": "a/b"}}),
        ("PATCH", DAG, {"is_paused": True}, None, {"detail": {"is_paused": True}}),
        (
            "POST",
            f"{DAG}/clearTaskInstances",
            {"dry_run": False, "dag_run_id": "r2", "task_ids": ["plan"]},
            None,
            {"run_id": "r2", "detail": {"task_ids": ["plan"]}},
        ),
        (
            "POST",
            "/api/v2/backfills",
            {"dag_id": "rebalance_in_window"},
            {"dag_id": "rebalance_in_window", "id": 3},
            {"dag_id": "rebalance_in_window", "decision": Decided.TRIGGERED},
        ),
    ],
)
def test_what_was_done_is_told_from_path_body_and_answer(
    method: str, path: str, body: Any, answer: Any, expected: dict[str, Any]
) -> None:
    (entry,) = entries_of(done(method, path, body, answer))
    assert {name: getattr(entry, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("method", "path", "body", "answer"),
    [
        ("POST", f"{DAG}/dagRuns/r/clear", {}, None),  # Airflow's own default
        ("POST", f"{DAG}/clearTaskInstances", {"dry_run": True}, None),
        ("POST", "/api/v2/backfills", {}, {"dag_id": "theirs"}),
        ("PATCH", "/api/v2/dags/~/dagRuns", {"actions": [{"entities": [{"dag_id": "x"}]}]}, None),
    ],
)
def test_a_dry_run_and_what_others_own_are_not_recorded(
    method: str, path: str, body: Any, answer: Any
) -> None:
    assert list(entries_of(done(method, path, body, answer))) == []


def test_of_a_request_about_several_runs_each_of_ours_is_recorded() -> None:
    entities = [
        {"dag_id": "theirs", "dag_run_id": "a"},
        {"dag_id": "watch_clusters", "dag_run_id": "b"},
        {"dag_id": "collect_snapshots__berlin", "dag_run_id": "c", "task_id": "t"},
    ]
    body = {"actions": [{"action": "update", "entities": entities}]}
    found = entries_of(done("PATCH", "/api/v2/dags/~/dagRuns/~/taskInstances", body))
    assert [(each.dag_id, each.run_id, each.task_id) for each in found] == [
        ("watch_clusters", "b", None),
        ("collect_snapshots__berlin", "c", "t"),
    ]
    body = {"actions": [{"action": "delete", "entities": ["r1", "r2"]}]}
    found = entries_of(done("PATCH", f"{DAG}/dagRuns", body))
    assert [each.run_id for each in found] == ["r1", "r2"]


@pytest.mark.parametrize("body", [b"", b"[", b"[" * 100_000, b"\xff", b"3", b'{"conf": 3}'])
def test_a_body_that_cannot_be_read_is_recorded_without_it(body: bytes) -> None:
    followed_ = done("PATCH", f"{DAG}/dagRuns/r")
    (entry,) = entries_of(Followed(followed_.api_request, followed_.entry, body, b""))
    assert (entry.run_id, entry.detail) == ("r", {})


def test_what_cannot_be_written_is_tried_again_and_at_last_logged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written: list[AuditEntry] = []
    failing = 2

    def write(entry: AuditEntry) -> None:
        nonlocal failing
        failing -= 1
        if failing >= 0:
            raise OSError("no ledger")
        written.append(entry)

    recorder = Recorder(write, wait=lambda _: None)
    recorder.put(ENTRY)
    assert recorder.flush(10)
    assert (written, recorder.not_recorded) == ([ENTRY], 0)
    failing = 99
    with caplog.at_level(logging.ERROR):
        recorder.put(ENTRY)
        assert recorder.flush(10)
    assert recorder.not_recorded == 1
    assert "user_name='ann'" in caplog.text


def test_a_full_queue_neither_waits_nor_raises() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def write(_: AuditEntry) -> None:
        begun.set()
        go_on.wait(30)

    recorder = Recorder(write)
    recorder.put(ENTRY)
    assert begun.wait(10)
    for _ in range(LONGEST_QUEUE + 3):
        recorder.put(ENTRY)
    assert recorder.not_recorded == 3
    go_on.set()
    assert recorder.flush(30)


def passed(status: int, monkeypatch: pytest.MonkeyPatch, role: str = "op") -> list[Followed]:
    """What is recorded of a request that an application answers so."""
    put: list[Followed] = []
    recorder = type("Recorder", (), {"put": staticmethod(put.append)})
    monkeypatch.setattr(decisions, "RECORDER", recorder)
    headers = [(b"authorization", f"Bearer {token_of(role)}".encode())]
    scope = {
        "type": "http",
        "method": "PATCH",
        "path": f"{DAG}/dagRuns/r",
        "headers": headers,
        "client": ("192.0.2.7", 5),
    }
    what = parse_api_request(scope)
    assert what is not None

    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def receive() -> Any:
        return {"type": "http.request", "body": b'{"state": "failed"}', "more_body": False}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(follow_and_record(app, what, scope, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return put


def test_who_did_it_and_from_where(monkeypatch: pytest.MonkeyPatch, auth_manager: None) -> None:
    (found,) = passed(200, monkeypatch)
    (entry,) = entries_of(found)
    assert (entry.user_id, entry.user_name, entry.address) == ("op", "op", "192.0.2.7")
    assert (entry.dag_id, entry.run_id) == ("reassign_partitions", "r")
    assert (entry.decision, entry.detail["state"]) == (Decided.RUN_STATE_SET, "failed")


def test_what_was_refused_is_not_recorded(
    monkeypatch: pytest.MonkeyPatch, auth_manager: None
) -> None:
    assert passed(403, monkeypatch) == passed(500, monkeypatch) == []


def test_a_failure_to_record_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch, auth_manager: None
) -> None:
    def fail(_: Any) -> None:
        raise OSError

    monkeypatch.setattr("rehome.api.identity.address_of", fail)
    assert passed(200, monkeypatch) == []
