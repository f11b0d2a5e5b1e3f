"""Every route and method, asked as everybody: the answers are those of docs/reference/routes.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response

from handbook.routes import (
    BY_BODY,
    LOG_IN,
    NO,
    NOT_ASKED,
    ROLES,
    YES,
    RouteAnswers,
    api_routes,
    page_routes,
)
from rehome.api import decisions
from rehome.api.guard import ApiGuard
from tests.ui.site import Site, snapshot_of, token_of

Client = Callable[[str], TestClient]
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
FILLED = {
    "plan_id": "p1",
    "tab": "events",
    "control": "cancel",
    "name": "summary.json",
    "dag_id": "reassign_partitions",
    "run_id": "manual__p1",
    "dag_run_id": "manual__p1",
    "cluster_id": "test",
}
FORM = {"action": "drain", "brokers": "4", "kind": "tolerance", "value": "1"}
FORM |= {"connection": "kafka_default", "cluster_id": "test"}


def filled(path: str) -> str:
    return re.sub(r"{(\w+)(:path)?}", lambda found: FILLED.get(found[1], "x"), path)


def form_token(name: str) -> str:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    from rehome.ui.access import token_for

    return token_for(SimpleAuthManagerUser(username=name, role="admin"))


def ask(client: TestClient, method: str, path: str, token: str = "") -> Response:
    headers = {"X-Rehome-Token": token} if token else {}
    address = filled(path).removeprefix("/rehome").lstrip("/")
    if path.endswith("/live"):
        with client.stream(method, address) as opened:
            answer: Response = opened
    else:
        data = FORM if method == "POST" else None
        answer = client.request(method, address, headers=headers, data=data, follow_redirects=False)
    return answer


def cell(code: int, yes: str = YES) -> str:
    assert code < 500
    return str(code) if code in (401, 403, 405) else yes


def each(route: RouteAnswers) -> str:
    return f"{route.method} {route.path}"


@pytest.mark.parametrize("route", page_routes(), ids=each)
def test_every_route_of_the_page_answers_everybody_as_the_table_says(
    client: Client, site: Site, triggered: list[dict[str, Any]], route: RouteAnswers
) -> None:
    site.run(site.plan("p1"), flying=2)
    snapshot_of(site)
    told = {
        "": route.anonymous,
        **route.by_role,
        "admin with another's form": route.foreign_form,
    }
    found = {"": cell(ask(client(""), route.method, route.path).status_code)}
    for role in ROLES:
        answer = ask(client(role), route.method, route.path, form_token(role))
        found[role] = cell(answer.status_code)
    before = len(triggered)
    if route.foreign_form == NOT_ASKED:
        found["admin with another's form"] = NOT_ASKED
    else:
        answer = ask(client("admin"), route.method, route.path, form_token("user"))
        found["admin with another's form"] = cell(answer.status_code)
    assert found == told
    assert len(triggered) == before


def test_no_route_has_a_method_that_the_table_does_not_have(client: Client, site: Site) -> None:
    from rehome.ui.app import create_app

    known = {(route.method, route.path) for route in page_routes()}
    paths = {"/rehome" + getattr(route, "path", "") for route in create_app().routes}
    assert paths == {path for _, path in known}
    admin = client("admin")
    for path in sorted(paths):
        for method in METHODS:
            if (method, path) not in known:
                assert ask(admin, method, path).status_code == 405, (method, path)


@pytest.fixture(scope="module")
def api(airflow_database: None) -> FastAPI:
    """What stands behind the guard answers everybody: what is refused, the guard refuses."""
    from airflow.api_fastapi.app import init_auth_manager

    made = FastAPI()
    made.add_middleware(ApiGuard)
    init_auth_manager(made)

    @made.api_route("/{path:path}", methods=["POST", "PUT", "PATCH", "DELETE"])
    async def answer() -> None:
        pass

    return made


def test_the_guard_answers_everybody_as_the_table_says(
    api: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions.RECORDER, "put", lambda _: None)
    for route in api_routes():
        path = filled(route.path)
        assert TestClient(api).request(route.method, path).status_code == int(LOG_IN)
        for role in ROLES:
            client = TestClient(api, cookies={"_token": token_of(role)})
            body = None if route.method == "DELETE" else {"conf": {"plan_id": "p"}}
            code = client.request(route.method, path, json=body).status_code
            expected = route.by_role[role]
            assert cell(code, expected if expected == BY_BODY else YES) == expected, each(route)


def test_a_route_that_is_open_to_too_many_is_seen() -> None:
    assert cell(200) == YES != NO
    assert cell(403) == NO
