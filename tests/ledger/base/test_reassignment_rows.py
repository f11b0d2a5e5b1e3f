"""A reassignment begins with what was seen of its partition, or says that nothing was."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rehome.domain.kafka import HighWatermark, PartitionState, TopicPartition
from rehome.domain.run.observation import Observation
from rehome.ledger.base.reassignment_rows import started_row
from tests.ledger.small_plans import move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
TP0 = TopicPartition("t", 0)


def test_it_begins_with_the_replicas_leader_and_data_that_were_seen() -> None:
    state = PartitionState(2, (2, 1), frozenset({1, 2}))
    seen = Observation(
        T0, {TP0: state}, {}, frozenset({1, 2, 3}), high_watermarks={TP0: HighWatermark(70, 4)}
    )
    row = started_row("p1", move("t", 0, (1, 2), (3, 2), 100), seen, 1000, T0)
    assert (row["first_leader"], row["replicas_before"]) == (2, [2, 1])
    assert (row["high_watermark"], row["leader_epoch"]) == (70, 4)
    assert row["replicas_target"] == [3, 2]


def test_without_a_reading_it_begins_with_the_plan_and_knows_no_data() -> None:
    nothing = Observation(T0, {}, {}, frozenset())
    row = started_row("p1", move("t", 0, (1, 2), (3, 2), 100), nothing, None, T0)
    assert (row["first_leader"], row["replicas_before"]) == (None, [1, 2])
    assert (row["high_watermark"], row["leader_epoch"]) == (None, None)


@pytest.mark.parametrize(
    ("planned", "read", "kept"),
    [
        (90, HighWatermark(0, 7), (90, 7)),  # its only replica came back empty
        (90, None, (90, 0)),
        (60, HighWatermark(70, 4), (70, 4)),
        (-1, HighWatermark(0, 4), (0, 4)),
    ],
)
def test_messages_count_as_seen_as_far_as_the_plans_snapshot_had_them(
    planned: int, read: HighWatermark | None, kept: tuple[int, int]
) -> None:
    seen = Observation(T0, {}, {}, frozenset(), high_watermarks={TP0: read} if read else {})
    moved = replace(move("t", 0, (1, 2), (3, 2), 100), end_offset=planned)
    row = started_row("p1", moved, seen, None, T0)
    assert (row["high_watermark"], row["leader_epoch"]) == kept
