"""A connection of Rehome's own type in a real Airflow: its form, and the button that tests it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from playwright.sync_api import expect

from local.kafka.cluster import LocalCluster
from tests.e2e.conftest import World
from tests.session.browser import keep, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
OWN = "kafka_own"
WITHIN_S = 20.0


def tried(world: World, **connection: Any) -> tuple[bool, str]:
    """What Airflow's API answers to a test of a connection that nobody has saved."""
    headers = {"Authorization": f"Bearer {world.token('admin')}"}
    body = {"connection_id": "tried", "conn_type": "rehome_kafka", **connection}
    url = f"{world.airflow.url}/api/v2/connections/test"
    answer = httpx.post(url, json=body, headers=headers, timeout=WITHIN_S)
    answer.raise_for_status()
    return answer.json()["status"], answer.json()["message"]


def fill_in(page: Page, host: str, port: str) -> None:
    """The form of a new connection."""
    page.get_by_role("button", name=re.compile("Add Connection")).click()
    page.locator("input[name=connection_id]").fill(OWN)
    page.get_by_role("combobox").first.click()
    page.keyboard.type("Kafka cluster (Rehome)")
    page.get_by_role("option", name="Kafka cluster (Rehome)").click()
    page.locator("input[name=host]").fill(host)
    page.locator("input[name=port]").fill(port)


def test_a_connection_is_made_in_the_form_and_its_button_says_what_is_wrong(
    world: World, cluster: LocalCluster, browser: Browser
) -> None:
    servers = cluster.client_settings()["bootstrap.servers"]
    works, said = tried(world, host=servers)
    assert works, said
    assert cluster.cluster_id in said
    works, said = tried(world, host="127.0.0.1:1")
    assert not works
    assert "refused" in said
    url = world.airflow.url
    with opened(browser, url, token=world.token("admin"), expected=("console", "403")) as tab:
        page = tab.page
        page.goto(f"{url}/connections")
        fill_in(page, "127.0.0.1", "1")
        expect(page.get_by_text("Bootstrap servers")).to_be_visible()
        page.get_by_text("Extra Fields", exact=True).click()
        for label in ("Security protocol", "CA, as PEM text", "Same as connection"):
            expect(page.get_by_text(label).first).to_be_visible()
        keep(page, "form of a connection")
        page.get_by_role("button", name="Save").click()
        row = page.get_by_role("row").filter(has_text=OWN)
        expect(row).to_be_visible()
        row.get_by_role("button", name="Test Connection").click()
        expect(page.get_by_text("Test Connection Failed")).to_be_visible()
        expect(page.get_by_text("127.0.0.1:1 refused the connection").first).to_be_visible()
        keep(page, "connection tested")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sasl.password": "not-it"}, "password"),
        ({"ssl.ca.location": "/nowhere/ca.pem"}, "/nowhere/ca.pem"),
        ({"security.protocol": "PLAINTEXT"}, "protocol"),
    ],
)
def test_a_login_that_fails_is_named_by_the_button(
    world: World, secured_cluster: LocalCluster, wrong: dict[str, str], said: str
) -> None:
    settings = secured_cluster.client_settings()
    works, reported = tried(world, extra=json.dumps(settings))
    assert works, reported
    works, reported = tried(world, extra=json.dumps(settings | wrong))
    assert not works
    assert said in reported
