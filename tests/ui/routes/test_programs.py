"""Programs get as data what people get as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

from rehome.domain.request.parse_request import parse_request
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.ui.routes import explain, programs
from rehome.warehouse import Warehouse
from tests.planning.clusters import cluster
from tests.planning.planned import THREE_RACKS
from tests.ui.site import Site, snapshot_of, token_of

if TYPE_CHECKING:
    from fastapi import FastAPI


@pytest.fixture
def program(page: FastAPI, site: Site) -> TestClient:
    """A program of a viewer's, with a token and without a cookie."""
    asked = TestClient(page, base_url="http://testserver/rehome")
    asked.headers["Authorization"] = f"Bearer {token_of('viewer')}"
    asked.headers["Accept"] = "application/json"
    return asked


def test_the_same_address_has_a_page_and_its_data(program: TestClient, site: Site) -> None:
    site.plan("p1")
    snapshot_of(site)
    for path in ("", "plans/p1", "clusters", "runs/reassign_partitions/manual__p1"):
        assert isinstance(program.get(path).json(), dict), path
        html = program.get(path, headers={"Accept": "text/html,*/*;q=0.8"}).text
        assert html.lstrip().startswith("<!doctype html>"), path
    (line,) = program.get("").json()["plans"]
    assert (line["plan_id"], line["state"]) == ("p1", "planned")
    assert program.get("plans/p1/tabs/partitions?q=orders").json()["total"] == 12


def test_what_is_wrong_is_data_too(program: TestClient, site: Site) -> None:
    site.plan("p1")
    gone = program.get("plans/none")
    assert (gone.status_code, gone.json()["rehome"]) == (404, "Not found")
    assert program.get("plans/p1/tabs/events").status_code == 406
    control = program.get("plans/p1/controls/cancel")
    assert (control.status_code, control.json()["rehome"]) == (403, "Not allowed")


def test_a_run_without_a_plan_says_why(program: TestClient, site: Site) -> None:
    found = program.get("runs/reassign_partitions/none").json()
    assert (found["ended"], found["failed"], found["plan_id"]) == (True, True, None)
    assert programs.run_json.__doc__


def test_partitions_and_brokers_are_explained(
    program: TestClient, site: Site, tmp_path: Path
) -> None:
    request = parse_request({"action": "drain", "brokers": [0]})
    snapshot = replace(cluster(THREE_RACKS, [(0, 2, 4)]).snapshot(), cluster_id="c1")
    warehouse = Warehouse(site.warehouse.as_uri())
    warehouse.write_snapshot(snapshot)
    plan = make_plan(snapshot, request, PlanOptions(plan_id="why"))
    warehouse.plan("why").save(plan, request)
    site.ledger.create_plan(
        plan, {}, warehouse.plan("why").uri, "r", "ann", "kafka_prod", "reassign_partitions"
    )
    found = program.get("plans/why/explanations?partition=t-0&broker=0").json()
    assert len(found["texts"]) == 2
    for query in ("", "?partition=t", "?partition=t-9", "?broker=-1", "?broker=x"):
        assert program.get(f"plans/why/explanations{query}").status_code == 422, query
    many = "&".join(["broker=0"] * (explain.MOST_EXPLAINED + 1))
    assert program.get(f"plans/why/explanations?{many}").status_code == 422
