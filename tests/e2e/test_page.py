"""The page inside a real Airflow: people follow a reassignment there, and act on it."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import expect

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.configs import ConfigResource
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.keys import FOLLOWER_RATE
from tests.conftest import Topics
from tests.dags.clusters import Throttles, no_throttles, throttles_become, throttles_of, to
from tests.e2e.conftest import AFTER_PLANS, World
from tests.e2e.listening import SPARK
from tests.e2e.runs import (
    DAG,
    TIMEOUT_S,
    plan_of,
    trigger_planned,
    wait_for_state,
    wait_until_answers_count,
)
from tests.ledger.small_plans import move
from tests.session.browser import keep, opened
from tests.session.open_to_others import open_to_others

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def follower_rate(gateway: ClusterGateway, broker: int) -> int | None:
    """The throttle of a broker."""
    resource = ConfigResource.broker(broker)
    configs = gateway.describe_configs([resource], [FOLLOWER_RATE])[resource]
    assert isinstance(configs, dict), configs
    found = configs.get(FOLLOWER_RATE)
    return int(found.value) if found is not None and found.value else None


def replicas_of(gateway: ClusterGateway, topic: str) -> set[tuple[int, ...]]:
    partitions = gateway.describe_topics([topic])[topic].partitions.values()
    return {state.replicas for state in partitions}


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
    expect(dialog).to_contain_text("The request was passed on")
    dialog.get_by_role("button", name="Close").click()


@contextmanager
def logged_in(browser: Browser, world: World) -> Iterator[Page]:
    """A tab of an admin's, who was asked for name and password."""
    with opened(browser, world.airflow.url, expected=("401", "403", "console")) as tab:
        tab.page.goto(f"{world.airflow.url}/plugin/reassignments")
        tab.page.fill("input[name=username]", "admin")
        tab.page.fill("input[name=password]", world.password("admin"))
        tab.page.click("button[type=submit]")
        expect(tab.page.get_by_text("Reassignments").first).to_be_visible()
        yield tab.page


def go_to_plan(frame: FrameLocator, plan_id: str) -> None:
    """To a plan's page, by the list."""
    trail = frame.get_by_role("navigation", name="Where you are")
    trail.get_by_role("link", name="Reassignments").click()
    frame.locator(f"#plan-{plan_id} a").click()
    expect(frame.locator(f"a[href*='{plan_id}/report.html']")).to_be_visible()


@contextmanager
def plan_alone(browser: Browser, world: World, plan_id: str, user: str) -> Iterator[Page]:
    """A plan's page of a user who has logged in, without Airflow's own page around it: that takes
    seconds of processor time whenever it is loaded.
    """
    url = world.airflow.url
    with opened(browser, url, token=world.token(user), expected=("403", "console")) as tab:
        tab.page.goto(f"{url}/rehome/plans/{plan_id}")
        yield tab.page


def refused_to_viewers(browser: Browser, world: World, plan_id: str) -> None:
    """A viewer sees the plan, and can neither ask for anything nor have it asked."""
    with plan_alone(browser, world, plan_id, "viewer") as page:
        expect(page.locator("#plan-head .state")).to_be_visible()
        expect(page.get_by_role("button")).to_have_text(["Filter"])
        post = """async path => {
            const headers = JSON.parse(document.body.getAttribute("hx-headers"));
            return (await fetch(path, {method: "POST", headers})).status;
        }"""
        for what in ("pause", "cancel"):
            assert page.evaluate(post, f"/rehome/plans/{plan_id}/controls/{what}") == 403


