"""What partitions did between two snapshots, against logs whose every byte is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rehome.load_history.bytes_written import Interval, between
from rehome.load_history.log_readings import Readings
from tests.load_history.logs import Log, read


def one(before: Readings, now: Readings, record_bytes: float = np.nan) -> dict[str, Any]:
    """What the interval says of the only partition."""
    found: Interval = between(before, now, np.full(len(now.keys), record_bytes))
    return {
        name: getattr(found, name)[0] for name in Interval.__dataclass_fields__ if name != "seconds"
    }


def test_growth_is_measured_to_the_byte_whatever_the_records_are_like() -> None:
    log = Log()
    log.append(10, 5000)
    before = read({"t": log}, 0)
    log.append(1000, 90)
    log.append(1, 78)  # the mark of a transaction's end takes an offset and bytes as well
    seen = one(before, read({"t": log}, 10))
    assert seen["measured"]
    assert seen["bytes_in"] == 90_078
    assert seen["messages"] == 1001
    assert seen["bytes_out"] == 90_078, "the follower copies it"


def test_bytes_that_retention_deletes_do_not_reduce_the_bytes_written() -> None:
    log = Log()
    log.append(1000, 100)
    before = read({"t": log}, 0)
    log.append(500, 300)
    log.expire(900, 100)
    now = read({"t": log}, 10)
    assert not one(before, now)["measured"]
    by_records = one(before, now, record_bytes=300)
    assert by_records["bytes_in"] == 150_000
    assert by_records["grown_bytes"] == 60_000
    # Without a measure: by the mean of what is left, 160,000 bytes at 600 offsets.
    assert one(before, now)["bytes_in"] == pytest.approx(500 * 160_000 / 600)


def compacted() -> Log:
    """A log that 1,000 records of 100 bytes were written to, and of which a tenth is left."""
    log = Log(policy="compact,delete")
    log.append(1000, 100)
    log.size -= 90_000  # from the middle: the log begins and ends as before
    return log


def test_what_a_compacted_log_has_grown_by_is_a_lower_bound_and_never_measured() -> None:
    log = compacted()
    before = read({"t": log}, 0)
    log.append(1000, 100)
    log.size -= 95_000
    # The cleaner has lowered the log's own bytes per offset to 10: 5 are plausible then.
    seen = one(before, read({"t": log}, 10))
    assert not seen["measured"]
    assert seen["least_bytes"] == seen["grown_bytes"] == 5_000
    assert seen["record_bytes"] == 5
    assert seen["bytes_in"] >= seen["least_bytes"]
    reported = one(before, read({"t": log}, 10), record_bytes=100)
    assert reported["bytes_in"] == log.written / 2
    assert reported["least_bytes"] == 5_000


def test_a_compacted_log_that_became_smaller_is_certain_of_nothing() -> None:
    log = compacted()
    before = read({"t": log}, 0)
    log.append(10, 100)
    log.size -= 5_000
    seen = one(before, read({"t": log}, 10), record_bytes=100)
    assert (seen["bytes_in"], seen["least_bytes"]) == (1_000, 0)


def test_few_records_of_a_compacted_log_say_nothing_of_others() -> None:
    log = compacted()
    before = read({"t": log}, 0)
    log.append(1, 1_000_000)
    seen = one(before, read({"t": log}, 10), record_bytes=100)
    assert seen["bytes_in"] == seen["least_bytes"] == 1_000_000
    assert np.isnan(seen["record_bytes"])


@pytest.mark.parametrize("policies", [("compact", "delete"), ("delete", "compact")])
def test_a_log_that_was_compacted_for_a_part_of_the_interval_is_not_measured(
    policies: tuple[str, str],
) -> None:
    log = Log(policy=policies[0])
    log.append(1000, 100)
    before = read({"t": log}, 0)
    log.append(1000, 100)
    assert not one(before, read({"t": replace(log, policy=policies[1])}, 10))["measured"]


def test_another_leader_is_reported_and_its_size_is_not_compared() -> None:
    log = Log(leader=1)
    log.append(100, 1000)
    before = read({"t": log}, 0)
    log.append(50, 1000)
    now = read({"t": replace(log, leader=2, size=log.size + 77_777)}, 10)
    seen = one(before, now, record_bytes=1000)
    assert seen["leader_changed"]
    assert not seen["measured"]
    assert seen["bytes_in"] == 50_000
    assert np.isnan(seen["grown_bytes"])


def test_offsets_that_went_back_say_nothing_of_what_was_written() -> None:
    log = Log()
    log.append(100, 1000)
    before = read({"t": log}, 0)
    seen = one(before, read({"t": replace(log, end=60, size=60_000)}, 10), record_bytes=1000)
    assert seen["truncated"]
    assert np.isnan(seen["bytes_in"])
    assert np.isnan(seen["bytes_out"])


def test_a_topic_created_anew_has_nothing_to_do_with_its_namesake() -> None:
    old = Log(topic_id="a")
    old.append(100, 1000)
    new = Log(topic_id="b")
    new.append(500, 1000)
    seen = one(read({"t": old}, 0), read({"t": new}, 10))
    assert np.isnan(seen["bytes_in"])
    assert not seen["truncated"]
    assert not seen["unread"]


@pytest.mark.parametrize("when", ["before", "now"])
def test_a_leader_that_did_not_answer_leaves_the_interval_unknown(when: str) -> None:
    log = Log()
    log.append(100, 1000)
    before = read({"t": log}, 0, silent=("t",) if when == "before" else ())
    log.append(100, 1000)
    seen = one(before, read({"t": log}, 10, silent=("t",) if when == "now" else ()))
    assert seen["unread"]
    assert np.isnan(seen["bytes_in"])


def test_an_idle_partition_is_known_to_be_idle_even_when_it_is_empty() -> None:
    idle = {"t": Log(), "u": Log(start=900, end=900)}
    found = between(read(idle, 0), read(idle, 10), np.full(2, np.nan))
    assert found.bytes_in.tolist() == [0, 0]
    assert found.bytes_out.tolist() == [0, 0]


def test_partitions_that_come_and_go_do_not_shift_the_others() -> None:
    logs = {name: Log() for name in ("b", "d", "f")}
    before = read(logs, 0)
    for size, log in enumerate(logs.values(), 1):
        log.append(10, size)
    del logs["d"]
    found = between(before, read({"a": Log(), **logs, "e": Log()}, 10), np.full(4, np.nan))
    assert np.array_equal(found.bytes_in, [np.nan, 10, np.nan, 30], equal_nan=True)


def test_bytes_out_are_what_followers_and_groups_have_read() -> None:
    log = Log(followers=2, committed={"fast": 100, "slow": 20})
    log.append(100, 1000)
    before = read({"t": log}, 0)
    log.append(50, 1000)
    log.committed = {"fast": 150, "slow": 30}
    seen = one(before, read({"t": log}, 10))
    assert seen["bytes_out"] == 2 * 50_000 + 50_000 + 10_000


def test_a_group_that_reads_while_no_producer_writes_counts_by_the_size_of_records() -> None:
    log = Log(followers=0, committed={"g": 0})
    log.append(100, 1000)
    before = read({"t": log}, 0)
    log.committed = {"g": 40}
    assert one(before, read({"t": log}, 10))["bytes_out"] == 40_000


@pytest.mark.parametrize("earlier", [{}, {"g": 90}], ids=["first commit", "gone back"])
def test_what_a_group_read_is_not_known_where_its_offsets_do_not_follow(
    earlier: dict[str, int],
) -> None:
    logs = {"t": Log(committed=earlier), "u": Log(committed={"g": 0})}
    for log in logs.values():
        log.append(100, 1000)
    before = read(logs, 0)
    logs["t"].committed = {"g": 50}
    logs["u"].committed = {"g": 50}
    found = between(before, read(logs, 10), np.full(2, np.nan))
    assert np.isnan(found.bytes_out[0])
    assert found.bytes_out[1] == 50_000
    assert found.bytes_in.tolist() == [0, 0]


def test_a_group_that_is_gone_reads_nothing() -> None:
    log = Log(followers=0, committed={"g": 5})
    log.append(10, 1000)
    before = read({"t": log}, 0)
    log.committed = {}
    assert one(before, read({"t": log}, 10))["bytes_out"] == 0


def test_bytes_out_are_unknown_while_some_group_does_not_answer() -> None:
    log = Log()
    log.append(10, 1000)
    before = read({"t": log}, 0, unread="GROUP_AUTHORIZATION_FAILED (30)")
    log.append(10, 1000)
    seen = one(before, read({"t": log}, 10))
    assert np.isnan(seen["bytes_out"])
    assert seen["bytes_in"] == 10_000
