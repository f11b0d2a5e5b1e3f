"""In a browser: what other clients have in flight on a cluster, and the rates of single brokers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import ViewportSize, expect

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.flows import OwnRate, RateReason
from tests.session.browser import CONTRAST, keep, opened, overflow, serious
from tests.ui.site import MB, RATE, Site, drain_moves, snapshot_of, token_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

WIDTHS = (ViewportSize(width=400, height=900), ViewportSize(width=1280, height=900))
ORDERS = [TopicPartition("orders", number) for number in (7, 9)]
IN_FLIGHT = "section[aria-label='Reassignments in flight']"


def sound(page: Page, name: str) -> None:
    """In every width and theme."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        for width in WIDTHS:
            page.set_viewport_size(width)
            assert overflow(page) <= 0, name
            assert serious(page, only=CONTRAST if scheme == "dark" else "") == [], name
            keep(page, f"{name} {scheme} {width['width']}")


def test_what_others_have_in_flight_is_described_and_leads_to_the_dag_that_acts_on_it(
    browser: Browser, url: str, site: Site
) -> None:
    snapshot_of(site, "calm")
    snapshot_of(site, "busy", adding=frozenset({(ORDERS[0], 3), (ORDERS[1], 2)}))
    with opened(browser, url, token=token_of("viewer")) as tab:
        page = tab.page
        page.goto(f"{url}/clusters/calm")
        expect(page.locator(IN_FLIGHT)).to_have_count(0)
        page.goto(f"{url}/clusters/busy")
        listed = page.get_by_role("region", name="Reassignments in flight")
        rows = listed.locator("tbody tr")
        expect(rows).to_have_count(2)
        ends = rows.filter(has_text="orders-7")
        expect(ends).to_contain_text("another client")
        expect(ends).to_contain_text("adds broker 3")
        expect(ends).not_to_contain_text("cannot end")
        never = rows.filter(has_text="orders-9")
        expect(never).to_contain_text("It cannot end: it adds a replica on broker 2")
        link = listed.get_by_role("link", name="Follow, cancel or adopt")
        address = url.removesuffix("/rehome")
        assert link.evaluate("each => each.href") == f"{address}/dags/foreign_reassignments"
        link.focus()
        expect(link).to_be_focused()
        sound(page, "reassignments in flight")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """What the page asks Airflow for; each request is refused there."""
    from rehome.ui.dag_runs import RunProgress

    found: list[tuple[object, ...]] = []

    def trigger(*values: object) -> str:
        found.append(values)
        return "manual__1"

    monkeypatch.setattr("rehome.ui.dag_runs.trigger_control", trigger)
    outcome = "rehome.ui.dag_runs.outcome"
    monkeypatch.setattr(outcome, lambda *_: RunProgress(True, True))
    return found


def test_rates_of_single_brokers_are_shown_and_changed_in_the_dialog_of_the_throttle(
    browser: Browser, url: str, site: Site, asked: list[tuple[object, ...]]
) -> None:
    plan = site.plan("p1", *drain_moves(10), throttle_by_broker={"2": {"follower": 5 * MB}})
    site.run(plan, 3, 4)
    own = OwnRate(
        "in", 2, datetime.now(UTC), 5 * MB, 5 * MB, 5 * MB, RateReason.REQUESTED, "asked for"
    )
    site.ledger.set_rate("p1", RATE, "asked for", own=[own])
    site.poll(plan, plan.bytes_to_copy // 4)
    with opened(browser, url, token=token_of("admin"), expected=("422", "Autofocus")) as tab:
        page = tab.page
        page.goto(f"{url}/plans/p1")
        expect(page.get_by_text("of 5 MB/s")).to_have_count(1)
        page.click("text=Throttle…")
        field = page.get_by_label("Throttles of single brokers, as JSON")
        dialog = page.locator("dialog")
        expect(dialog).to_contain_text('now {"2": {"follower": 5000000}}')
        expect(dialog).to_contain_text("{} takes them away")
        sound(page, "rates by broker")
        for wrong, why in (
            ("1: 5 MB/s", "1: 5 MB/s"),
            ('{"1": {"sideways": 5000000}}', "sideways"),
            ('{"1": 10}', "less than the least rate"),
        ):
            field.fill(wrong)
            field.press("Enter")
            expect(page.locator("dialog [role=alert]")).to_contain_text(why)
            expect(field).to_have_value(wrong)
            expect(field).to_be_focused()
        assert asked == []
        field.fill('{"1": {"follower": 2000000}, "4": 1000000}')
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("It was refused")
    (values,) = asked
    by_broker = {"1": {"follower": 2 * MB}, "4": {"leader": MB, "follower": MB}}
    assert values[1:4] == (
        "change_throttle",
        "kafka_prod",
        {"throttle": None, "throttle_by_broker": by_broker},
    )
