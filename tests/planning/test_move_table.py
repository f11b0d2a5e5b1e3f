"""Moves as columns say the same as moves as objects, in far less time."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from include.cluster.model import TopicPartition
from include.planning.columns import AT_ONCE
from include.planning.kafka_json import (
    reassignment_json,
    reassignment_text,
    rollback_json,
    rollback_text,
)
from include.planning.plan import (
    Move,
    MoveCounts,
    MoveReason,
    MoveTable,
    moves_from_table,
    moves_table,
    plan_hash,
)

BROKERS = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple)
PATHS = st.sampled_from(["/a", "/b c", '/quoted "', "any"])


@st.composite
def moves(draw: st.DrawFn) -> tuple[Move, ...]:
    names = draw(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=3, unique=True))
    keys = sorted({(draw(st.sampled_from(names)), draw(st.integers(0, 9))) for _ in range(6)})
    made = []
    for name, number in keys[: draw(st.integers(0, 6))]:
        current, target = draw(BROKERS), draw(BROKERS)
        dirs = [draw(st.lists(PATHS, min_size=len(b), max_size=len(b))) for b in (current, target)]
        now, then = (tuple(draw(st.sampled_from([found, []]))) for found in dirs)
        size = draw(st.integers(0, 2**40))
        reason = draw(st.sampled_from(MoveReason))
        partition = TopicPartition(name, number)
        made.append(Move(partition, current, target, size, reason, "why", now, then))
    return tuple(made)


def as_json(cluster_id: str, made: tuple[Move, ...]) -> str:
    """What the hash is made of, written by the JSON encoder."""
    rows = [
        [*m.partition, m.current, m.target, m.target_log_dirs or ["any"] * len(m.target)]
        for m in made
    ]
    return json.dumps({"cluster_id": cluster_id, "moves": rows}, separators=(",", ":"))


@settings(max_examples=150, deadline=None)
@given(made=moves(), cluster_id=st.text(max_size=4))
def test_columns_say_what_the_objects_say(made: tuple[Move, ...], cluster_id: str) -> None:
    table = MoveTable(moves_table(made))
    assert len(table) == len(made)
    assert tuple(table) == made
    assert table == made
    assert [table[number] for number in range(-len(made), len(made))] == [*made, *made]
    assert tuple(table[::-2]) == made[::-2]
    expected = hashlib.sha256(as_json(cluster_id, made).encode()).hexdigest()
    assert plan_hash(cluster_id, table) == plan_hash(cluster_id, made) == expected
    assert json.loads("".join(reassignment_text(table))) == reassignment_json(made)
    assert json.loads("".join(rollback_text(table))) == rollback_json(made)
    assert MoveCounts.of(table) == MoveCounts(
        replica_moves=sum(len(m.adding) for m in made),
        bytes_to_move=sum(m.bytes_to_move for m in made),
        leader_changes=sum(m.current[0] != m.target[0] for m in made),
        resized=sum(len(m.current) != len(m.target) for m in made),
    )


def test_another_target_makes_another_table() -> None:
    first = Move(TopicPartition("t", 0), (1, 2), (1, 3), 5, MoveReason.BALANCE)
    table = MoveTable(moves_table([first]))
    assert table != (replace(first, target=(3, 1)),)
    assert table != MoveTable(moves_table([replace(first, target=(3, 1))]))


def test_many_moves_are_written_without_an_object_for_each() -> None:
    """Text of many batches is one file of JSON, made in less time than the objects alone."""
    count = 3 * AT_ONCE + 5
    one = Move(TopicPartition("t", 0), (1, 2, 3), (4, 2, 3), 5, MoveReason.BALANCE, "why")
    table = moves_table([one]).take([0] * count)
    numbers = pa.array(range(count), pa.int32())
    table = table.set_column(1, table.schema.field("partition"), numbers)
    started = time.process_time()
    text = "".join(reassignment_text(MoveTable(table)))
    plan_hash("c", MoveTable(table))
    counted = MoveCounts.of(MoveTable(table))
    took = time.process_time() - started
    assert [entry["partition"] for entry in json.loads(text)["partitions"]] == [*range(count)]
    assert counted.replica_moves == count
    started = time.process_time()
    assert len(moves_from_table(table)) == count
    assert took < time.process_time() - started
