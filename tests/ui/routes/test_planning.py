"""Planning a move from a cluster's page, in a browser and by single requests."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from local.process.waiting import wait_until
from rehome.account.clusters.cluster_evidence import WindowAhead
from tests.reporting.reported_plans import offered
from tests.session.browser import keep, opened, overflow, serious
from tests.ui.site import Site, drain_moves, served, snapshot_of, token_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastapi import FastAPI
    from playwright.sync_api import Browser

    Client = Callable[[str], TestClient]

RUN_ID = "manual__2030-01-01T00:00:00+00:00"
DRAIN = {"action": "drain", "brokers": ["4"], "throttle": "5 MB/s", "approval": "true"}


@pytest.fixture
def triggered(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Runs that would have been triggered: no scheduler is here."""
    found: list[dict[str, Any]] = []

    def trigger_dag(dag_id: str, **values: Any) -> Any:
        found.append({"dag_id": dag_id, **values})
        return type("Run", (), {"run_id": RUN_ID})

    monkeypatch.setattr("rehome.ui.dag_runs.trigger_dag", trigger_dag)
    return found


@pytest.fixture
def window(airflow_database: None) -> Iterator[WindowAhead]:
    """What Airflow knows of the DAG that opens windows: it is paused."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    opens_at = datetime(2030, 1, 1, 1, tzinfo=UTC)
    ahead = WindowAhead(opens_at, opens_at + timedelta(hours=4), paused=True)
    with create_session() as session:
        dag = session.get(DagModel, "rebalance_in_window")
        there_before = dag is not None
        if dag is None:
            session.add(DagBundleModel(name="windows"))
            session.flush()
            dag = DagModel(dag_id="rebalance_in_window", bundle_name="windows")
            session.add(dag)
        dag.is_paused = ahead.paused
        dag.next_dagrun_data_interval_start = ahead.opens_at
        dag.next_dagrun_data_interval_end = ahead.closes_at
    yield ahead
    if not there_before:
        with create_session() as session:
            session.delete(session.get(DagModel, "rebalance_in_window"))
            session.flush()
            session.delete(session.get(DagBundleModel, "windows"))


def own(client: TestClient) -> dict[str, str]:
    found = re.search(r'"X-Rehome-Token": "([^"]+)"', client.get("").text)
    assert found
    return {"X-Rehome-Token": found[1]}


def test_a_form_becomes_a_dry_run_in_the_users_name(
    client: Client, site: Site, triggered: list[dict[str, Any]]
) -> None:
    snapshot_of(site)
    user = client("user")
    assert "clusters/test/new" in user.get("clusters/test").text
    form = user.get("clusters/test/new?action=expand&broker=3").text
    assert 'value="expand" checked' in form
    assert 'value="3" checked' in form
    assert 'value="4" checked' not in form
    answer = user.post("clusters/test/new", headers=own(user), data=DRAIN)
    assert answer.status_code == 200, answer.text
    assert answer.headers["hx-redirect"].endswith(
        "/runs/reassign_partitions/manual__2030-01-01T00%3A00%3A00%2B00%3A00"
    )
    (run,) = triggered
    assert (run["dag_id"], run["triggering_user_name"]) == ("reassign_partitions", "user")
    assert run["conf"] == {
        "action": "drain",
        "brokers": [4],
        "topics": [],
        "throttle": 5_000_000,
        "approval": True,
        "dry_run": True,
        "kafka_config_id": "kafka_default",
        "cluster_id": "test",
    }


def test_nothing_is_triggered_that_airflow_has_no_pool_for(
    client: Client, site: Site, triggered: list[dict[str, Any]], without_pool: None
) -> None:
    snapshot_of(site)
    user = client("user")
    answer = user.post("clusters/test/new", headers=own(user), data=DRAIN)
    assert answer.status_code == 409
    assert "no pool rehome_cluster" in answer.text
    assert triggered == []


def test_a_form_that_cannot_be_asked_for_comes_back_as_it_was(
    client: Client, site: Site, triggered: list[dict[str, Any]]
) -> None:
    snapshot_of(site)
    admin = client("admin")
    wrong = DRAIN | {"throttle": "<b>quickly</b>", "topics": "orders-*"}
    answer = admin.post("clusters/test/new", headers=own(admin), data=wrong)
    assert answer.status_code == 422
    assert "Throttle &lt;b&gt;quickly&lt;/b&gt; is not understood" in answer.text
    assert 'value="orders-*"' in answer.text
    assert 'value="4" checked' in answer.text
    assert triggered == []


def test_a_user_who_may_not_trigger_runs_cannot_plan(
    client: Client, site: Site, triggered: list[dict[str, Any]]
) -> None:
    snapshot_of(site)
    viewer = client("viewer")
    assert "clusters/test/new" not in viewer.get("clusters/test").text
    assert viewer.get("clusters/test/new").status_code == 403
    assert viewer.post("clusters/test/new", headers=own(viewer), data=DRAIN).status_code == 403
    admin = client("admin")
    assert admin.post("clusters/test/new", data=DRAIN).status_code == 403, "without a token"
    elsewhere = own(admin) | {"Origin": "https://elsewhere.example"}
    assert admin.post("clusters/test/new", headers=elsewhere, data=DRAIN).status_code == 403
    unknown = admin.post("clusters/unknown/new", headers=own(admin), data=DRAIN)
    assert unknown.status_code == 404
    assert triggered == []


@pytest.mark.parametrize(
    ("asked", "reported"),
    [
        ("", "all: 1 topic, 40 partitions"),
        ("ord*", "1 topic, 40 partitions: orders"),
        ("orders nothing", "1 topic, 40 partitions: orders"),
        ("pay*", "0 topics, 0 partitions"),
        ("orders:7", "1 topic, 1 partition: orders"),
        ("orders:3-9, orders:39-50", "1 topic, 8 partitions: orders"),
        ("re:o[a-z]{2,9}", "1 topic, 40 partitions: orders"),
        ("re:o[a-z]{2,3}", "0 topics, 0 partitions"),
        ("orders:", "after the colon come partitions, such as orders:7 or orders:3-9"),
        ("re:(<b>", "missing ): (&lt;b&gt;"),
    ],
)
def test_topics_are_counted_while_they_are_typed(
    asked: str, reported: str, client: Client, site: Site
) -> None:
    snapshot_of(site)
    answer = client("viewer").get("clusters/test/topics", params={"topics": asked})
    assert answer.status_code == 200
    assert answer.text.strip().endswith(reported)


def test_a_move_is_planned_in_a_browser(
    browser: Browser, page: FastAPI, site: Site, triggered: list[dict[str, Any]]
) -> None:
    snapshot_of(site)
    with (
        served(page) as address,
        opened(browser, f"{address}/rehome", token=token_of("admin"), expected=("422",)) as tab,
    ):
        shown = tab.page
        shown.goto(f"{address}/rehome/clusters/test")
        shown.click("text=Plan a move…")
        expect(shown.locator("#topics-named")).to_have_text("all: 1 topic, 40 partitions")
        assert serious(shown) == []
        shown.fill("input[name=topics]", "pay*")
        expect(shown.locator("#topics-named")).to_have_text("0 topics, 0 partitions")
        shown.fill("input[name=topics]", "")
        shown.click("button.first")
        expect(shown.locator("#plan-fields [role=alert]")).to_contain_text("brokers")
        assert triggered == []
        shown.check("input[name=brokers][value='4']")
        shown.click("button.first")
        shown.wait_for_url("**/runs/reassign_partitions/**")
        (run,) = triggered
        assert (run["conf"]["action"], run["conf"]["brokers"]) == ("drain", [4])


def looked_at(site: Site, **plan: Any) -> int:
    """A plan that a dry run has made, which offers others; its bytes."""
    copied = sum(move.bytes_to_move for move in drain_moves(12))
    figures = offered(copied, 12)
    site.plan("looked", figures=figures, action="rebalance", brokers=[], dry_run=True, **plan)
    return copied


@pytest.mark.parametrize(
    ("kind", "value", "asked"),
    [
        ("budget", "quarter", {"budget_bytes": "quarter"}),
        ("without", "topic_spread", {"tolerances": {"topic_spread": None}}),
    ],
)
def test_a_choice_becomes_a_dry_run_of_its_own(
    kind: str,
    value: str,
    asked: dict[str, Any],
    client: Client,
    site: Site,
    triggered: list[dict[str, Any]],
) -> None:
    quarter = looked_at(site) // 4
    user = client("user")
    if value == "quarter":
        value, asked = str(quarter), {"budget_bytes": quarter}
    answer = user.post(
        "plans/looked/instead", headers=own(user), data={"kind": kind, "value": value}
    )
    assert answer.status_code == 200, answer.text
    assert "/runs/reassign_partitions/" in answer.headers["hx-redirect"]
    (run,) = triggered
    assert run["triggering_user_name"] == "user"
    assert run["conf"] == {
        "action": "rebalance",
        "brokers": [],
        "dry_run": True,
        "kafka_config_id": "kafka_prod",
        "cluster_id": "c1",
        **asked,
    }


def test_only_what_a_plan_offers_is_planned_and_only_for_who_may_plan(
    client: Client, site: Site, triggered: list[dict[str, Any]]
) -> None:
    quarter = {"kind": "budget", "value": str(looked_at(site) // 4)}
    viewer, admin = client("viewer"), client("admin")
    assert "Plan this" not in viewer.get("plans/looked").text
    assert "At most 1.2 GB" in viewer.get("plans/looked").text
    assert viewer.post("plans/looked/instead", headers=own(viewer), data=quarter).status_code == 403
    assert admin.post("plans/looked/instead", data=quarter).status_code == 403, "without a token"
    for wrong in ({"kind": "budget", "value": "17"}, {"kind": "without", "value": "leaders"}):
        answer = admin.post("plans/looked/instead", headers=own(admin), data=wrong)
        assert answer.status_code == 409, answer.text
    assert triggered == []


def test_a_plan_that_has_started_offers_no_other(client: Client, site: Site) -> None:
    copied = sum(move.bytes_to_move for move in drain_moves(12))
    site.run(site.plan("started", figures=offered(copied, 12)), flying=2)
    shown = client("admin").get("plans/started").text
    assert "What less would reach" not in shown
    assert "Throughput against the throttle" in shown


@pytest.mark.parametrize("width", [1280, 400])
def test_a_smaller_plan_is_chosen_in_a_browser(
    width: int,
    browser: Browser,
    page: FastAPI,
    site: Site,
    triggered: list[dict[str, Any]],
) -> None:
    copied = looked_at(site)
    with (
        served(page) as address,
        opened(browser, f"{address}/rehome", token=token_of("admin"), width=width) as tab,
    ):
        shown = tab.page
        shown.goto(f"{address}/rehome/plans/looked")
        expect(shown.locator(".curve circle")).to_have_count(6)
        expect(shown.locator(".curve circle.shown")).to_have_count(1)
        expect(shown.locator(".choices-table tr.current")).to_contain_text("This plan")
        assert serious(shown) == []
        assert overflow(shown) <= 0
        keep(shown, f"choices-{width}")
        shown.get_by_role("button", name="Plan this: At most 2.4 GB").click()
        shown.wait_for_url("**/runs/reassign_partitions/**")
    (run,) = triggered
    assert run["conf"]["budget_bytes"] == copied // 2


def test_a_plan_is_handed_over_to_a_window_that_the_dialog_names(
    client: Client, site: Site, triggered: list[dict[str, Any]], window: WindowAhead
) -> None:
    looked_at(site, through="kafka_default")
    user = client("op")
    asked = user.get("plans/looked/controls/next_window").text
    assert "No window takes the plan up, because rebalance_in_window is paused in Airflow." in asked
    answer = user.post("plans/looked/controls/next_window", headers=own(user))
    assert answer.status_code == 200, answer.text
    (run,) = triggered
    assert (run["dag_id"], run["conf"]["action"]) == ("control_reassignment", "next_window")
    site.ledger.hand_over("looked", "op")
    wait_until(lambda: "for the next window" in user.get("plans/looked").text, "the news")
    shown = user.get("plans/looked").text
    assert "This plan is handed over to the windows of its cluster." in shown
    assert "No window takes the plan up, because rebalance_in_window is paused in Airflow." in shown
    assert "controls/next_window" not in shown
    assert "next window" in user.get("").text


def test_no_window_is_promised_through_a_connection_that_no_dag_is_known_to_use(
    client: Client, site: Site, window: WindowAhead
) -> None:
    looked_at(site, through="kafka_elsewhere")
    asked = client("op").get("plans/looked/controls/next_window").text
    assert (
        "No window takes the plan up, because no rebalance_in_window runs for this cluster."
        in asked
    )
