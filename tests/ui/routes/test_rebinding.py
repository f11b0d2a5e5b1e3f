"""A connection that leads elsewhere than it is bound to: shown, and bound anew by a person."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rehome.alerts.kinds import AlertKind
from rehome.fleet import bound
from rehome.ledger.base.audit_entry import Decided
from rehome.run.context import RunContext
from tests.ledger.audit_rows import audit_of
from tests.plugins.run.asked import BY_ANN
from tests.ui.site import Site, snapshot_of, token_of

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from httpx import Response

FILE = """
clusters:
  berlin: {connection: kafka_berlin}
  oslo: {connection: kafka_oslo}
"""
Client = Callable[[str], "TestClient"]


@pytest.fixture
def edited(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Of two entries, the connection of one was edited: it leads to a cluster of no entry."""
    path = tmp_path / "clusters.yaml"
    path.write_text(FILE)
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    for connection, cluster_id in (("kafka_berlin", "B"), ("kafka_oslo", "O")):
        assert bound.record_binding(RunContext(BY_ANN, connection), cluster_id) is None
    assert bound.record_binding(RunContext(BY_ANN, "kafka_berlin"), "rebuilt") is not None
    return site


def bind(browser: TestClient, connection: str, cluster_id: str) -> Response:
    found = re.search(r'"X-Rehome-Token": "([^"]+)"', browser.get("clusters").text)
    assert found
    form = {"connection": connection, "cluster_id": cluster_id}
    bound_anew: Response = browser.post("rebind", data=form, headers={"X-Rehome-Token": found[1]})
    return bound_anew


def test_the_page_names_both_clusters_and_who_may_control_binds_it_anew(
    edited: Site, client: Client
) -> None:
    shown = client("viewer").get("clusters").text
    assert "entry berlin, leads to cluster rebuilt, but is bound to cluster B" in shown
    assert "Bind to this cluster" not in shown, "a viewer may not"
    assert bind(client("viewer"), "kafka_berlin", "rebuilt").status_code == 403
    admin = client("admin")
    assert "Bind to this cluster" in admin.get("clusters").text
    assert bind(admin, "kafka_berlin", "rebuilt").headers["HX-Redirect"] == "/rehome/clusters"
    found = edited.ledger.bindings()
    assert (found.connections["kafka_berlin"], found.entries["berlin"]) == ("rebuilt", "rebuilt")
    assert not edited.ledger.open_alerts(AlertKind.WRONG_CLUSTER)
    assert "is bound to cluster" not in admin.get("clusters").text
    rebound = [each for each in audit_of(edited.ledger) if each.decision is Decided.REBOUND]
    assert [(each.user_name, each.address, each.cluster_id) for each in rebound] == [
        ("admin", "testclient", "rebuilt")
    ] * 2


def test_a_program_with_the_users_own_token_needs_no_page(edited: Site, page: FastAPI) -> None:
    """Which no browser sends along by itself: beside a cookie it is not enough."""
    from fastapi.testclient import TestClient

    form = {"connection": "kafka_berlin", "cluster_id": "rebuilt"}
    own = {"Authorization": f"Bearer {token_of('admin')}"}

    def asked(headers: dict[str, str], **cookies: str) -> int:
        program = TestClient(page, base_url="http://testserver/rehome", cookies=cookies)
        return int(program.post("rebind", data=form, headers=headers).status_code)

    assert asked({}) == 401
    assert asked({"Authorization": "Bearer x"}) in (401, 403)
    assert asked({"Authorization": f"Bearer {token_of('viewer')}"}) == 403
    assert asked({}, _token=token_of("admin")) == 403
    assert asked(own, _token=token_of("admin")) == 403
    assert asked(own | {"X-Rehome-Token": "x"}) == 403
    assert asked(own | {"Origin": "https://evil.example"}) == 403
    assert edited.ledger.bindings().connections["kafka_berlin"] == "B"
    assert asked(own) == 200
    assert edited.ledger.bindings().connections["kafka_berlin"] == "rebuilt"
    (*_, told) = audit_of(edited.ledger)
    assert (told.decision, told.user_name) == (Decided.REBOUND, "admin")


def test_nothing_is_bound_that_the_page_does_not_show(edited: Site, client: Client) -> None:
    before = edited.ledger.bindings()
    for connection, cluster_id in (
        ("kafka_berlin", "elsewhere"),
        ("kafka_oslo", "O"),
        ("kafka_unknown", "O"),
    ):
        assert bind(client("admin"), connection, cluster_id).status_code == 409
    assert edited.ledger.bindings() == before


def test_an_entry_is_not_bound_to_a_cluster_that_another_entry_is_for(
    edited: Site, client: Client
) -> None:
    assert bound.record_binding(RunContext(BY_ANN, "kafka_berlin"), "O") is not None
    answer = bind(client("admin"), "kafka_berlin", "O")
    assert answer.status_code == 409
    assert "Entries berlin, oslo" in answer.text


def test_an_entry_that_is_bound_there_already_is_no_other_entry(
    edited: Site, client: Client
) -> None:
    """Its connection alone was bound elsewhere: the file names another one by now."""
    edited.ledger.record_connection("kafka_new", "elsewhere")
    edited.ledger.record_connection("kafka_new", "O")
    file = Path(os.environ["REHOME_CLUSTERS_FILE"])
    file.write_text(FILE.replace("connection: kafka_oslo", "connection: kafka_new"))
    assert bind(client("admin"), "kafka_new", "O").status_code == 200
    assert edited.ledger.bindings().connections["kafka_new"] == "O"


def test_the_pages_of_both_clusters_say_so(edited: Site, client: Client) -> None:
    snapshot_of(edited)  # of cluster "test"
    assert bound.record_binding(RunContext(BY_ANN, "kafka_berlin"), "test") is not None
    shown = client("viewer").get("clusters/test").text
    assert "leads to cluster test, but is bound to cluster B" in shown