def plan_a_drain(
    page: Page, world: World, cluster_id: str, topics: tuple[str, ...], throttle: str
) -> tuple[FrameLocator, str]:
    """Fill in the form for a drain of broker 1; the page and the id of the plan that its dry run
    has made.
    """
    page.goto(f"{world.airflow.url}/plugin/reassignments")
    frame = page.frame_locator("iframe")
    frame.locator("header").get_by_role("link", name="Clusters").click()
    frame.get_by_role("link", name=cluster_id).click()
    expect(frame.get_by_role("heading", name=cluster_id)).to_be_visible()
    keep(page, "cluster in Airflow")
    frame.get_by_role("link", name="Plan a move…").click()
    frame.locator("input[name=brokers][value='1']").check()
    frame.locator("input[name=topics]").fill(" ".join(topics))
    frame.locator("input[name=throttle]").fill(throttle)
    expect(frame.locator("#topics-named")).to_contain_text("2 topics, 4 partitions")
    keep(page, "plan a move in Airflow")
    frame.get_by_role("button", name="See the plan").click()
    expect(frame.get_by_role("heading", name="Planning")).to_be_visible()
    expect(frame.get_by_role("heading", name="Drain broker 1")).to_be_visible(
        timeout=TIMEOUT_S * 1e3
    )
    expect(frame.locator("#plan-head .state")).to_contain_text("Planned")
    expect(frame.locator("#plan-head")).to_contain_text(
        "Gates and dry run found", timeout=TIMEOUT_S * 1e3
    )
    (plan,) = (plan for plan in world.ledger.plans() if topics[0] in str(plan.request))
    return frame, plan.plan_id


def approve(page: Page, frame: FrameLocator, world: World, plan_id: str) -> str:
    """In Airflow's own form, which the plan's page leads to; the id of the run that asks."""
    frame.get_by_role("link", name="Approve it, send it back or reject it").click(
        timeout=TIMEOUT_S * 1e3
    )
    expect(page.get_by_text("The approval holds for exactly this").first).to_be_visible()
    keep(page, "approval in Airflow")
    run = world.ledger.plan(plan_id).run_id
    wait_until_answers_count(world, run)
    with page.expect_response(lambda answer: answer.request.method == "PATCH") as answered:
        page.get_by_role("button", name=re.compile("^Approve [0-9a-f]+$")).click()
    assert answered.value.ok, answered.value.text()
    return run


def roll_back(tab: Page, page: FrameLocator, world: World, plan_id: str) -> None:
    """Take back what the cancelled plan has moved: the same job, gates and tasks once more."""
    ask(page, "Roll back")
    expect(page.locator("#plan-head .state")).to_contain_text(
        "Rolled back", timeout=TIMEOUT_S * 1e3
    )
    back = next(plan for plan in world.ledger.plans() if plan.action == "rollback")
    assert world.airflow.api.wait_for_run(DAG, back.run_id, TIMEOUT_S) == "success"
    go_to_plan(page, back.plan_id)
    expect(page.locator("#plan-head .state")).to_contain_text("Done")
    keep(tab, "done in Airflow")
    assert (world.ledger.plan(back.plan_id).state, back.actor) == (PlanState.DONE, "admin")


