"""Who sees the page and who acts on it; what another site, or a name from a cluster, may try."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from starlette.routing import Mount, Route

from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import Control
from rehome.warehouse import PlanDirectory
from tests.ui.site import EVIL, Site, drain_moves, snapshot_of

Client = Callable[[str], TestClient]


def routes() -> Iterator[tuple[str, str]]:
    """Method and address of every route there is, each with a plan's id and a name in it."""
    from rehome.ui.app import create_app

    filled = {
        "plan_id": "p1",
        "tab": "events",
        "control": "cancel",
        "name": "summary.json",
        "dag_id": "reassign_partitions",
        "run_id": "manual__p1",
        "cluster_id": "test",
    }
    for route in create_app().routes:
        assert isinstance(route, Route | Mount)
        methods: set[str] = getattr(route, "methods", None) or {"GET"}
        path = re.sub(r"{(\w+)(:path)?}", lambda m: filled[m[1]], route.path)
        yield from ((method, path.lstrip("/")) for method in sorted(methods - {"HEAD"}))


def ask(client: TestClient, method: str, path: str) -> Response:
    """A stream is opened and closed: it would not end by itself."""
    if path.endswith("/live"):
        with client.stream(method, path) as answer:
            response: Response = answer
    else:
        response = client.request(method, path, follow_redirects=False)
    return response


@pytest.mark.parametrize(("method", "path"), routes())
def test_every_route_is_closed_to_the_anonymous(
    client: Client, site: Site, method: str, path: str
) -> None:
    site.plan("p1")
    assert ask(client(""), method, path).status_code == 401


@pytest.mark.parametrize(("method", "path"), [r for r in routes() if r[0] == "GET"])
def test_what_a_viewer_may_see_is_served_with_strict_headers(
    client: Client, site: Site, method: str, path: str
) -> None:
    site.plan("p1")
    snapshot_of(site)
    answer = ask(client("viewer"), method, path)
    refused = "controls" in path or path.endswith("/new")
    absent = path.startswith(("static", "data-docs", "files/p1/export/"))
    asks_nothing = path.endswith("/explanations")
    expected = {403} if refused else {404} if absent else {200, 286, 307}
    expected = {422} if asks_nothing else expected
    assert answer.status_code in expected
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert "frame-ancestors 'self'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_says_that_a_plan_runs_without_a_throttle_and_has_what_was_exported(
    client: Client, site: Site
) -> None:
    plan = site.plan("p1", unthrottled=True, max_moves_per_broker=2)
    directory = PlanDirectory(site.ledger.plan("p1").plan_dir)
    directory.write_json("export.json", {"batches": [], "files": ["README.txt"]})
    directory.folder("export").write_text("README.txt", "what to do")
    viewer = client("viewer")
    assert "Without a throttle: 2 moves at once" in viewer.get(f"plans/{plan.plan_id}").text
    assert "export/README.txt" in viewer.get("plans/p1/tabs/files").text
    assert viewer.get("files/p1/export/README.txt").text == "what to do"
    assert viewer.get("files/p1/export/..%2Fsummary.json").status_code == 404


def test_without_a_throttle_the_page_names_the_moves_at_once_that_were_asked_for_last(
    client: Client, site: Site
) -> None:
    site.run(site.plan("p1", unthrottled=True, max_moves_per_broker=8))
    site.ledger.request_moves("p1", 2, "ann", check=lambda _: None)
    assert "Without a throttle: 2 moves at once" in client("viewer").get("plans/p1").text


def test_only_reports_may_style_themselves_and_none_may_run_a_script(
    client: Client, site: Site
) -> None:
    site.plan("p1")
    page = client("viewer").get("plans/p1")
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    assert "<script>" not in page.text
    assert " style=" not in page.text
    report = client("viewer").get("files/p1/report.html").headers["content-security-policy"]
    assert "script-src" not in report
    assert report.endswith("sandbox")


