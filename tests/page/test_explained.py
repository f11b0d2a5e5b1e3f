"""A plan is explained by its files, wherever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.load_history.known_rates import Demands
from rehome.page.explained import explanations
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.warehouse import Warehouse
from tests.planning.clusters import cluster
from tests.planning.planned import THREE_RACKS


@pytest.fixture
def plan_dir(tmp_path: Path) -> str:
    """A drain of broker 0, of the only partition that there is."""
    of = cluster(THREE_RACKS, [(0, 2, 4)])
    warehouse, request = (
        Warehouse(tmp_path.as_uri()),
        parse_request({"action": "drain", "brokers": [0]}),
    )
    snapshot = of.snapshot()
    warehouse.write_snapshot(snapshot)
    directory = warehouse.plan("p")
    directory.save(make_plan(snapshot, request, PlanOptions(plan_id="p")), request)
    return directory.uri


def test_each_partition_and_broker_has_its_text(plan_dir: str) -> None:
    first, second = explanations(plan_dir, None, ["t-0"], [0])
    assert "t-0" in first
    assert "broker 0" in second.lower()
    with_history = explanations(plan_dir, Demands(7, 24.0), ["t-0"], [])
    assert with_history == [first]


@pytest.mark.parametrize("name", ["t", "t-", "-1", "t-x", "t-٣"])
def test_what_is_no_partition_is_named(plan_dir: str, name: str) -> None:
    with pytest.raises(InvalidRequestError, match="is no partition"):
        explanations(plan_dir, None, [name], [])


def test_what_the_plan_does_not_know_is_named(plan_dir: str) -> None:
    with pytest.raises(InvalidRequestError, match="Unknown partition"):
        explanations(plan_dir, None, ["gone-0"], [])
