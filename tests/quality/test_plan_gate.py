"""Each hard rule on a plan is seen to hold, and to break by one corruption that names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from include.cluster.model import TopicPartition
from include.planning.kafka_json import reassignment_json, rollback_json
from include.planning.plan import Move, MoveReason, Plan, plan_hash
from include.planning.planner import make_plan
from include.planning.request import Action, ReassignmentRequest
from include.quality.gates import check_plan
from include.quality.results import GateResult, Status
from include.quality.rules import drained_empty_rule, plan_rules
from tests.quality.snapshots import PARTITIONS, SIZE_BYTES, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRAINED = (4,)
DRAIN = ReassignmentRequest(Action.DRAIN, brokers=DRAINED)
RAISE_FACTOR = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=3)

# Partition n of the sound snapshot lies on brokers n % 4 + 1 and (n + 1) % 4 + 1.
# The corruption of each rule has a partition, a broker or a column of its own.
BROKEN_ROWS = {
    "a partition is moved once": ["topic payments, partition 0", "topic payments, partition 0"],
    "a target names a broker": ["topic payments, partition 1"],
    "a target names no broker twice": ["topic payments, partition 2, target [2, 2]"],
    "a target names live brokers only": ["topic payments, partition 3, target [1, 9]"],
    "log dirs are aligned with the target": ["topic payments, partition 4"],
    "a move has a size": ["topic payments, partition 5"],
    "a move changes something": ["topic payments, partition 6"],
    "the way back leads to where the snapshot found the partition": [
        "topic payments, partition 7, current [4, 1], snapshot_replicas [4, 1], "
        "rollback_replicas [1, 4]",
        "topic payments, partition 8, current [1, 3], snapshot_replicas [1, 2], "
        "rollback_replicas [1, 3]",
        "topic payments, partition 9, current [2, 3], snapshot_replicas [2, 3]",
    ],
    "what is sent is what was planned": [
        "topic payments, partition 10, target [3, 1], sent_replicas [3, 2]"
    ],
    "a broker's disk holds old and new copies at once": ["broker 3, bytes_in 2000, room_bytes 800"],
    "the hash is that of the moves": ["plan_id p"],
    "the lower bound is not above what is moved": ["plan_id p, lower_bound_bytes 10000000"],
    "no target names a drained broker": ["topic payments, partition 11, target [2, 4]"],
    "the replication factor stays": [
        "topic payments, partition 1, current [2, 3], target []",
    ],
    "replicas are spread over racks no worse than before": [
        "topic payments, partition 0, current [1, 2], target [1, 3]",
        "topic payments, partition 0, current [1, 2], target [1, 3]",
    ],
    "a drained broker ends empty": ["broker 4"],
}


def move(
    partition: int, current: tuple[int, ...], target: tuple[int, ...], size: int = SIZE_BYTES
) -> Move:
    return Move(TopicPartition("payments", partition), current, target, size, MoveReason.DRAIN)


def check(
    spark: SparkSession,
    plan: Plan,
    request: ReassignmentRequest,
    rows: Rows | None = None,
    reassignment: Mapping[str, Any] | None = None,
    rollback: Mapping[str, Any] | None = None,
) -> GateResult:
    return check_plan(
        spark,
        (rows or Rows()).snapshot(),
        plan,
        request,
        reassignment=reassignment or reassignment_json(plan.moves),
        rollback=rollback or rollback_json(plan.moves),
        min_free_disk_fraction=0.05,
    )


def with_moves(plan: Plan, moves: tuple[Move, ...]) -> Plan:
    summary = replace(
        plan.summary,
        plan_hash=plan_hash(plan.cluster_id, moves),
        bytes_to_move=sum(item.bytes_to_move for item in moves),
    )
    return replace(plan, moves=moves, summary=summary)


@pytest.fixture(scope="module")
def clean(spark: SparkSession) -> GateResult:
    return check(spark, make_plan(Rows().snapshot(), DRAIN, plan_id="p"), DRAIN)


@pytest.fixture(scope="module")
def spoilt(spark: SparkSession) -> GateResult:
    """A drain of broker 4 with everything wrong at once, each on rows of its own."""
    rows = Rows()
    rows.log_dir(3, "/data/0").update(total_bytes=4_000, usable_bytes=1_000)
    rows.log_dir(3, "/data/1").update(offline=True)
    moves = (
        move(0, (1, 2), (1, 3)),
        move(0, (1, 2), (1, 3)),
        move(1, (2, 3), ()),
        move(2, (3, 4), (2, 2)),
        move(3, (4, 1), (1, 9)),
        replace(move(4, (1, 2), (2, 1)), target_log_dirs=("any",)),
        move(5, (2, 3), (3, 2), size=-1),
        move(6, (3, 4), (3, 4)),
        move(7, (4, 1), (2, 1)),
        move(8, (1, 3), (1, 2)),
        move(9, (2, 3), (2, 1)),
        move(10, (3, 4), (3, 1)),
        move(11, (4, 1), (2, 4)),
    )
    plan = with_moves(make_plan(rows.snapshot(), DRAIN, plan_id="p"), moves)
    summary = replace(plan.summary, plan_hash="0" * 64, lower_bound_bytes=10_000_000)
    plan = replace(plan, summary=summary)
    sent, back = reassignment_json(moves), rollback_json(moves)
    for entry in sent["partitions"]:
        if entry["partition"] == 10:
            entry["replicas"] = [3, 2]
    back["partitions"] = [entry for entry in back["partitions"] if entry["partition"] != 9]
    for entry in back["partitions"]:
        if entry["partition"] == 7:
            entry["replicas"] = [1, 4]
    return check(spark, plan, DRAIN, rows, sent, back)


def test_a_sound_plan_passes(clean: GateResult) -> None:
    assert [item.name for item in clean.outcomes if item.status is not Status.PASSED] == []


def test_every_rule_has_a_corruption_that_breaks_it() -> None:
    rules = plan_rules(
        drained=DRAINED, replication_factor=None, keeps_replication_factor=True, guards_racks=True
    )
    names = {rule.name for rule in (*rules, drained_empty_rule(DRAINED))}
    assert names == set(BROKEN_ROWS)


@pytest.mark.parametrize("name", BROKEN_ROWS)
def test_a_corruption_breaks_its_rule_and_names_the_rows(name: str, spoilt: GateResult) -> None:
    outcome = next(item for item in spoilt.outcomes if item.name == name)
    assert outcome.status is Status.FAILED
    seen = list(outcome.offending_rows)
    for expected in BROKEN_ROWS[name]:
        assert any(row.startswith(expected) for row in seen), seen
    assert outcome.offending_count == len(seen)
    assert outcome.remedy


def test_another_replication_factor_than_asked_for_is_refused(spark: SparkSession) -> None:
    plan = make_plan(Rows().snapshot(), RAISE_FACTOR, plan_id="p")
    assert len(plan.moves) == PARTITIONS
    first = plan.moves[0]
    moves = (replace(first, target=first.target[:2]), *plan.moves[1:])
    result = check(spark, with_moves(plan, moves), RAISE_FACTOR)
    (outcome,) = [item for item in result.failed if "factor" in item.name]
    assert outcome.name == "the replication factor is the one asked for"
    assert outcome.offending_rows[0].startswith("topic payments, partition 0, target")


def test_a_plan_without_moves_passes(spark: SparkSession) -> None:
    plan = make_plan(Rows().snapshot(), ReassignmentRequest(Action.REPAIR_RACKS), plan_id="p")
    assert plan.moves == ()
    result = check(spark, plan, ReassignmentRequest(Action.REPAIR_RACKS))
    assert result.passed