def test_a_viewer_has_no_buttons_and_his_requests_are_refused(
    client: Client, site: Site, triggered: list[dict[str, Any]]
) -> None:
    site.run(site.plan("p1"), flying=2)
    assert "/controls/" not in client("viewer").get("plans/p1").text
    assert "/controls/pause" in client("admin").get("plans/p1").text
    own = re.search(r'"X-Rehome-Token": "([^"]+)"', client("viewer").get("").text)
    assert own
    answer = client("viewer").post("plans/p1/controls/cancel", headers={"X-Rehome-Token": own[1]})
    assert answer.status_code == 403
    assert triggered == []


def test_a_request_runs_control_reassignment_in_the_users_name(
    client: Client, site: Site, token: str, triggered: list[dict[str, Any]]
) -> None:
    site.run(site.plan("p1"), flying=2)
    answer = client("admin").post(
        "plans/p1/controls/change_throttle",
        headers={"X-Rehome-Token": token},
        data={"throttle": "12.5 MB/s"},
    )
    assert answer.status_code == 200
    (run,) = triggered
    assert run["dag_id"] == "control_reassignment"
    assert run["triggering_user_name"] == "admin"
    assert run["conf"] == {
        "plan_id": "p1",
        "action": "change_throttle",
        "kafka_config_id": "kafka_prod",
        "throttle": 12_500_000,
    }


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Rehome-Token": "forged"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_another_site_cannot_act_in_a_users_name(
    client: Client,
    site: Site,
    token: str,
    triggered: list[dict[str, Any]],
    headers: dict[str, str],
) -> None:
    site.run(site.plan("p1"), flying=2)
    sent = (
        headers
        if not headers or "X-Rehome-Token" in headers
        else {**headers, "X-Rehome-Token": token}
    )
    answer = client("admin").post("plans/p1/controls/cancel", headers=sent)
    assert answer.status_code == 403
    assert triggered == []


def test_the_token_of_one_user_is_not_anothers(
    client: Client, site: Site, token: str, triggered: list[dict[str, Any]]
) -> None:
    site.run(site.plan("p1"), flying=2)
    answer = client("op").post("plans/p1/controls/cancel", headers={"X-Rehome-Token": token})
    assert answer.status_code == 403
    assert triggered == []


