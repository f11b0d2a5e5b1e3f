"""Runs that are refused in a whole Airflow: note, page and alert say why, first.

In `make test` each is shown in its own place: causes and notes in tests/plugins/run, the alert in
tests/alerts, the page in tests/ui/routes.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from local.process.waiting import wait_until
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.states import PlanState
from tests.conftest import Topics
from tests.dags.clusters import to
from tests.e2e.conftest import World
from tests.e2e.runs import DAG, TIMEOUT_S, trigger_planned
from tests.ledger.small_plans import move
from tests.session.browser import keep, opened

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]


def test_a_plan_that_is_out_of_date_and_one_that_there_is_not_are_told_on_page_note_and_alert(
    world: World, topics: Topics, browser: Browser
) -> None:
    topic = topics.create([[1, 2]])
    plan_id, api = f"stale-{topic}", world.airflow.api
    planned = move(topic, 0, (3, 2), (1, 2), 1)  # it lies elsewhere by now
    conf = {"reassignment": to(topic, {0: [1, 2]}), "throttle": 50_000}
    stale = trigger_planned(world, topics.cluster.cluster_id, plan_id, planned, **conf)
    unknown = api.trigger(DAG, {"plan_id": "p77", "kafka_config_id": "kafka_default"})
    said = {run: _ended_by(world, run) for run in (stale, unknown)}
    assert {run: cause.kind for run, cause in said.items()} == {
        stale: CauseKind.STALE,
        unknown: CauseKind.PLAN_STATE,
    }
    for run, cause in said.items():
        wait_until(lambda run=run: api.run_note(DAG, run), "the note", TIMEOUT_S)  # type: ignore[misc]
        assert api.run_note(DAG, run).startswith(cause.text)
    assert world.ledger.plan(plan_id).state is PlanState.PLANNED
    url, token = world.airflow.url, world.token("admin")
    with opened(browser, url, token=token, expected=("403", "console")) as tab:
        tab.page.goto(f"{url}/rehome/plans/{plan_id}")
        expect(tab.page.locator("#plan-head .headline")).to_contain_text(said[stale].text)
        expect(tab.page.locator("#plan-head")).not_to_contain_text("Gates and dry run found")
        keep(tab.page, "out of date")
        tab.page.goto(f"{url}/rehome/runs/{DAG}/{unknown}")
        expect(tab.page.get_by_role("heading", name="No plan was made")).to_be_visible()
        expect(tab.page.locator("main")).to_contain_text(said[unknown].text)
        keep(tab.page, "no plan was made")


def _ended_by(world: World, run: str) -> Cause:
    """As the alert has it, which is what the ledger has."""
    state = world.airflow.api.wait_for_run(DAG, run, TIMEOUT_S)
    what = f"the alert of {run}, which is {state}"
    (told,) = wait_until(lambda: world.webhook.ends_of(run), what, TIMEOUT_S)
    cause = Cause.from_json(told["ended_by"])
    assert cause == world.ledger.cause_of(DAG, run)
    return cause
