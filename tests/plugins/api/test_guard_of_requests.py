"""Requests to Rehome's DAGs: rights first, then bounds, then parameters; others pass unchanged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from rehome.api import bounded, guard
from rehome.api.guard import ApiGuard
from rehome.api.places import Places
from rehome.params import FORM_DEFAULTS
from tests.ui.site import token_of

PATH = "/api/v2/dags/{}/dagRuns"
OURS = PATH.format("reassign_partitions")
TASK = f"{OURS}/r/taskInstances/approve"
BIG = b"x" * (bounded.LARGEST_BODY_BYTES + 1)


@pytest.fixture(scope="module", params=["", "/airflow"])
def app(request: pytest.FixtureRequest, airflow_database: None) -> FastAPI:
    """An API that answers with the size of what it was sent."""
    from airflow.api_fastapi.app import init_auth_manager

    made = FastAPI(root_path=request.param)
    made.add_middleware(ApiGuard)
    init_auth_manager(made)

    @made.api_route("/{path:path}", methods=["POST", "PUT", "PATCH", "DELETE"])
    async def echo(asked: Request) -> dict[str, int]:
        return {"bytes": len(await asked.body())}

    return made


@pytest.fixture
def client(app: FastAPI) -> Callable[[str], TestClient]:
    """``client("user")``: of a role, by its cookie; ``client("")``: anonymous."""

    def of(role: str) -> TestClient:
        cookies = {"_token": token_of(role)} if role else {}
        return TestClient(app, root_path=app.root_path, cookies=cookies)

    return of


@pytest.fixture
def user(client: Callable[[str], TestClient]) -> TestClient:
    return client("user")


def trigger(client: TestClient, dag_id: str, conf: Any) -> Any:
    return client.post(PATH.format(dag_id), json={"logical_date": None, "conf": conf})


def test_every_problem_of_a_run_is_answered_at_once(user: TestClient) -> None:
    conf = {"action": "drain", "throttle_min": 9, "throttle_max": 2, "window_end": "2020-01-01"}
    answer = trigger(user, "reassign_partitions", conf)
    assert answer.status_code == 400
    for part in ("needs brokers", "above throttle_max=2", "no time zone"):
        assert part in answer.json()["detail"]


def test_a_run_without_problems_reaches_airflow_whole(user: TestClient) -> None:
    partitions = [{"topic": "t", "partition": n, "replicas": [1, 2]} for n in range(19_000)]
    big = {"action": "reassign", "reassignment": {"version": 1, "partitions": partitions}}
    sent = json.dumps({"logical_date": None, "conf": big}, separators=(",", ":"))
    assert len(sent) > 0.9 * bounded.LARGEST_BODY_BYTES
    answer = user.post(OURS, content=sent)
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
    user: TestClient, dag_id: str, conf: Any, code: int
) -> None:
    answer = trigger(user, dag_id, conf)
    assert answer.status_code == code
    assert "An action is needed." in answer.text or code == 200


@pytest.mark.parametrize(
    ("dag_id", "conf", "code"),
    [
        ("reassign_partitions", {"preset": "check_only"}, 409),
        ("reassign_partitions", {}, 400),
        ("control_reassignment", {"plan_id": "p", "action": "pause"}, 200),
    ],
)
def test_a_run_whose_pool_is_missing_is_not_triggered(
    user: TestClient, without_pool: None, dag_id: str, conf: Any, code: int
) -> None:
    answer = trigger(user, dag_id, conf)
    assert answer.status_code == code
    assert ("no pool rehome_cluster" in answer.text) is (code == 409)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"conf": 3}', b"\xff\xfe\x00"])
def test_what_is_no_request_is_left_to_airflow(user: TestClient, content: bytes) -> None:
    assert user.post(OURS, content=content).json() == {"bytes": len(content)}


@pytest.mark.parametrize("path", [PATH.format("theirs"), "/api/v2/variables", "/execution/x"])
def test_requests_to_others_pass_whole_whoever_sends_them(
    client: Callable[[str], TestClient], path: str
) -> None:
    assert client("").post(path, content=BIG).json() == {"bytes": len(BIG)}


@pytest.mark.parametrize(
    ("method", "path", "recorded_are"),
    [
        ("PATCH", PATH.format("theirs"), 1),  # its body may name our DAGs, too
        ("PATCH", PATH.format("~"), 1),
        ("PATCH", PATH.format("theirs") + "/r/taskInstances", 1),
        ("POST", "/api/v2/dags/theirs/clearDagRuns", 1),
        ("PATCH", PATH.format("theirs") + "/r", 0),
        ("POST", PATH.format("theirs"), 0),
    ],
)
def test_of_other_dags_only_what_may_concern_ours_is_followed(
    user: TestClient, recorded: list[object], method: str, path: str, recorded_are: int
) -> None:
    assert user.request(method, path, json={}).status_code == 200
    assert len(recorded) == recorded_are


def call(
    app: FastAPI,
    path: str,
    method: str = "POST",
    role: str = "",
    headers: dict[str, str] | None = None,
    messages: Callable[[], Any] | None = None,
) -> tuple[int, dict[str, str], dict[str, Any]]:
    """One request below any client: what is received is seen. Status, headers, content."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if messages is None:
            pytest.fail("the body was read")
        found: dict[str, Any] = await messages()
        return found

    async def send(message: Any) -> None:
        sent.append(message)

    given = dict(headers or {})
    if role:
        given["authorization"] = f"Bearer {token_of(role)}"
    scope = {
        "type": "http",
        "method": method,
        "path": app.root_path + path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("192.0.2.7", 5),
    }
    asyncio.run(app(scope, receive, send))
    if not sent:
        return 0, {}, {}
    raw = b"".join(message.get("body", b"") for message in sent[1:])
    got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], got, json.loads(raw)


