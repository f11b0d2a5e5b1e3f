"""What the gate on a plan reads of Kafka's files, and by which code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.kafka_json import KafkaFiles
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.move_table import moves_table
from rehome.quality.facts.gate_input import ListedPartitions, rows_of
from rehome.quality.facts.plan_hash import hash_of
from rehome.quality.facts.ragged_lists import Ragged, starts_of

MOVE = Move(TopicPartition("a", 0), (1, 2), (2, 3), 5, MoveReason.BALANCE, (), ("/d", "/d"))
MOVES = [
    MOVE,
    replace(MOVE, partition=TopicPartition("a", 1), target_log_dirs=("", "/é")),
    replace(MOVE, partition=TopicPartition('é"', 0), current_log_dirs=()),
]


def entry(topic: str, partition: int, *replicas: int) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": list(replicas)}


def test_a_file_is_read_as_a_json_parser_reads_its_text() -> None:
    text = KafkaFiles.of(MOVES).reassignment
    read = ListedPartitions.of(text)
    assert read.version == 1
    assert read.entries.to_pylist() == json.loads(text)["partitions"]


def test_an_entry_is_found_by_its_partition_and_the_last_of_two_counts() -> None:
    listed = [entry("b", 0, 1), entry("a", 1, 2), entry("a", 1, 3), entry("c", 7, 4)]
    read = ListedPartitions.of({"version": 1, "partitions": listed})
    beside = read.beside(moves_table(MOVES))
    assert beside.column("replicas").to_pylist() == [None, [3], None]
    assert read.counts().to_pylist() == [
        {"topic": "a", "partition": 1, "times_listed": 2},
        {"topic": "b", "partition": 0, "times_listed": 1},
        {"topic": "c", "partition": 7, "times_listed": 1},
    ]
    assert rows_of(moves_table(MOVES), read.counts()).tolist() == [1, -1, -1]


def test_a_file_without_entries_or_a_version_has_none() -> None:
    read = ListedPartitions.of({"partitions": []})
    assert (read.version, len(read.entries)) == (0, 0)
    assert read.beside(moves_table(MOVES)).column("replicas").to_pylist() == [None] * 3


@pytest.mark.parametrize(
    "text", ['{"partitions":[]}{"partitions":[]}', "{", "", '{"version":1} x', '{"version":1}']
)
def test_what_is_not_one_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"objects|JSON|names no partitions"):
        ListedPartitions.of(text)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_hash_is_that_of_the_moves_as_canonical_json(count: int) -> None:
    rows = [
        ["a", "", 0, [1, 2], ["/d", "/d"], [2, 3], ["any", "any"]],
        ["a", "", 1, [1, 2], ["/d", "/d"], [2, 3], ["any", "/é"]],
        ['é"', "", 0, [1, 2], ["any", "any"], [2, 3], ["any", "any"]],
    ]
    content = {
        "format": 2,
        "cluster_id": "é",
        "action": "drain",
        "allow_replication_factor_change": True,
        "moves": rows[:count],
    }
    text = json.dumps(content, separators=(",", ":"))
    none, first, others = (moves_table(MOVES[each]) for each in (slice(0), slice(1), slice(1, 9)))
    moves = pa.concat_tables([none, first, none, others])[:count]
    found = hash_of("é", "drain", moves, allows_factor_change=True)
    assert found == hashlib.sha256(text.encode("ascii")).hexdigest()


@pytest.mark.parametrize("seed", range(20))
def test_lists_are_compared_row_by_row(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    mine, theirs = (
        [drawn.integers(-1, 4, drawn.integers(0, 4)).tolist() for _ in range(seed)] for _ in "ab"
    )
    missing = [
        value not in there for here, there in zip(mine, theirs, strict=True) for value in here
    ]
    assert ragged(mine).missing_in(ragged(theirs)).tolist() == missing
    assert ragged(mine).distinct_lengths.tolist() == [len(set(values)) for values in mine]


def ragged(lists: list[list[int]]) -> Ragged:
    values = np.array([value for values in lists for value in values], np.int64)
    return Ragged(values, starts_of(np.array([len(values) for values in lists], np.int64)))