def test_plans_of_dags_that_a_user_may_not_read_are_not_there(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.plan("p1")
    site.plan("hidden", dag_id="rebalance_in_window")
    from airflow.api_fastapi.app import get_auth_manager

    manager = get_auth_manager()
    allowed = manager.is_authorized_dag

    def without_windows(*, details: Any, **values: Any) -> bool:
        hidden = details is not None and details.id == "rebalance_in_window"
        return not hidden and bool(allowed(details=details, **values))

    monkeypatch.setattr(manager, "is_authorized_dag", without_windows)
    viewer = client("viewer")
    assert "plans/hidden" not in viewer.get("").text
    assert "plans/p1" in viewer.get("").text
    (run_id,) = {each.run_id for each in site.ledger.plans() if each.plan_id == "hidden"}
    run = f"rebalance_in_window/{run_id}"
    paths = ("plans/hidden", "plans/hidden/tabs/events", "files/hidden/summary.json")
    for path in (*paths, f"runs/{run}", f"reports/{run}", f"data-docs/{run}/index.html"):
        assert viewer.get(path, follow_redirects=False).status_code == 404


def test_text_from_a_cluster_or_a_person_is_shown_as_text(client: Client, site: Site) -> None:
    plan = site.plan("p1", *drain_moves(2, EVIL), actor=EVIL, cluster_id=EVIL)
    site.run(plan, flying=2)
    site.ledger.add_event(EventKind.ALERT_SENT, EVIL, actor=EVIL, plan_id="p1")
    site.ledger.set_rate("p1", 1000, EVIL)
    viewer = client("viewer")
    for path in ("", "plans/p1", *(f"plans/p1/tabs/{tab}" for tab in ("partitions", "events"))):
        text = viewer.get(path, params={"q": EVIL} if not path else {}).text
        assert "<img" not in text
        assert "&lt;img src=x onerror=alert(1)&gt;" in text
    with viewer.stream("GET", "plans/p1/live") as stream:
        news = "".join(line for line, _ in zip(stream.iter_lines(), range(60), strict=False))
    assert "<img" not in news


def test_a_name_that_a_spreadsheet_would_run_is_quoted_in_the_csv(
    client: Client, site: Site
) -> None:
    plan = site.plan("p1", *drain_moves(1, "=1+1"))
    site.run(plan)
    _, row = client("viewer").get("plans/p1/partitions.csv").text.splitlines()
    assert row.startswith("'=1+1,0,4 1,2 1,")


@pytest.mark.parametrize("name", ["moves.parquet", "..%2F..%2Fledger.db", "snapshot.json"])
def test_only_listed_files_are_served(client: Client, site: Site, name: str) -> None:
    site.plan("p1")
    assert client("admin").get(f"files/p1/{name}").status_code == 404
    assert client("admin").get("files/p1/summary.json").json()["plan_id"] == "p1"


@pytest.mark.parametrize("plan_id", ["unknown", "a%2Fb", "%2E%2E%5Cx", "%00"])
def test_an_unknown_plan_is_not_found(client: Client, site: Site, plan_id: str) -> None:
    site.plan("p1")
    for path in (f"plans/{plan_id}", f"plans/{plan_id}/live", f"files/{plan_id}/summary.json"):
        assert ask(client("admin"), "GET", path).status_code == 404


@pytest.mark.parametrize("control", Control)
def test_only_what_the_plans_state_allows_can_be_asked_for(
    client: Client,
    site: Site,
    token: str,
    triggered: list[dict[str, Any]],
    control: Control,
) -> None:
    """A run that polls nothing may be dead: its plan can be resumed."""
    site.run(site.plan("p1"), flying=2)
    possible = control in (
        Control.PAUSE,
        Control.CHANGE_THROTTLE,
        Control.CHANGE_MOVES,
        Control.CANCEL,
        Control.RESUME,
    )
    admin = client("admin")
    assert ("not possible any more" in admin.get(f"plans/p1/controls/{control}").text) != possible
    answer = admin.post(
        f"plans/p1/controls/{control}",
        headers={"X-Rehome-Token": token},
        data={"max_moves_per_broker": "2"}
        if control is Control.CHANGE_MOVES
        else {"throttle": "1 MB/s"},
    )
    assert (answer.status_code, len(triggered)) == ((200, 1) if possible else (422, 0))


def test_a_request_that_the_connections_policy_forbids_is_refused_before_a_run_is_triggered(
    client: Client,
    site: Site,
    token: str,
    triggered: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_KAFKA_PROD",
        '{"conn_type": "kafka", "extra": {"rehome.policy": {"largest_throttle": 1000}}}',
    )
    site.run(site.plan("p1"), flying=2)
    address, headers = "plans/p1/controls/change_throttle", {"X-Rehome-Token": token}
    refused = client("admin").post(address, headers=headers, data={"throttle": "1001"})
    assert refused.status_code == 422
    assert "1000" in refused.text
    assert triggered == []
    client("admin").post(address, headers=headers, data={"throttle": "1000"})
    assert len(triggered) == 1


@pytest.mark.parametrize("throttle", ["", "fast", "-1", "0", "999", "50 mb", "1e9"])
def test_an_invalid_throttle_is_refused(
    client: Client, site: Site, token: str, triggered: list[dict[str, Any]], throttle: str
) -> None:
    site.run(site.plan("p1"), flying=2)
    answer = client("admin").post(
        "plans/p1/controls/change_throttle",
        headers={"X-Rehome-Token": token},
        data={"throttle": throttle},
    )
    assert answer.status_code == 422
    assert triggered == []


def test_plans_of_a_teams_dag_are_for_that_team(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Airflow's own routes have it: another team neither sees them nor acts on them."""
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.models.dag import DagModel

    from rehome.ui import access

    monkeypatch.setattr(access, "get_auth_manager", SimpleAuthManager)
    monkeypatch.setattr(DagModel, "get_team_name", lambda dag_id: "streaming")
    own = SimpleAuthManagerUser(username="ann", role="op", teams=["streaming"])
    other = SimpleAuthManagerUser(username="bob", role="op", teams=["web"])
    for teams in (True, False):
        monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", str(teams))
        assert access.may_read(own, "reassign_partitions__ours")
        assert access.may_read(other, "reassign_partitions__ours") is not teams
        for may in (access.may_control, access.may_plan):
            assert may(own)
            assert may(other) is not teams