CHANGES = [
    ("POST", OURS),
    ("POST", f"{OURS}\n"),  # Starlette's routes end before a line feed, too
    ("POST", f"{OURS}/"),
    ("PATCH", f"{OURS}/r"),
    ("DELETE", f"{OURS}/r"),
    ("POST", f"{OURS}/r/clear"),
    ("POST", "/api/v2/dags/reassign_partitions/clearTaskInstances"),
    ("PATCH", f"{TASK}/-1/hitlDetails"),
    ("POST", f"{TASK}/xcomEntries"),
    ("PATCH", f"{TASK}/xcomEntries/a/b"),
    ("PUT", f"{TASK}/state-store/k"),
    ("PATCH", PATH.format("collect_snapshots__berlin") + "/r"),
    ("POST", "/api/v2/dags/watch_clusters/something_of_a_later_airflow"),
]


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_of_the_anonymous_nothing_is_read(app: FastAPI, method: str, path: str) -> None:
    code, _, content = call(app, path, method)
    assert (code, content) == (401, {"detail": "Not authenticated"})


@pytest.mark.parametrize(("method", "path"), CHANGES[:-1])
def test_of_who_has_no_right_nothing_is_read(app: FastAPI, method: str, path: str) -> None:
    if path.endswith("/"):
        return  # no route of Airflow's: whoever may read the DAG is told so by Airflow
    assert call(app, path, method, "viewer")[0] == 403


def test_the_clusters_file_is_not_read_before_rights_are(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "problems_of", lambda *_: pytest.fail("checked"))
    for role, code in (("", 401), ("viewer", 403)):
        assert call(app, OURS, role=role)[0] == code


def test_a_token_that_is_no_token_is_refused_as_airflow_does(app: FastAPI) -> None:
    assert call(app, OURS, headers={"authorization": "Bearer rubbish"})[0] == 403


@pytest.mark.parametrize("headers", [{"content-length": "13000000"}, {"transfer-encoding": "x"}])
@pytest.mark.parametrize(("role", "code"), [("", 401), ("viewer", 403)])
def test_the_connection_of_a_stranger_is_closed_or_the_server_would_read_all_he_sends(
    app: FastAPI, headers: dict[str, str], role: str, code: int
) -> None:
    found, answered, _ = call(app, OURS, role=role, headers=headers)
    assert (found, answered["connection"]) == (code, "close")
    found, answered, _ = call(app, OURS, role=role, headers={"content-length": "400"})
    assert (found, answered.get("connection")) == (code, None)


