"""The page in a browser: every view in every width and theme, live, by keyboard and by ear."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import ViewportSize, expect

from rehome.domain.run.findings import Finding, Severity
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import MoveState, PlanState
from tests.reporting.reported_plans import dry_run_json
from tests.session.browser import CONTRAST, keep, opened, overflow, serious
from tests.ui.site import (
    RATE,
    Site,
    drain_moves,
    paused_heal,
    snapshot_of,
    staying_open,
    token_of,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

LONG = "of-all-customers-everywhere-" * 6
NARROW, WIDE = ViewportSize(width=400, height=900), ViewportSize(width=1280, height=900)


@pytest.fixture
def every_state(site: Site) -> Site:
    """Plans in every state, with long names, alerts and a throttle that was cut."""
    snapshot_of(site)
    done = site.plan("20261121T010000Z-drain-done", cluster_id="c0")
    site.run(done, 12)
    site.end(done)
    failed = site.plan("20261121T020000Z-drain-failed", cluster_id="c0")
    site.run(failed, 3, 2)
    refused = "the controller refused it: INVALID_REPLICA_ASSIGNMENT (39)"
    site.ledger.settle(failed.plan_id, failed.moves[3].partition, MoveState.FAILED, refused)
    site.end(failed, PlanState.FAILED, "nothing moved for 600 s")
    site.plan("20261121T030000Z-drain-planned", cluster_id="c0", actor="x" * 80, approval=True)
    site.plan("20261121T035000Z-expand", cluster_id="test")
    snapshot_of(site, "uneven")
    staying_open(site, "20261121T033000Z-rebalance-nothing", "uneven")
    paused_heal(site, "20261121T040000Z-paused")
    window_end = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    moves = [*drain_moves(60, LONG), *drain_moves(60, "payments")]
    running = site.plan("running", *moves, window_end=window_end)
    site.run(running, 15, 6)
    site.clock.pass_s(3000)
    for number in range(20):
        site.clock.pass_s(30)
        site.poll(running, int(running.bytes_to_copy * (0.2 + number * 0.01)), 600 - number)
        if number == 8:
            half = RATE // 2
            site.ledger.set_rate(
                "running",
                half,
                "2 followers outside the plan left their ISR",
                reason=RateReason.STRAIN,
                target_bytes_per_s=half,
                limit_bytes_per_s=RATE,
            )
    return site


VIEWS = {
    "list": "/",
    "search": "/?q=nothing-of-this-name",
    "running": "/plans/running",
    "events": "/plans/running?tab=events",
    "checks": "/plans/running?tab=checks",
    "configuration": "/plans/running?tab=configuration",
    "files": "/plans/running?tab=files",
    "failed": "/plans/20261121T020000Z-drain-failed",
    "planned": "/plans/20261121T030000Z-drain-planned",
    "clusters": "/clusters",
    "cluster": "/clusters/test",
    "plan a move": "/clusters/test/new?broker=4",
    "cluster before and after": "/clusters/test?plan=20261121T035000Z-expand",
    "findings that stay open": "/clusters/uneven",
    "nothing to move": "/plans/20261121T033000Z-rebalance-nothing",
    "paused heal": "/plans/20261121T040000Z-paused",
    "no plan": "/runs/reassign_partitions/unknown",
}


def test_every_view_is_sound_in_every_width_and_theme(
    browser: Browser, url: str, every_state: Site
) -> None:
    """The themes differ in nothing but colours, and colours are the same in every width."""
    assert every_state.ledger is not None
    with opened(browser, url, token=token_of("admin")) as tab:
        page, theme = tab.page, tab.page.locator("html")
        for name, path in VIEWS.items():
            page.emulate_media(color_scheme="light")
            page.set_viewport_size(NARROW)
            page.goto(url + path)
            expect(page.locator("time:not([data-local])")).to_have_count(0)
            expect(theme).to_have_attribute("data-theme", "light")
            assert overflow(page) <= 0, name
            assert serious(page) == [], name
            keep(page, f"{name} narrow")
            page.set_viewport_size(WIDE)
            assert overflow(page) <= 0, name
            assert serious(page, without=CONTRAST) == [], name
            keep(page, name)
            page.emulate_media(color_scheme="dark")
            expect(theme).to_have_attribute("data-theme", "dark")
            assert serious(page, only=CONTRAST) == [], name
            keep(page, f"{name} dark")


def test_an_empty_list_says_how_to_begin(browser: Browser, url: str) -> None:
    with opened(browser, url, token=token_of("viewer")) as tab:
        tab.page.goto(f"{url}/")
        assert "No plans yet" in tab.page.inner_text("#list")
        assert serious(tab.page) == []


def percent(page: Page) -> int:
    found = re.match(r"(\d+) %", page.inner_text("#plan-head .large"))
    assert found
    return int(found[1])


def test_a_plan_moves_without_a_reload(browser: Browser, url: str, site: Site) -> None:
    plan = site.plan("p1", *drain_moves(10))
    site.run(plan, flying=4)
    site.clock.pass_s(3600)  # now
    site.poll(plan, plan.bytes_to_copy // 10)
    with opened(browser, url, token=token_of("admin")) as tab:
        page = tab.page
        page.goto(f"{url}/plans/p1")
        page.evaluate("window.sameDocument = true")
        assert percent(page) == 10
        page.fill("input[name=q]", "ord")  # a text that is being typed is kept
        site.clock.pass_s(1)
        site.poll(plan, plan.bytes_to_copy // 2 + 1)
        expect(page.locator("#plan-head .large")).to_have_text("50 %")
        assert page.input_value("input[name=q]") == "ord"
        site.ledger.settle("p1", plan.moves[0].partition, MoveState.DONE)
        expect(page.locator("#tab .move-state.done")).to_have_count(1)
        site.ledger.request_pause("p1", "ann")
        expect(page.locator("#plan-head .state")).to_contain_text("pause asked for")
        expect(page.locator("#said")).to_contain_text("pause asked for")
        site.end(plan)
        expect(page.locator("#plan-head .state")).to_contain_text("Done")
        assert page.evaluate("window.sameDocument") is True


def test_what_a_paused_heal_waits_for_is_shown_and_follows_what_changes(
    browser: Browser, url: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(hour=1, minute=0)
    monkeypatch.setenv("REHOME_WATCH_RULES", json.dumps({"policy": "heal"}))
    monkeypatch.setenv("REHOME_WINDOW_CRON", f"0 1 {tomorrow.day} {tomorrow.month} *")
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "b1:9092"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    paused_dags: set[str] = set()
    monkeypatch.setattr("rehome.ui.dag_runs.paused_dags", paused_dags.intersection)
    snapshot_of(site)
    site.ledger.record_connection("kafka_default", "test")
    paused_heal(site, "p1")
    opens = f"{tomorrow:%Y-%m-%d %H:%M} UTC"
    with opened(browser, url, token=token_of("admin")) as tab:
        page = tab.page
        page.goto(f"{url}/clusters/test")
        line = page.get_by_role("region", name="Findings").get_by_role("row", name="Empty broker")
        expect(line).to_contain_text("is under way, or its plan is paused")
        expect(line).not_to_contain_text("ended")
        expect(page.locator("header.head")).to_contain_text("rebalance_in_window takes it up")
        page.goto(f"{url}/plans/p1")
        head = page.locator("#plan-head")
        expect(head.locator(".headline")).to_have_text(
            "The end of the window has paused this plan. It goes on by itself when the next window "
            f"opens, at {opens}: rebalance_in_window takes it up. 3 of 12 moves are done."
        )
        expect(head).to_contain_text("Nothing. To go on before")
        assert serious(page) == []
        keep(page, "a paused heal")
        first = dry_run_json()
        full = Finding(Severity.ERROR, "settings", "plan", "Broker 2 is full", "Plan again")
        site.tried_again("p1", {**first, "ok": False, "findings": [asdict(full)]})
        expect(head.locator(".headline")).to_contain_text("refused by its dry run: plan: Broker 2")
        expect(head).to_contain_text(
            "cancels the plan if the plan still breaks a limit. Or plan again."
        )
        keep(page, "a paused heal that was refused")
        site.tried_again("p1", first)
        paused_dags.add("rebalance_in_window")
        expect(head.locator(".headline")).to_contain_text("No window resumes it, because rebal")
        expect(head).to_contain_text("Unpause rebalance_in_window.")
        site.ledger.request_pause("p1", "ann")
        expect(head.locator(".headline")).to_contain_text("A person has paused this plan")
        page.goto(f"{url}/clusters/test")
        expect(page.locator("header.head")).to_contain_text("A person has paused this plan")


def test_the_age_of_what_is_shown_is_reported_and_warns(
    browser: Browser, url: str, site: Site
) -> None:
    plan = site.plan("p1")
    site.run(plan, flying=4)
    site.clock.pass_s(3600)
    site.poll(plan, 1000)
    with opened(browser, url, token=token_of("admin")) as tab:
        tab.page.clock.install()
        tab.page.route("**/live", lambda _: None)  # no news, which would have the server's time
        tab.page.goto(f"{url}/plans/p1")
        age = tab.page.locator(".age")
        age.wait_for()
        assert re.fullmatch(r"seen \d+ s ago", age.inner_text())
        assert "old" not in (age.get_attribute("class") or "")
        tab.page.clock.fast_forward(20_000)
        expect(age).to_have_class(re.compile(r"\bold\b"))
        tab.page.clock.fast_forward(40_000)
        expect(age).to_have_class(re.compile(r"\bdead\b"))


def test_rows_can_be_reached_by_keyboard_and_the_address_holds_the_view(
    browser: Browser, url: str, every_state: Site
) -> None:
    assert every_state.ledger is not None
    with opened(browser, url, token=token_of("viewer")) as tab:
        page = tab.page
        page.goto(f"{url}/")
        page.keyboard.press("/")
        page.keyboard.type("failed")
        expect(page.locator("tr.row")).to_have_count(1)
        assert "q=failed" in page.url
        page.locator("input#q").blur()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/plans/20261121T020000Z-drain-failed")
        page.goto(f"{url}/plans/running")
        page.click("thead a:has-text('Behind')")
        page.wait_for_url("**sort=behind**")
        assert page.get_attribute("th[aria-sort]", "aria-sort") == "descending"
        page.click("a[rel=next]")
        page.wait_for_url("**page=2**")
        page.reload()
        assert "page 2 of 2" in page.inner_text(".pager")


def test_a_request_is_confirmed_in_numbers_and_its_outcome_is_shown(
    browser: Browser, url: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rehome.ui.dag_runs import RunProgress

    asked: list[tuple[object, ...]] = []
    outcomes = iter([RunProgress(False, False), RunProgress(True, True)])

    def trigger(*values: object) -> str:
        asked.append(values)
        return "manual__1"

    monkeypatch.setattr("rehome.ui.dag_runs.trigger_control", trigger)
    monkeypatch.setattr("rehome.ui.dag_runs.outcome", lambda *_: next(outcomes))
    plan = site.plan("p1", *drain_moves(10))
    site.run(plan, 3, 4)
    with opened(browser, url, token=token_of("admin"), expected=("422",)) as tab:
        page = tab.page
        page.goto(f"{url}/plans/p1")
        page.click("text=Cancel…")
        page.wait_for_selector("dialog[open]")
        reported = page.inner_text("dialog")
        assert "4 moves in flight are taken back" in reported
        assert "3 moves that wait never start" in reported
        assert "3 finished moves stay where they are" in reported
        assert serious(page) == []
        page.keyboard.press("Escape")
        assert asked == []
        page.click("text=Throttle…")
        page.fill("dialog input[name=throttle]", "fast")
        page.click("dialog button.first")
        page.wait_for_selector("dialog [role=alert]")
        page.fill("dialog input[name=throttle]", "20 MB/s")
        page.click("dialog button.first")
        expect(page.locator("dialog")).to_contain_text("It was refused")
        (values,) = asked
        assert values[1:4] == ("change_throttle", "kafka_prod", {"throttle": 20_000_000})
