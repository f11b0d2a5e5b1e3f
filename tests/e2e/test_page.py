"""The page inside a real Airflow: people follow a reassignment there, and act on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from include.cluster.gateway import ClusterGateway
from include.domain.configs import ConfigResource
from include.domain.run.states import PlanState
from include.execution.throttle.keys import FOLLOWER_RATE
from local.process.waiting import wait_until
from tests.browser import opened
from tests.conftest import Topics
from tests.dags.clusters import Throttles, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import DAG, TIMEOUT_S, plan_of, wait_for_state

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
expect.set_options(timeout=90_000)


def follower_rate(gateway: ClusterGateway, broker: int) -> int | None:
    """The throttle that stands on a broker."""
    resource = ConfigResource.broker(broker)
    configs = gateway.describe_configs([resource], [FOLLOWER_RATE])[resource]
    assert isinstance(configs, dict), configs
    found = configs.get(FOLLOWER_RATE)
    return int(found.value) if found is not None and found.value else None


def copied(page: FrameLocator) -> int:
    found = re.match(r"(\d+) %", page.locator("#plan-head .large").inner_text())
    return int(found[1]) if found else 0


def ask(page: FrameLocator, what: str, throttle: str = "") -> None:
    """Press a button, read what would happen, go on, and wait until it was passed on."""
    page.get_by_role("button", name=f"{what}…").click()
    dialog = page.locator("dialog")
    if throttle:
        dialog.locator("input[name=throttle]").fill(throttle)
    dialog.locator("button:not([data-close])").click()
    expect(dialog).to_contain_text("It was passed on")
    dialog.get_by_role("button", name="Close").click()


@contextmanager
def logged_in(browser: Browser, world: World) -> Iterator[Page]:
    """A tab of the administrator's, who was asked for name and password."""
    with opened(browser, world.airflow.url, expected=("401", "console")) as tab:
        tab.page.goto(f"{world.airflow.url}/plugin/reassignments")
        tab.page.fill("input[name=username]", "admin")
        tab.page.fill("input[name=password]", world.airflow.password)
        tab.page.click("button[type=submit]")
        expect(tab.page.get_by_text("Reassignments").first).to_be_visible()
        yield tab.page


def plan_page(page: Page, world: World, plan_id: str) -> FrameLocator:
    """A plan's page, by the list that Airflow's navigation leads to."""
    page.goto(f"{world.airflow.url}/plugin/reassignments")
    frame = page.frame_locator("iframe")
    frame.locator(f"#plan-{plan_id} a").click()
    expect(frame.locator("h1")).to_have_text("Reassign as given")
    return frame


def test_a_reassignment_is_followed_slowed_paused_and_resumed_on_the_page_and_marked_failed(
    world: World,
    topics: Topics,
    gateway: ClusterGateway,
    browser: Browser,
    foreign_throttle: Callable[[str], Throttles],
) -> None:
    """A run that is marked failed is stopped, cleaned up and told. A cancel on the page takes the
    way of the other requests: tests/ui has the button, tests/dags what it does.
    """
    api = world.airflow.api
    topic = topics.create([[1, 2]] * 3)
    topics.fill(topic, 2_500, size_bytes=10_000)
    before = foreign_throttle(topic)
    moves = to(topic, {number: [3, 2] for number in range(3)})
    run = api.trigger(DAG, {"action": "reassign", "reassignment": moves, "throttle": 150_000})
    record = wait_until(lambda: plan_of(world, run), "a plan", TIMEOUT_S, 1.0)
    assert record is not None

    with logged_in(browser, world) as tab:
        tab.goto(f"{world.airflow.url}/dags/{DAG}/runs/{run}/plugin/reassignment")
        page = tab.frame_locator("iframe")
        page.get_by_role("link", name="Gates and dry run").click()
        expect(page.locator("#tab")).to_contain_text("On the snapshot: passed")
        page = plan_page(tab, world, record.plan_id)
        expect(page.locator("#plan-head .state")).to_contain_text("Running")
        expect(page.locator("#plan-head .large")).to_be_visible()
        first = copied(page)
        wait_until(lambda: copied(page) > first, "the bar to move", TIMEOUT_S)
        assert follower_rate(gateway, 3)
        ask(page, "Throttle", "300 kB/s")
        wait_until(
            lambda: (follower_rate(gateway, 3) or 0) >= 250_000, "the brokers to follow", TIMEOUT_S
        )
        expect(page.locator("#plan-head")).to_contain_text("throttle 3")
        ask(page, "Pause")
        expect(page.locator("#plan-head .state")).to_contain_text("pause asked")
        ask(page, "Resume")
        expect(page.locator("#plan-head .state")).not_to_contain_text("pause asked")
        expect(page.locator("#plan-head .state")).to_contain_text("Running")

        wait_for_state(world, run, "progress", {"deferred"})
        assert gateway.list_reassignments()
        assert throttles_of(gateway, [topic]) != before
        api.set_run_state(DAG, run, "failed")
        wait_for_state(world, run, "verdict", {"failed", "success", "skipped"})
        assert api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
        expect(page.locator("#plan-head .state")).to_contain_text("Failed")
    wait_until(lambda: throttles_of(gateway, [topic]) == before, "the throttles as they were")
    assert not gateway.list_reassignments()
    partitions = gateway.describe_topics([topic])[topic].partitions.values()
    assert {state.replicas for state in partitions} == {(1, 2)}
    assert world.ledger.plan(record.plan_id).state is PlanState.FAILED
    (told,) = wait_until(lambda: world.webhook.about(run), "the notifier", TIMEOUT_S)
    assert (told["ended"], told["plan_id"], told["state"]) == ("failed", record.plan_id, "failed")
    assert told["throttles_owed"] == []
    said = [(event.actor, event.detail) for event in world.ledger.events(record.plan_id)]
    assert ("admin", "throttle of 300000 B/s requested") in said
    assert ("admin", "pause requested") in said


@pytest.mark.long
def test_a_reassignment_is_cancelled_on_the_page(
    world: World, topics: Topics, gateway: ClusterGateway, browser: Browser
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 2_500, size_bytes=10_000)
    before = throttles_of(gateway, [topic])
    moves = to(topic, {0: [3, 2]})
    conf = {"action": "reassign", "reassignment": moves, "throttle": 150_000}
    run = world.airflow.api.trigger(DAG, conf)
    wait_for_state(world, run, "progress", {"deferred"})
    record = plan_of(world, run)
    assert record is not None
    with logged_in(browser, world) as tab:
        page = plan_page(tab, world, record.plan_id)
        ask(page, "Cancel")
        expect(page.locator("#plan-head .state")).to_contain_text("Cancelled")
    assert world.ledger.plan(record.plan_id).state is PlanState.CANCELLED
    wait_until(lambda: throttles_of(gateway, [topic]) == before, "the throttles as they were")
    said = [(event.actor, event.detail) for event in world.ledger.events(record.plan_id)]
    assert ("admin", "cancel requested") in said
