from __future__ import annotations

import io
import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from include.cluster.model import TopicPartition
from include.planning.plan import (
    MOVES,
    BrokerLoad,
    Infeasible,
    Move,
    MoveReason,
    PlanSummary,
    moves_from_table,
    moves_table,
    plan_hash,
    summary_from_json,
    summary_to_json,
)

MOVES_OF_T = (
    Move(TopicPartition("t", 0), (1, 2), (2, 3), 10, MoveReason.DRAIN, "why", ("/a", "any"), ()),
    Move(TopicPartition("t", 1), (1,), (1,), 5, MoveReason.LOG_DIR, "", ("/a",), ("/b",)),
)


def test_the_hash_does_not_depend_on_the_order_of_moves_or_on_sizes_and_sentences():
    same = [replace(move, why="other", size_bytes=7) for move in reversed(MOVES_OF_T)]
    assert plan_hash("c", same) == plan_hash("c", MOVES_OF_T)


def test_the_hash_is_stable_across_versions():
    assert plan_hash("c", MOVES_OF_T) == (
        "832f13148ca1a282fe4f3e8b3e23290d57e330dcf5739bad1192d9ce083e9ada"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"partition": TopicPartition("t", 2)},
        {"current": (2, 1)},
        {"target": (3, 2)},
        {"target_log_dirs": ("/x", "any")},
    ],
)
def test_the_hash_changes_with_what_will_happen(change):
    changed = (replace(MOVES_OF_T[0], **change), MOVES_OF_T[1])
    assert plan_hash("c", changed) != plan_hash("c", MOVES_OF_T)


def test_the_hash_changes_with_the_cluster():
    assert plan_hash("c", MOVES_OF_T) != plan_hash("d", MOVES_OF_T)


def test_no_wish_and_any_log_dir_are_the_same_plan():
    spelled = (replace(MOVES_OF_T[0], target_log_dirs=("any", "any")), MOVES_OF_T[1])
    assert plan_hash("c", spelled) == plan_hash("c", MOVES_OF_T)


def test_moves_survive_parquet_and_come_back_in_partition_order():
    file = io.BytesIO()
    pq.write_table(moves_table(reversed(MOVES_OF_T)), file)
    table = pq.read_table(file)
    assert table.schema.equals(MOVES)
    assert moves_from_table(table) == MOVES_OF_T


def test_a_plan_without_moves_has_an_empty_table_of_the_same_schema():
    assert moves_table([]).schema.equals(MOVES)
    assert moves_from_table(moves_table([])) == ()


def test_a_summary_survives_json():
    summary = PlanSummary(
        plan_id="p",
        plan_hash="h",
        cluster_id="c",
        action="drain",
        snapshot="s",
        partitions=1,
        replica_moves=1,
        leader_changes=0,
        bytes_to_move=10,
        lower_bound_bytes=10,
        rate_bytes_per_s=None,
        predicted_s=None,
        rack_violations_before=0,
        rack_violations_after=0,
        brokers=(BrokerLoad(1, 10, 0, 1, 0, 1, 0, 0, 10),),
        infeasible=(Infeasible("broker 1", "disk", 1.0, 2.0),),
    )
    assert summary_from_json(json.loads(json.dumps(summary_to_json(summary)))) == summary