def test_large_bodies_are_checked_one_after_the_other_with_rests(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    took_s, size = 3.0, guard.LARGE_BODY_BYTES
    now_s, rests = [0.0], list[float]()

    def check(*_: Any) -> tuple[str, ...]:
        now_s[0] += took_s
        return ()

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(guard, "problems_of", check)
    monkeypatch.setattr(guard, "monotonic_s", lambda: now_s[0])
    monkeypatch.setattr(asyncio, "sleep", rest)
    for length, expected in ((size - 9, []), (size + 9, [took_s * guard.RESTS])):
        assert call(app, OURS, role="user", messages=body_in(b"{}".ljust(length)))[0] == 200
        assert rests == expected


def test_an_announced_size_is_refused_unread(app: FastAPI) -> None:
    code, _, content = call(app, OURS, role="user", headers={"content-length": "13000000"})
    assert code == 413
    assert "Split a larger reassignment file" in content["detail"]


def body_in(*parts: bytes, ended: bool = True) -> Callable[[], Any]:
    left = list(parts)

    async def messages() -> dict[str, Any]:
        if not left:
            await asyncio.sleep(60)
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left) or not ended}

    return messages


def test_a_size_that_is_not_announced_is_refused_when_it_is_reached(app: FastAPI) -> None:
    part = b" " * 400_000
    sent = body_in(part, part, part, ended=False)
    assert call(app, OURS, role="user", messages=sent)[0] == 413
    lied = {"content-length": "5"}
    sent = body_in(part, part, part, ended=False)
    assert call(app, OURS, role="user", headers=lied, messages=sent)[0] == 413


def test_a_body_that_does_not_end_is_given_up(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "LONGEST_BODY_S", 0.05)
    code, _, content = call(app, OURS, role="user", messages=body_in(b"{", ended=False))
    assert code == 408
    assert "did not arrive" in content["detail"]
    assert guard.BODIES.open == 0


def test_a_client_that_goes_away_is_not_answered(app: FastAPI) -> None:
    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    assert call(app, OURS, role="user", messages=gone)[0] == 0
    assert guard.BODIES.open == 0


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b'{"conf": {"throttle": 1' + b"0" * 400 + b"}}", "digits"),
        (b'{"conf": {"tolerance": 1e999}}', "floating point"),
        (b'{"conf": {"tolerance": NaN}}', "NaN"),
        (b'{"conf": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "levels"),
    ],
)
@pytest.mark.parametrize(("method", "path"), [CHANGES[0], CHANGES[7]])
def test_what_would_break_its_reader_is_refused_everywhere(
    user: TestClient, content: bytes, part: str, method: str, path: str
) -> None:
    answer = user.request(method, path, content=content)
    assert answer.status_code == 400
    assert part in answer.json()["detail"]


@pytest.mark.parametrize("error", [OverflowError, RecursionError, KeyError, OSError])
def test_a_check_that_fails_is_said_in_plain_words(
    user: TestClient, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: Any) -> Any:
        raise error("/srv/secret")

    monkeypatch.setattr(guard, "problems_of", fail)
    answer = trigger(user, "reassign_partitions", {})
    assert answer.status_code == 503
    assert "no run was triggered" in answer.json()["detail"]
    assert "secret" not in answer.text


def test_a_hundred_problems_are_not_all_listed(
    user: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "problems_of", lambda *_: ("Wrong.",) * 100)
    detail = trigger(user, "reassign_partitions", {}).json()["detail"]
    assert "first 10 of 100 problems" in detail


def test_a_user_who_has_all_places_is_asked_to_wait(
    user: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(1, 9)
    monkeypatch.setattr(guard, "BODIES", places)
    with places.take("user"):
        answer = trigger(user, "reassign_partitions", {"plan_id": "p"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
    assert trigger(user, "reassign_partitions", {"plan_id": "p"}).status_code == 200
