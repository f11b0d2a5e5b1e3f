"""Moves as columns say the same as moves as objects, and none of those is made for it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan import move_columns, move_table
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.kafka_json import (
    reassignment_json,
    reassignment_text,
    rollback_json,
    rollback_text,
)
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.move_table import MoveCounts, MoveTable, moves_from_table, moves_table
from rehome.domain.plan.plan_hash import plan_hash
from rehome.quality.facts.plan_hash import hash_of as hash_in_gate
from tests.examples import examples
from tests.ledger.small_plans import make_plan

BROKERS = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(tuple)
PATHS = st.sampled_from(["/a", "/b c", '/quoted "', "any"])

WHY = (MoveCause(CauseCode.RACKS_OF_MOVED, 1, 4),)


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
        topic_id = draw(st.sampled_from(["", f"id of {name}"]))
        made.append(Move(partition, current, target, size, reason, WHY, now, then, topic_id))
    return tuple(made)


def as_json(cluster_id: str, action: str, made: tuple[Move, ...], *, allow: bool) -> str:
    """What the hash is made of, written by the JSON encoder."""

    def named(log_dirs: tuple[str, ...], replicas: tuple[int, ...]) -> tuple[str, ...]:
        return log_dirs or ("any",) * len(replicas)

    rows = [
        [
            *(m.partition.topic, m.topic_id, m.partition.partition),
            *(m.current, named(m.current_log_dirs, m.current)),
            *(m.target, named(m.target_log_dirs, m.target)),
        ]
        for m in made
    ]
    content = {
        "format": 2,
        "cluster_id": cluster_id,
        "action": action,
        "allow_replication_factor_change": allow,
        "moves": rows,
    }
    return json.dumps(content, separators=(",", ":"))


@pytest.mark.slow
@examples(150)
@given(made=moves(), cluster_id=st.text(max_size=4), action=st.sampled_from(Action), allow=...)
def test_columns_say_what_the_objects_say(
    made: tuple[Move, ...], cluster_id: str, action: Action, allow: bool
) -> None:
    table = MoveTable(moves_table(made))
    assert len(table) == len(made)
    assert tuple(table) == made
    assert table == made
    assert [table[number] for number in range(-len(made), len(made))] == [*made, *made]
    assert tuple(table[::-2]) == made[::-2]
    expected = hashlib.sha256(as_json(cluster_id, action, made, allow=allow).encode()).hexdigest()
    for form in (table, made):
        found = plan_hash(cluster_id, action, form, allow_replication_factor_change=allow)
        assert found == expected
    once_more = hash_in_gate(cluster_id, action, table.table, allows_factor_change=allow)
    assert once_more == expected
    assert json.loads("".join(reassignment_text(table))) == reassignment_json(made)
    assert json.loads("".join(rollback_text(table))) == rollback_json(made)
    assert MoveCounts.of(table) == MoveCounts(
        replica_moves=sum(len(m.adding) for m in made),
        bytes_to_move=sum(m.bytes_to_move for m in made),
        leader_changes=sum(m.current[0] != m.target[0] for m in made),
        resized=sum(len(m.current) != len(m.target) for m in made),
        elections=sum(m.reason is MoveReason.ELECTION for m in made),
    )


def test_another_target_makes_another_table() -> None:
    first = Move(TopicPartition("t", 0), (1, 2), (1, 3), 5, MoveReason.BALANCE)
    table = MoveTable(moves_table([first]))
    assert table != (replace(first, target=(3, 1)),)
    assert table != MoveTable(moves_table([replace(first, target=(3, 1))]))


@pytest.mark.slow
@given(moves())
def test_a_plan_in_columns_finds_its_moves_and_sums_them_as_one_of_objects_does(
    made: tuple[Move, ...],
) -> None:
    objects = replace(make_plan("p"), moves=made)
    columns = replace(objects, moves=MoveTable(moves_table(made)))
    assert dict(columns.by_partition) == dict(objects.by_partition)
    assert columns.brokers == objects.brokers
    assert columns.bytes_to_copy == objects.bytes_to_copy
    again = replace(columns)
    again.prepare([move.partition for move in made[::2]])
    assert [again.by_partition[move.partition] for move in made] == list(made)
    assert TopicPartition("no-such-topic", 0) not in again.by_partition


def test_only_moves_that_are_used_become_objects() -> None:
    one = Move(TopicPartition("t", 0), (1, 2, 3), (4, 2, 3), 5, MoveReason.BALANCE, WHY)
    table = moves_table([one]).take([0] * 1000)
    numbers = pa.array(range(1000), pa.int32())
    found = MoveTable(table.set_column(1, table.schema.field("partition"), numbers)).by_partition
    assert found[TopicPartition("t", 7)].partition.partition == 7
    found.prepare([TopicPartition("t", 7), TopicPartition("t", 8)])
    assert len(found) == 1000
    assert set(found.made) == {TopicPartition("t", 7), TopicPartition("t", 8)}


def test_many_moves_are_written_without_an_object_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Text of many batches is one file of JSON."""
    for module in (move_columns, move_table):
        monkeypatch.setattr(module, "ROWS_PER_BATCH", 1000)
    count = 3 * 1000 + 5
    one = Move(TopicPartition("t", 0), (1, 2, 3), (4, 2, 3), 5, MoveReason.BALANCE, WHY)
    table = moves_table([one]).take([0] * count)
    numbers = pa.array(range(count), pa.int32())
    table = table.set_column(1, table.schema.field("partition"), numbers)

    def no_objects(_: object) -> None:
        raise AssertionError("an object is made for each move")

    with monkeypatch.context() as patched:
        patched.setattr(move_table, "moves_from_table", no_objects)
        text = "".join(reassignment_text(MoveTable(table)))
        plan_hash("c", "rebalance", MoveTable(table))
        counted = MoveCounts.of(MoveTable(table))
        with pytest.raises(AssertionError, match="an object"):
            next(iter(MoveTable(table)))
    assert [entry["partition"] for entry in json.loads(text)["partitions"]] == [*range(count)]
    assert counted.replica_moves == count
    assert len(moves_from_table(table)) == count
