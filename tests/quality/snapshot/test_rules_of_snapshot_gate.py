"""Each expectation on a snapshot is seen to hold, and to break by one corruption that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from include.domain.clock import CLOCKS_DIFFER
from include.quality import gates
from include.quality.engine.results import GateResult, Status
from include.quality.gates import check_snapshot
from include.quality.snapshot.rules import snapshot_rules
from include.warehouse import Warehouse
from tests.quality.snapshots import TAKEN_AT, Row, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_AGE_S = 3600.0
SNAPSHOT_SUITE = Path(gates.__file__).parent / "suites" / "snapshot" / "snapshot.json"


def dead_broker(rows: Rows) -> None:
    row = rows.broker(1) | {"broker": 5, "live": False, "answered": False, "error": "gone"}
    rows.brokers.append(row)


def silent_broker(rows: Rows) -> None:
    rows.broker(3).update(answered=False, error="REQUEST_TIMED_OUT (7)")


def rack_forgotten(rows: Rows) -> None:
    rows.broker(4).update(rack=None, rack_path=[])


def rack_split_wrongly(rows: Rows) -> None:
    rows.broker(2)["rack_path"] = ["dc0"]


def broker_twice(rows: Rows) -> None:
    rows.brokers.append(dict(rows.broker(1)))


def broker_without_log_dirs(rows: Rows) -> None:
    rows.brokers.append(rows.broker(1) | {"broker": 6})


def offline_log_dir(rows: Rows) -> None:
    rows.log_dir(1, "/data/1").update(offline=True, error="KAFKA_STORAGE_ERROR (56)")


def stray_replicas(rows: Rows) -> None:
    rows.log_dir(1, "/data/0")["stray_replicas"] = 2


def more_free_than_there_is(rows: Rows) -> None:
    rows.log_dir(3, "/data/1")["usable_bytes"] = 2_000_000


def log_dir_twice(rows: Rows) -> None:
    rows.log_dirs.append(dict(rows.log_dir(4, "/data/1")))


def hidden_topic(rows: Rows) -> None:
    rows.topics.append({"topic": "secret", "internal": False, "visible": False})


def topic_twice(rows: Rows) -> None:
    rows.topics.append(_topic("twice", 0))
    rows.topics.append(_topic("twice", 0))


def partitions_missing(rows: Rows) -> None:
    rows.topics.append(_topic("short", 2))
    rows.replicas += [row | {"topic": "short"} for row in rows.replicas if row["partition"] == 0]


def topic_not_listed(rows: Rows) -> None:
    rows.replicas.append(_one_replica("unlisted"))


def broker_not_listed(rows: Rows) -> None:
    rows.topics.append(_topic("lost", 1))
    rows.replicas.append(_one_replica("lost") | {"broker": 9, "log_dir": None})


def replica_in_no_log_dir(rows: Rows) -> None:
    rows.replica(0, 1)["log_dir"] = None


def replica_in_an_unknown_log_dir(rows: Rows) -> None:
    rows.replica(7, 0)["log_dir"] = "/data/9"


def replica_without_size(rows: Rows) -> None:
    rows.replica(1, 0)["size_bytes"] = None


def replica_of_negative_size(rows: Rows) -> None:
    rows.replica(1, 1)["size_bytes"] = -1


def replica_without_offset(rows: Rows) -> None:
    rows.replica(2, 0)["log_end_offset"] = None


def leader_out_of_sync(rows: Rows) -> None:
    rows.replica(8, 0)["in_isr"] = False


def partition_with_two_leaders(rows: Rows) -> None:
    rows.replica(9, 1)["is_leader"] = True


def replica_twice_on_a_broker(rows: Rows) -> None:
    rows.replica(4, 1)["broker"] = rows.replica(4, 0)["broker"]


def replica_out_of_order(rows: Rows) -> None:
    rows.replica(5, 1)["position"] = 2


def replica_row_twice(rows: Rows) -> None:
    rows.replicas.append(dict(rows.replica(10, 1)))


def reassignment_in_flight(rows: Rows) -> None:
    rows.replica(6, 1)["adding"] = True


def log_dir_move_in_flight(rows: Rows) -> None:
    rows.replica(11, 0).update(future_log_dir="/data/1", future_size_bytes=5)


def _topic(name: str, partitions: int) -> Row:
    return Rows().topics[0] | {"topic": name, "partitions": partitions}


def _one_replica(topic: str) -> Row:
    return Rows().replica(0, 0) | {"topic": topic}


# What each rule says of the snapshot in which everything is wrong at once. Every corruption is on
# rows of its own, so a rule that shows another row than those it is meant to is too broad.
BROKEN_ROWS: dict[str, tuple[str, ...]] = {
    "every broker whose load is balanced is alive": ("broker 5, error gone",),
    "every live broker answered": ("broker 3, error REQUEST_TIMED_OUT (7)",),
    "every broker that answered reports its log dirs": ("broker 6",),
    "a broker is listed once": ("broker 1", "broker 1"),
    "a broker's rack path matches its rack": ("broker 2, rack /dc0/r2, rack_path ['dc0']",),
    "all brokers name a rack, or none does": ("broker 4",),
    "no broker whose load is balanced has an offline log dir": (
        "broker 1, log_dir /data/1, error KAFKA_STORAGE_ERROR (56)",
    ),
    "no broker whose load is balanced holds replicas that the metadata does not know": (
        "broker 1, log_dir /data/0, stray_replicas 2",
    ),
    "the free space of a log dir is at most the size of its volume": (
        "broker 3, log_dir /data/1, total_bytes 1000000, usable_bytes 2000000",
    ),
    "a log dir is listed once": ("broker 4, log_dir /data/1", "broker 4, log_dir /data/1"),
    "no topic is hidden from this principal": ("topic secret",),
    "a topic is listed once": ("topic twice", "topic twice"),
    "all partitions of a topic are listed": (
        "topic short, partitions 2, partitions_seen 1, first_partition 0, last_partition 0",
    ),
    "every partition is of a topic that is listed": ("topic unlisted, partition 0",),
    "every replica is on a broker that is listed": ("topic lost, partition 0, broker 9",),
    "every replica lies in a log dir": (
        "topic lost, partition 0, broker 9",
        "topic payments, partition 0, broker 2",
    ),
    "the log dir of a replica is one that its broker has": (
        "topic payments, partition 7, broker 4, log_dir /data/9",
    ),
    "every replica has a size": (
        "topic payments, partition 1, broker 2",
        "topic payments, partition 1, broker 3, size_bytes -1",
    ),
    "every replica's log end offset is known": ("topic payments, partition 2, broker 3",),
    "a leader is in sync": ("topic payments, partition 8, leaders_out_of_sync 1",),
    "no partition has two leaders": ("topic payments, partition 9, leaders 2",),
    "the replicas of a partition are on distinct brokers": (
        "topic payments, partition 4",
        "topic payments, partition 10",
    ),
    "the replicas of a partition are listed in order": (
        "topic payments, partition 5",
        "topic payments, partition 10",
    ),
    "no reassignment is in flight": ("topic payments, partition 6",),
    "no move between log dirs is in flight": ("topic payments, partition 11",),
}
CORRUPTIONS: tuple[Callable[[Rows], None], ...] = (
    *(dead_broker, silent_broker, rack_forgotten, rack_split_wrongly, broker_twice),
    *(broker_without_log_dirs, offline_log_dir, stray_replicas, more_free_than_there_is),
    *(log_dir_twice, hidden_topic, topic_twice, partitions_missing, topic_not_listed),
    *(broker_not_listed, replica_in_no_log_dir, replica_in_an_unknown_log_dir),
    *(replica_without_size, replica_of_negative_size, replica_without_offset),
    *(leader_out_of_sync, partition_with_two_leaders),
    *(replica_twice_on_a_broker, replica_out_of_order, replica_row_twice),
    *(reassignment_in_flight, log_dir_move_in_flight),
)
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
    return gate(spark, tmp_path_factory.mktemp("clean"), Rows(), timedelta(minutes=1))


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


def test_only_the_future_is_wrong_with_a_rackless_snapshot_taken_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = Rows()
    for row in rows.brokers:
        row.update(rack=None, rack_path=[])
    result = gate(spark, tmp_path, rows, timedelta(minutes=-10))
    assert [item.name for item in result.failed] == [FRESH]


def test_an_empty_snapshot_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = Rows(brokers=[], log_dirs=[], topics=[], replicas=[])
    result = gate(spark, tmp_path, rows, timedelta(0))
    assert [item.name for item in result.failed] == [LIVE]


def test_additional_allows_a_reassignment_in_flight() -> None:
    names = {rule.name for rule in snapshot_rules(additional=True)}
    assert names == {*BROKEN_ROWS, FRESH, LIVE} - IN_FLIGHT


def test_dead_brokers_failed_log_dirs_and_lost_leaders_refuse_only_what_levels_these_brokers(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = Rows()
    rows.lose(4)
    rows.broker(3).update(rack=None, rack_path=[])
    for row in rows.replicas:
        if row["broker"] != 4 and row["partition"] % 4 == 3:
            row["is_leader"] = row["partition"] != 3  # that one has no leader any more
        if row["broker"] == 2 and row["partition"] == 0:
            row.update(in_isr=False, log_dir=None, size_bytes=None, log_end_offset=None)
    rows.log_dir(2, "/data/1").update(offline=True, error="KAFKA_STORAGE_ERROR (56)")
    rows.log_dir(2, "/data/0")["stray_replicas"] = 1
    for elsewhere in ((), (1, 3)):
        asked = gate(spark, tmp_path, rows, timedelta(0), balanced=elsewhere, ignore_racks=True)
        assert asked.failed == ()
    unasked = gate(spark, tmp_path, rows, timedelta(0))
    assert [item.name for item in unasked.failed] == [
        "every broker whose load is balanced is alive",
        "all brokers name a rack, or none does",
        "no broker whose load is balanced has an offline log dir",
        "no broker whose load is balanced holds replicas that the metadata does not know",
    ]


def test_the_gate_and_watching_allow_clocks_the_same_difference() -> None:
    suite = json.loads(SNAPSHOT_SUITE.read_text())
    least = next(
        e["kwargs"]["min_value"] for e in suite["expectations"] if "min_value" in e["kwargs"]
    )
    assert least == -CLOCKS_DIFFER.total_seconds()