# In `make test` tests/dags/control takes such a plan back, and tests/ui presses the button.
@pytest.mark.parametrize(
    "rolled_back",
    [
        pytest.param(False, id="as_it_is"),
        pytest.param(True, id="rolled_back", marks=pytest.mark.long),
    ],
)
def test_a_drain_is_planned_approved_followed_slowed_paused_and_cancelled_on_the_page(
    rolled_back: bool,
    world: World,
    topics: Topics,
    gateway: ClusterGateway,
    browser: Browser,
    foreign_throttle: Callable[[str], Throttles],
) -> None:
    """The run of the cancelled plan cleans up, fails, and is reported."""
    api = world.airflow.api
    topic, small = topics.create([[1, 2]] * 3), topics.create([[1, 2]])
    # Twelve minutes at its throttle: a busy machine needs four to look and to ask for all of this.
    topics.fill(topic, 2_500, size_bytes=10_000)
    topics.fill(small, 5)
    before = foreign_throttle(topic)
    snapshot = take_snapshot(gateway, datetime.now(UTC))
    world.warehouse.write_snapshot(snapshot)

    with logged_in(browser, world) as tab:
        page, plan_id = plan_a_drain(tab, world, snapshot.cluster_id, (topic, small), "100 kB/s")
        planned = world.ledger.plan(plan_id)
        # The page has the dry run's result before its task ends, which brings the note.
        assert api.wait_for_run(DAG, planned.run_id, TIMEOUT_S) == "success"
        assert api.run_note(DAG, planned.run_id).startswith("Drain broker 1: 4 replicas, ")
        assert "Gate on the snapshot: passed" in api.task_log(DAG, planned.run_id, "plan")
        go_to_plan(page, plan_id)
        page.get_by_role("link", name="Gates and dry run").click()
        expect(page.locator("#tab")).to_contain_text("On the snapshot: passed")
        keep(tab, "planned in Airflow")
        ask(page, "Run")
        run = approve(tab, page, world, plan_id)
        assert run != planned.run_id
        tab.goto(f"{world.airflow.url}/dags/{DAG}/runs/{run}/plugin/reassignment")
        page = tab.frame_locator("iframe")
        expect(page.locator("#plan-head .state")).to_contain_text(
            "Running", timeout=TIMEOUT_S * 1e3
        )
        record = world.ledger.plan(plan_id)
        assert (record.plan_hash, record.approved_by) == (planned.plan_hash, "admin")
        expect(page.locator("#plan-head .large")).to_be_visible()
        first = copied(page)
        wait_until(lambda: copied(page) > first, "the bar to move", TIMEOUT_S)
        takes = next(iter(world.ledger.planned_moves(plan_id)[0].adding))
        assert follower_rate(gateway, takes)
        ask(page, "Throttle", "50 kB/s")
        wait_until(
            lambda: (follower_rate(gateway, takes) or 10**9) <= 66_000,
            "the brokers to follow",
            TIMEOUT_S,
        )
        expect(page.locator("#plan-head")).to_contain_text(
            "throttle 50 kB/s per broker (set on brokers: 1"
        )
        keep(tab, "running in Airflow")
        refused_to_viewers(browser, world, plan_id)
        ask(page, "Pause")
        expect(page.locator("#plan-head .state")).to_contain_text("pause asked")
        ask(page, "Resume")
        expect(page.locator("#plan-head .state")).not_to_contain_text("pause asked")
        expect(page.locator("#plan-head .state")).to_contain_text("Running")

        wait_for_state(world, run, "progress", {"deferred"})
        assert gateway.list_reassignments()
        assert throttles_of(gateway, [topic]) != before
        ask(page, "Cancel")
        expect(page.locator("#plan-head .state")).to_contain_text("Cancelled")
        assert api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
        throttles_become(gateway, [topic], before)
        assert not gateway.list_reassignments()
        assert replicas_of(gateway, topic) == {(1, 2)}
        (moved,) = replicas_of(gateway, small)
        assert 1 not in moved
        assert world.ledger.plan(plan_id).state is PlanState.CANCELLED
        if rolled_back:
            roll_back(tab, page, world, plan_id)
            wait_until(lambda: replicas_of(gateway, small) == {(1, 2)}, "it to go back", TIMEOUT_S)
    (reported,) = wait_until(lambda: world.webhook.ends_of(run), "the notifier", TIMEOUT_S)
    assert (reported["plan_id"], reported["state"]) == (record.plan_id, "cancelled")
    assert (reported["ended"], reported["throttles_owed"]) == ("failed", [])
    said = [(event.actor, event.detail) for event in world.ledger.events(record.plan_id)]
    assert ("admin", "throttle of 50000 B/s requested") in said
    assert ("admin", "pause requested") in said
    assert ("admin", "cancel requested") in said


