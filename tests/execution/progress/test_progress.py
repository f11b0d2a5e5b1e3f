"""KIP-179's table, and what counts as done."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rehome.domain.kafka import (
    BrokerError,
    PartitionState,
    ReplicaId,
)
from rehome.domain.run.progress import ProgressSample, ReplicaState
from rehome.execution.progress.flow_samples import Copied
from rehome.execution.progress.progress import (
    copies_at,
    footer,
    replica_statuses,
    status_table,
)
from tests.execution.progress.one_copy import MOVE, SEEN, T0, TP
from tests.ledger.small_plans import move

NOT_HERE = BrokerError(6, "NOT_LEADER_OR_FOLLOWER")


def test_the_table_reads_like_kip_179s() -> None:
    sample = ProgressSample(T0, 500, 2000, 0, 1, 1, 75, 100.0, 15.0)
    assert status_table(replica_statuses([MOVE], SEEN), sample) == (
        "Topic     Partition  Broker  Status\n"
        "payments  7          4       Behind: 75 messages behind, 1.5 kB\n"
        "payments  7          2       In sync\n"
        "500 B of 2.0 kB (25 %), 0 of 1 moves done, 1 in flight, 100 B/s, "
        "13 s to 17 s left at this pace"
    )


def test_a_table_of_many_replicas_has_fifty_lines_that_say_most_and_one_of_sums() -> None:
    move_of = {number: move("big", number, (1, 2), (4, 2), 1000) for number in range(1000)}
    whole = {ReplicaId("big", number, broker): 2000 for number in move_of for broker in (1, 2)}
    copied = {ReplicaId("big", number, 4): 2000 - number for number in move_of}
    states = {
        each.partition: PartitionState(1, (4, 2, 1), frozenset({1, 2}))
        for each in move_of.values()
        if each.partition.partition != 3
    }
    seen = replace(SEEN, partitions=states, sizes=whole | copied, log_end_offsets={})
    sample = ProgressSample(T0, 500, 2000, 0, 1000, 1000, 75, 100.0, 15.0)
    lines = status_table(replica_statuses(list(move_of.values()), seen), sample).splitlines()
    *table, sums = lines
    assert len(table) == 50
    assert "Unknown partition" in table[1]
    assert table[-1].split()[:3] == ["big", "999", "4"]
    assert table[3].split()[:3] == ["big", "953", "4"]
    assert sums.endswith(
        "13 s to 17 s left at this pace, 49 of 2000 replicas shown "
        "(of all: 999 behind, 999 in sync, 2 of unknown partitions)"
    )


def test_a_replica_whose_state_is_not_known_has_the_cause_as_its_state() -> None:
    def state(**changes: Any) -> ReplicaState:
        return replica_statuses([MOVE], replace(SEEN, **changes))[0].state

    assert state(topics_missing=frozenset({"payments"})) is ReplicaState.UNKNOWN_TOPIC
    assert state(partitions={}) is ReplicaState.UNKNOWN_PARTITION
    assert state(live_brokers=frozenset({1, 2})) is ReplicaState.UNKNOWN_BROKER
    offsets = {**SEEN.log_end_offsets, ReplicaId(*TP, 4): NOT_HERE}
    assert state(log_end_offsets=offsets) is ReplicaState.NOT_HOSTED
    silent = replica_statuses([MOVE], replace(SEEN, log_end_offsets={}, sizes={}))
    assert "Behind: ? messages behind" in status_table(silent)


def test_a_copy_to_a_log_dir_that_the_plan_does_not_name_is_none_of_its_copies() -> None:
    """Another client moves replicas between log dirs: the new one, and one that stays."""
    new, kept = ReplicaId(*TP, 4), ReplicaId(*TP, 2)
    across = replace(
        SEEN, future_sizes={new: 200, kept: 300}, future_lags={new: 90, kept: 85}, log_dirs={}
    )
    assert replica_statuses([MOVE], across) == replica_statuses([MOVE], SEEN)


def test_a_copy_to_the_log_dir_that_the_plan_names_is_the_one_that_is_made() -> None:
    kept = replace(MOVE, current_log_dirs=("/a", "/a"), target_log_dirs=("any", "/b"))
    replica = ReplicaId(*TP, 2)
    across = replace(
        SEEN,
        future_sizes={replica: 300},
        future_lags={replica: 85},
        log_dirs={replica: "/a"},
        future_log_dirs={replica: "/b"},
    )
    _, status = replica_statuses([kept], across)
    assert status.state is ReplicaState.BEHIND
    assert (status.size_bytes, status.bytes_behind, status.messages_behind) == (300, 1700, 85)


def test_a_new_replica_that_is_put_into_its_log_dir_afterwards_holds_what_it_has_received() -> None:
    placed = replace(MOVE, current_log_dirs=("/a", "/a"), target_log_dirs=("/b", "any"))
    replica = ReplicaId(*TP, 4)
    across = replace(
        SEEN,
        sizes={**SEEN.sizes, replica: 2000},
        future_sizes={replica: 300},
        future_lags={replica: 85},
        log_dirs={replica: "/a"},
        future_log_dirs={replica: "/b"},
    )
    status, _ = replica_statuses([placed], across)
    assert status.state is ReplicaState.BEHIND
    assert (status.size_bytes, status.messages_behind) == (2000, 85)


def test_a_status_remembers_the_largest_lag_the_last_time_in_sync_and_the_last_size() -> None:
    (first, in_sync) = replica_statuses([MOVE], SEEN)
    assert (first.last_in_isr_at, in_sync.last_in_isr_at) == (None, T0)
    later = replace(
        SEEN,
        taken_at=T0 + timedelta(seconds=5),
        partitions={TP: PartitionState(1, (4, 2, 1), frozenset({1}))},
        log_end_offsets={**SEEN.log_end_offsets, ReplicaId(*TP, 4): 90},
        sizes={ReplicaId(*TP, 1): 2000},
    )
    before = {status.replica: status for status in (first, in_sync)}
    now, fallen = replica_statuses([MOVE], later, before)
    assert (now.messages_behind, now.max_messages_behind, now.size_bytes) == (10, 75, 500)
    assert fallen.last_in_isr_at == T0


def test_copies_are_known_from_the_last_poll_only_if_they_were_in_flight_then() -> None:
    """What an earlier attempt at the same move had copied is gone."""
    statuses = replica_statuses([MOVE], SEEN)
    assert copies_at(T0, statuses)[ReplicaId(*TP, 4)] == Copied(500, 2000)
    assert not copies_at(T0 + timedelta(seconds=5), statuses)
    assert not copies_at(None, statuses)


def test_of_a_plan_without_bytes_to_copy_the_moves_count() -> None:
    sample = ProgressSample(T0, 0, 0, 500, 5000, 200)
    assert sample.fraction == 0.1
    assert footer(sample).startswith("500 of 5000 moves done (10 %), no bytes to copy, 200 in")
