"""The warehouse in memory does what the real one does, as far as operators see it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.errors import RehomeError
from rehome.warehouse import PlanDirectory, PlanExistsError, Warehouse
from tests.ledger.small_plans import make_plan, move
from world.airflow.in_memory import WarehouseInMemory

PLAN = make_plan("p1", move("t", 0, (1, 2), (3, 2)))
REQUEST = parse_request({"action": "drain", "brokers": [1]})


@pytest.fixture(params=["in memory", "real"])
def warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    return WarehouseInMemory("A") if request.param == "in memory" else Warehouse(tmp_path.as_uri())


@pytest.fixture
def directory(warehouse: Warehouse) -> PlanDirectory:
    return warehouse.plan("p1")


def test_a_plan_that_was_saved_is_loaded_and_never_replaced(
    warehouse: Warehouse, directory: PlanDirectory
) -> None:
    assert warehouse.finished_plans() == []
    directory.save(PLAN, REQUEST)
    assert directory.load() == PLAN
    assert warehouse.finished_plans() == ["p1"]
    assert directory.read_json("summary.json")["plan_id"] == "p1"
    assert len(set(directory.file_digests().values())) == 2
    with pytest.raises(PlanExistsError):
        directory.save(PLAN, REQUEST)


def test_files_are_written_read_digested_and_removed(directory: PlanDirectory) -> None:
    directory.write_json("a.json", {"b": 1})
    assert directory.exists("a.json")
    before = directory.digest("a.json")
    directory.write_json("a.json", {"b": 2})
    assert directory.digest("a.json") != before
    directory.remove("a.json")
    with pytest.raises(RehomeError):
        directory.read_text("a.json")


def test_what_lies_outside_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(RehomeError):
        warehouse.plan_at("memory://B/plans/p1")
    with pytest.raises(RehomeError):
        warehouse.snapshot_uri("../x")
    assert warehouse.latest_snapshot("c") is None