def test_a_run_that_is_marked_failed_is_stopped_cleaned_up_and_reported(
    world: World, topics: Topics, gateway: ClusterGateway, browser: Browser
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 2_500, size_bytes=10_000)
    before = no_throttles(gateway, [topic])
    conf = {"reassignment": to(topic, {0: [3, 2]}), "throttle": 50_000}
    planned = move(topic, 0, (1, 2), (3, 2), 25_000_000)
    world.airflow.api.set_paused(AFTER_PLANS, paused=False)
    run = trigger_planned(world, topics.cluster.cluster_id, f"marked-{topic}", planned, **conf)
    wait_for_state(world, run, "progress", {"deferred"})
    record = plan_of(world, run)
    assert record is not None
    assert record.plan_id in told_to_another_dag(world)
    refused_before_there_is_a_run(world)
    world.airflow.api.set_paused(AFTER_PLANS, paused=True)
    measured = f"airflow.rehome.plan.fresh_until.{record.cluster_id}.{record.plan_id}"
    strain = f"airflow.rehome.plan.strain_outside_isr.{record.cluster_id}"
    wait_until(
        lambda: len({measured, strain} & world.statsd.values().keys()) == 2,
        "the triggerer's metrics: workers do not watch for strain",
        TIMEOUT_S,
    )
    with plan_alone(browser, world, record.plan_id, "admin") as page:
        expect(page.locator("#plan-head .state")).to_contain_text("Running")
        world.airflow.api.set_run_state(DAG, run, "failed")
        wait_for_state(world, run, "verdict", {"failed", "success", "skipped"})
        expect(page.locator("#plan-head .state")).to_contain_text("Failed")
    assert world.ledger.plan(record.plan_id).state is PlanState.FAILED
    throttles_become(gateway, [topic], before)
    assert not gateway.list_reassignments()
    (reported,) = wait_until(lambda: world.webhook.ends_of(run), "the notifier", TIMEOUT_S)
    assert (reported["ended"], reported["state"], reported["throttles_owed"]) == (
        "failed",
        "failed",
        [],
    )
    assert reported["ended_by"]["kind"] == CauseKind.SILENT
    note = world.airflow.api.run_note(DAG, run)
    assert note.startswith("The task progress has failed, and has left no reason")
    wait_until(
        lambda: world.statsd.values()[measured][-1] == 0, "nothing of it to be shown any more"
    )
    assert max(world.statsd.values()[f"airflow.rehome.bytes_moved.{record.cluster_id}"]) > 0


def test_all_listens_on_this_machine_only_and_what_runs_leave_is_closed_to_its_other_users(
    world: World,
) -> None:
    if SPARK not in world.listening.seen:  # this test runs without the others of the file
        run_id = world.airflow.api.trigger(DAG, {"action": "rebalance", "dry_run": True})
        assert world.airflow.api.wait_for_run(DAG, run_id, TIMEOUT_S) == "success"
    assert world.listening.elsewhere() == {}
    assert set(world.listening.seen) >= {SPARK, "java"}
    home = world.airflow.home
    assert list(open_to_others(home, Path(world.warehouse.path))) == []
    for name in ("passwords.json", "fernet.key", "tokens.key", "sessions.key"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600


def refused_before_there_is_a_run(world: World) -> None:
    """By the API server, with every problem: of several parameters together, and of one."""
    runs = len(world.airflow.api.runs(DAG))
    with pytest.raises(httpx.HTTPStatusError) as refused:
        world.airflow.api.trigger(DAG, {"action": "drain", "throttle": "abc"})
    assert refused.value.response.status_code == 400
    assert "Action drain needs brokers." in str(refused.value)
    assert "throttle='abc' is neither" in str(refused.value)
    assert len(world.airflow.api.runs(DAG)) == runs


def told_to_another_dag(world: World) -> str:
    """What the first run of a DAG that is scheduled on plans has printed."""
    (run,) = wait_until(lambda: world.airflow.api.runs(AFTER_PLANS), "its run", TIMEOUT_S)
    assert world.airflow.api.wait_for_run(AFTER_PLANS, run["dag_run_id"], TIMEOUT_S) == "success"
    return world.airflow.api.task_log(AFTER_PLANS, run["dag_run_id"], "reported")
