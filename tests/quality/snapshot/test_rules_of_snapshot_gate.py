"""Each expectation on a snapshot is seen to hold, and to break by one corruption that names it."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rehome.domain.clock import CLOCKS_DIFFER
from rehome.quality import gates
from rehome.quality.engine.results import GateResult, Status
from rehome.quality.gates import check_snapshot
from rehome.quality.snapshot.rules import snapshot_rules
from rehome.warehouse import Warehouse
from tests.quality.snapshot.snapshot_corruptions import BROKEN_ROWS, CORRUPTIONS
from tests.quality.snapshots import TAKEN_AT, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_AGE_S = 3600.0
SNAPSHOT_SUITE = Path(gates.__file__).parent / "suites" / "snapshot" / "snapshot.json"

IN_FLIGHT = {"no reassignment is in flight", "no move between log dirs is in flight"}
LIVE = "the snapshot has live brokers"
FRESH = "the snapshot is fresh"


def gate(
    spark: SparkSession, directory: Path, rows: Rows, age: timedelta, **options: Any
) -> GateResult:
    snapshot = rows.snapshot()
    uri = Warehouse(directory.as_uri()).write_snapshot(snapshot)
    now = TAKEN_AT + age
    return check_snapshot(spark, uri, snapshot, now, max_age_s=MAX_AGE_S, **options)


@pytest.fixture(scope="module")
def clean(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> GateResult:
    """Some brokers have no rack."""
    rows = Rows()
    for broker in (3, 4):
        rows.broker(broker).update(rack=None, rack_path=[])
    return gate(spark, tmp_path_factory.mktemp("clean"), rows, timedelta(minutes=1))


@pytest.fixture(scope="module")
def spoilt(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> GateResult:
    """All corruptions at once, each on rows of its own."""
    rows = Rows()
    for corrupt in CORRUPTIONS:
        corrupt(rows)
    return gate(spark, tmp_path_factory.mktemp("spoilt"), rows, timedelta(hours=2))


def test_a_sound_snapshot_passes(clean: GateResult) -> None:
    assert clean.passed
    assert [item.name for item in clean.outcomes if item.status is not Status.PASSED] == []


def test_every_expectation_has_a_corruption_that_breaks_it() -> None:
    names = {rule.name for rule in snapshot_rules(additional=False)}
    assert names == {*BROKEN_ROWS, FRESH, LIVE}


@pytest.mark.parametrize("name", BROKEN_ROWS)
def test_a_corruption_breaks_its_expectation_and_names_the_row(
    name: str, spoilt: GateResult
) -> None:
    outcome = next(item for item in spoilt.outcomes if item.name == name)
    assert outcome.status is Status.FAILED
    assert outcome.offending_rows == BROKEN_ROWS[name]
    assert outcome.offending_count == len(BROKEN_ROWS[name])
    assert outcome.remedy


def test_an_old_snapshot_is_refused(spoilt: GateResult) -> None:
    outcome = next(item for item in spoilt.outcomes if item.name == FRESH)
    assert outcome.status is Status.FAILED
    assert "age_s 7200" in outcome.offending_rows[0]


def test_an_empty_snapshot_and_one_from_the_future_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = Rows(brokers=[], log_dirs=[], topics=[], replicas=[])
    result = gate(spark, tmp_path, rows, timedelta(minutes=-10))
    assert {item.name for item in result.failed} == {FRESH, LIVE}


def test_additional_allows_a_reassignment_in_flight() -> None:
    names = {rule.name for rule in snapshot_rules(additional=True)}
    assert names == {*BROKEN_ROWS, FRESH, LIVE} - IN_FLIGHT


def test_the_gate_and_watching_allow_clocks_the_same_difference() -> None:
    suite = json.loads(SNAPSHOT_SUITE.read_text())
    least = next(
        e["kwargs"]["min_value"] for e in suite["expectations"] if "min_value" in e["kwargs"]
    )
    assert least == -CLOCKS_DIFFER.total_seconds()
