"""An Airflow behind a path prefix: its UI finds the page, and the page finds its own addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from local.airflow.standalone import USER, AirflowStandalone
from rehome.ledger.store import Ledger
from tests.dags.clusters import to
from tests.e2e.runs import DAG
from tests.ledger.small_plans import make_plan, move
from tests.session.browser import opened
from tests.session.needs import Need, needs
from tests.session.tried import Outcome

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PREFIX = "/team/airflow"

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
@needs(Need.AIRFLOW)
def airflow(tmp_path: Path) -> Iterator[AirflowStandalone]:
    """Without brokers: nothing is started."""
    home = tmp_path / "home"
    env = {
        "REHOME_LEDGER_URL": f"sqlite:///{tmp_path}/ledger.db",
        "REHOME_WAREHOUSE": (tmp_path / "warehouse").as_uri(),
    }
    with AirflowStandalone(home, env=env, path=PREFIX) as running:
        yield running


def test_the_page_is_found_in_airflows_ui_and_by_the_link_to_a_plan(
    airflow: AirflowStandalone,
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcome: Callable[[Outcome], None],
) -> None:
    from playwright.sync_api import expect

    from rehome.links import page_of_plan

    plan = make_plan("p1", move("t", 0, (1, 2), (3, 2), 1_000), cluster_id="somewhere")
    asked = {"action": "reassign", "reassignment": to("t", {0: [3, 2]})}
    where = (tmp_path / "warehouse" / "p1").as_uri()
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(plan, asked, where, "run", USER, "kafka_default", DAG)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", airflow.url)
    link = page_of_plan("p1")
    assert urlsplit(link).path == f"{PREFIX}/plugin/reassignments{PREFIX}/rehome/plans/p1"
    with opened(browser, airflow.url, expected=("401", "403", "console")) as tab:
        tab.page.goto(f"{airflow.url}/plugin/reassignments")
        tab.page.fill("input[name=username]", USER)
        tab.page.fill("input[name=password]", airflow.password)
        tab.page.click("button[type=submit]")
        frame = tab.page.frame_locator("iframe")
        frame.locator("#plan-p1 a").click()
        expect(frame.locator("#plan-head .state")).to_be_visible()
        tab.page.goto(link)
        expect(frame.locator("#plan-head .state")).to_be_visible()
    outcome(
        Outcome("path-prefix", {"apache-airflow": airflow.api.ask("GET", "/version")["version"]})
    )
