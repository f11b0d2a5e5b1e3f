"""What copies have to bring where a leader's disk holds much that was deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import BrokerError, Partial, PartitionState, ReplicaId, TopicPartition
from rehome.domain.run.observation import Observation
from rehome.execution.observation.bytes_to_copy import LogStarts, to_copy
from tests.ledger.small_plans import move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
MOVE, PARTITION = move("t", 0, (1,), (3,)), TopicPartition("t", 0)
LEADER, COPY = ReplicaId("t", 0, 1), ReplicaId("t", 0, 3)


def seen(copied: int, end: int | BrokerError, leader_end: int = 20_000) -> Observation:
    """20,000 messages of 1 kB were written; all of them are on the leader's disk still."""
    return Observation(
        T0,
        {PARTITION: PartitionState(1, (1, 3), frozenset({1}))},
        {},
        frozenset({1, 3}),
        sizes={LEADER: 20_000_000, COPY: copied},
        log_end_offsets={LEADER: leader_end, COPY: end},
    )


@pytest.mark.parametrize(
    ("copied", "end", "start", "size"),
    [
        (100_000, 19_900, 19_800, 200_000),  # 100 of 200 messages
        (200_000, 20_000, 19_800, 200_000),
        (2_000_000, 2_000, 0, 20_000_000),  # nothing was ever deleted
        (1_000_000, 4_000, 3_000, 20_000_000),  # 17 MB are to be copied: as good as 20
        (0, 0, 19_800, 20_000_000),  # not begun: nothing is known but the size on disk
        (100_000, 19_000, 19_800, 20_000_000),  # more was deleted than it has: it begins anew
    ],
)
def test_a_leaders_size_is_what_is_to_be_copied_where_the_one_on_disk_misleads(
    copied: int, end: int, start: int, size: int
) -> None:
    assert to_copy([MOVE], seen(copied, end), {PARTITION: start})[LEADER] == size


def test_what_cannot_be_read_leaves_sizes_as_they_are() -> None:
    refused = BrokerError(29, "TOPIC_AUTHORIZATION_FAILED")
    assert to_copy([MOVE], seen(100_000, refused), {PARTITION: 19_800})[LEADER] == 20_000_000
    assert to_copy([MOVE], seen(100_000, 19_900), {})[LEADER] == 20_000_000


class Asked:
    """Of a port: where logs begin."""

    def __init__(self) -> None:
        self.times = 0

    def log_start_offsets(self, replicas: Any) -> Partial[dict[ReplicaId, int]]:
        self.times += 1
        return Partial(dict.fromkeys(replicas, 19_800))


def test_log_starts_are_asked_for_once_a_minute_and_only_of_copies_that_have_begun() -> None:
    asked, starts = Asked(), LogStarts()

    def of(copied: int, seconds: int) -> dict[TopicPartition, int]:
        at = replace(seen(copied, 19_900), taken_at=T0 + timedelta(seconds=seconds))
        return dict(starts.of(cast(ClusterPort, asked), [MOVE], at))

    assert of(0, 0) == {}
    assert asked.times == 0
    assert [of(100, second) for second in (5, 10, 64)] == [{PARTITION: 19_800}] * 3
    assert asked.times == 1
    of(100, 65)
    assert asked.times == 2
