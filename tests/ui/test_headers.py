"""Every answer of the page has the strict headers: errors and redirects, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from fastapi.testclient import TestClient

from rehome.ui import lazy_app
from rehome.ui.headers import HEADERS, REPORT_POLICY
from tests.ui.site import Site

Client = Callable[[str], TestClient]


def strict(answer: Any) -> bool:
    return all(answer.headers[name] == value for name, value in HEADERS.items())


@pytest.mark.parametrize(
    ("method", "address", "code"),
    [
        ("GET", "nothing/here", 404),
        ("GET", "", 200),
        ("GET", "clusters/", 307),
        ("PUT", "plans/p1", 405),
        ("DELETE", "clusters", 405),
        ("OPTIONS", "plans/p1", 405),
        ("HEAD", "", 405),
        ("GET", "runs/reassign_partitions/manual__p1", 307),
        ("POST", "plans/p1/controls/cancel", 403),
        ("GET", "plans/p1/controls/fly", 422),
        ("GET", "?page=0", 422),
    ],
)
def test_every_answer_is_strict(
    client: Client, site: Site, method: str, address: str, code: int
) -> None:
    site.plan("p1")
    answer = client("admin").request(method, address, follow_redirects=False)
    assert answer.status_code == code
    assert strict(answer)


def test_an_anonymous_is_answered_strictly(client: Client, site: Site) -> None:
    for method, code in (("GET", 401), ("POST", 401)):
        answer = client("").request(method, "plans/p1/controls/cancel")
        assert (answer.status_code, strict(answer)) == (code, True)


def test_an_error_of_the_page_is_a_page_and_strict(
    page: FastAPI, client: Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("secret")

    site.plan("p1")
    monkeypatch.setattr("rehome.ui.routes.plan.view_for", fail)
    cookies = dict(client("admin").cookies)
    calm = TestClient(page, cookies=cookies, raise_server_exceptions=False)
    answer = calm.get("/rehome/plans/p1")
    assert answer.status_code == 500
    assert "error of its own (ZeroDivisionError)" in answer.text
    assert "secret" not in answer.text
    assert strict(answer)


def test_a_page_that_cannot_be_made_says_so_strictly_and_is_made_when_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> Any:
        raise ImportError("/srv/secret")

    async def page(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("the page")(scope, receive, send)

    client = TestClient(lazy_app.LazyPage())
    monkeypatch.setattr(lazy_app, "made_page", fail)
    answer = client.get("/")
    assert answer.status_code == 500
    assert "could not be made (ImportError)" in answer.text
    assert "secret" not in answer.text
    assert strict(answer)
    monkeypatch.setattr(lazy_app, "made_page", lambda: page)
    assert client.get("/").text == "the page"
    monkeypatch.setattr(lazy_app, "made_page", fail)  # it is made once
    assert client.get("/").text == "the page"


def test_a_report_keeps_its_own_policy(client: Client, site: Site) -> None:
    site.plan("p1")
    answer = client("viewer").get("files/p1/report.html")
    assert answer.headers["content-security-policy"] == REPORT_POLICY
    assert answer.headers["cache-control"] == HEADERS["Cache-Control"]
