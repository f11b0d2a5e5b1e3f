"""Each expectation on a snapshot is seen to hold, and to break by one corruption that names it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.quality.gates import check_snapshot
from include.quality.results import GateResult, Status
from include.quality.rules import snapshot_rules
from include.warehouse import Warehouse
from tests.quality.snapshots import TAKEN_AT, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_AGE_S = 3600.0
AN_HOUR_TOO_LATE = TAKEN_AT + timedelta(hours=2)


def dead_broker(rows: Rows) -> None:
    row = rows.broker(1) | {"broker": 5, "live": False, "answered": False, "error": "gone"}
    rows.brokers.append(row)


def silent_broker(rows: Rows) -> None:
    rows.broker(3).update(answered=False, error="REQUEST_TIMED_OUT (7)")


def rack_forgotten(rows: Rows) -> None:
    rows.broker(4).update(rack=None, rack_path=[])


def offline_log_dir(rows: Rows) -> None:
    rows.log_dir(2, "/data/1").update(offline=True, error="KAFKA_STORAGE_ERROR (56)")


def stray_replicas(rows: Rows) -> None:
    rows.log_dir(1, "/data/0")["stray_replicas"] = 2


def hidden_topic(rows: Rows) -> None:
    rows.topics.append({"topic": "secret", "internal": False, "visible": False})


def replica_in_no_log_dir(rows: Rows) -> None:
    rows.replica(0, 1)["log_dir"] = None


def replica_without_size(rows: Rows) -> None:
    rows.replica(1, 0)["size_bytes"] = None


def replica_without_offset(rows: Rows) -> None:
    rows.replica(2, 0)["log_end_offset"] = None


def partition_without_leader(rows: Rows) -> None:
    rows.replica(3, 0)["is_leader"] = False


def replica_twice_on_a_broker(rows: Rows) -> None:
    rows.replica(4, 1)["broker"] = rows.replica(4, 0)["broker"]


def replica_out_of_order(rows: Rows) -> None:
    rows.replica(5, 1)["position"] = 2


def reassignment_in_flight(rows: Rows) -> None:
    rows.replica(6, 1)["adding"] = True


CORRUPTIONS: dict[str, tuple[Callable[[Rows], None], str]] = {
    "every broker with replicas is alive": (dead_broker, "broker 5, error gone"),
    "every live broker answered": (silent_broker, "broker 3, error REQUEST_TIMED_OUT (7)"),
    "all brokers name a rack, or none does": (rack_forgotten, "broker 4"),
    "no log dir is offline": (
        offline_log_dir,
        "broker 2, log_dir /data/1, error KAFKA_STORAGE_ERROR (56)",
    ),
    "log dirs hold only replicas that the metadata knows": (
        stray_replicas,
        "broker 1, log_dir /data/0, stray_replicas 2",
    ),
    "no topic is hidden from this principal": (hidden_topic, "topic secret"),
    "every replica lies in a log dir": (
        replica_in_no_log_dir,
        "topic payments, partition 0, broker 2",
    ),
    "every replica has a size": (replica_without_size, "topic payments, partition 1, broker 2"),
    "every replica tells its log end offset": (
        replica_without_offset,
        "topic payments, partition 2, broker 3",
    ),
    "every partition has one leader": (partition_without_leader, "topic payments, partition 3"),
    "the replicas of a partition are on distinct brokers": (
        replica_twice_on_a_broker,
        "topic payments, partition 4",
    ),
    "the replicas of a partition are listed in order": (
        replica_out_of_order,
        "topic payments, partition 5",
    ),
    "no reassignment is in flight": (reassignment_in_flight, "topic payments, partition 6"),
}
FRESH = "the snapshot is fresh"


def gate(spark: SparkSession, directory: Path, rows: Rows, age: timedelta) -> GateResult:
    snapshot = rows.snapshot()
    uri = Warehouse(directory.as_uri()).write_snapshot(snapshot)
    return check_snapshot(spark, uri, snapshot, TAKEN_AT + age, max_age_s=MAX_AGE_S)


@pytest.fixture(scope="module")
def clean(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> GateResult:
    return gate(spark, tmp_path_factory.mktemp("clean"), Rows(), timedelta(minutes=1))


@pytest.fixture(scope="module")
def spoilt(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> GateResult:
    """All corruptions at once, each on rows of its own."""
    rows = Rows()
    for corrupt, _ in CORRUPTIONS.values():
        corrupt(rows)
    return gate(spark, tmp_path_factory.mktemp("spoilt"), rows, timedelta(hours=2))


def test_a_sound_snapshot_passes(clean: GateResult) -> None:
    assert clean.passed
    assert [item.name for item in clean.outcomes if item.status is not Status.PASSED] == []


def test_every_expectation_has_a_corruption_that_breaks_it() -> None:
    names = {rule.name for rule in snapshot_rules(max_age_s=MAX_AGE_S, additional=False)}
    assert names == {*CORRUPTIONS, FRESH}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_breaks_its_expectation_and_names_the_row(
    name: str, spoilt: GateResult
) -> None:
    outcome = next(item for item in spoilt.outcomes if item.name == name)
    assert outcome.status is Status.FAILED
    assert outcome.offending_rows == (CORRUPTIONS[name][1],)
    assert outcome.offending_count == 1
    assert outcome.remedy


def test_an_old_snapshot_is_refused(spoilt: GateResult) -> None:
    outcome = next(item for item in spoilt.outcomes if item.name == FRESH)
    assert outcome.status is Status.FAILED
    assert "age_s 7200" in outcome.offending_rows[0]


def test_only_the_future_is_wrong_with_a_rackless_snapshot_taken_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = Rows()
    for row in rows.brokers:
        row.update(rack=None, rack_path=[])
    result = gate(spark, tmp_path, rows, timedelta(minutes=-10))
    assert [item.name for item in result.failed] == [FRESH]


def test_additional_allows_a_reassignment_in_flight() -> None:
    names = {rule.name for rule in snapshot_rules(max_age_s=MAX_AGE_S, additional=True)}
    assert names == {*CORRUPTIONS, FRESH} - {"no reassignment is in flight"}
