"""Amounts, durations and lists as people read them, and rates as they write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.resources import Resource
from rehome.domain.text import (
    amount_text,
    brokers_text,
    bytes_text,
    clock_text,
    count_text,
    duration_text,
    join_names,
    minute_text,
    names_by_value,
    rate_in,
    second_text,
)


def test_times_are_in_utc() -> None:
    at = datetime(2030, 1, 31, 5, 30, 7, tzinfo=timezone(timedelta(hours=1)))
    assert second_text(at) == "2030-01-31 04:30:07 UTC"
    assert minute_text(at) == "2030-01-31 04:30 UTC"
    assert clock_text(at) == "04:30:07 UTC"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_234_567, "1.23 MB"), (5e18, "5e+03 PB")],
)
def test_sizes_are_in_powers_of_1000(size_bytes: float, text: str) -> None:
    assert bytes_text(size_bytes) == text


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("50 MB/s", 50_000_000),
        (" 50MB ", 50_000_000),
        ("1.5 kB/s", 1500),
        ("50000000", 50_000_000),
        ("0", None),
        ("-1", None),
        ("fast", None),
        ("9" * 30, None),
    ],
)
def test_a_rate_is_read_as_people_write_it(text: str, bytes_per_s: int | None) -> None:
    assert rate_in(text) == bytes_per_s


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (8.94, "8.9 s"),
        (9.95, "10 s"),
        (59.6, "1 min"),
        (250, "4 min 10 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def test_one_is_singular_and_many_are_not() -> None:
    assert [count_text(n, "move") for n in (0, 1, 12_000)] == ["0 moves", "1 move", "12,000 moves"]
    assert count_text(2, "copy", "copies") == "2 copies"
    assert amount_text(Resource.REPLICAS, 1) == "1 replica"
    assert amount_text(Resource.LEADERS, 2) == "2 leaders"
    assert amount_text(Resource.BYTES, 1200) == "1.2 kB"
    assert amount_text(Resource.BYTES_IN, 1200) == "1.2 kB/s"


def test_names_are_listed_with_an_and_before_the_last() -> None:
    assert [join_names("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [brokers_text([3]), brokers_text([3, 4])] == ["broker 3", "brokers 3 and 4"]


def test_partitions_with_the_same_value_are_named_together() -> None:
    values = {TopicPartition("t", number): "done" for number in range(4)}
    values[TopicPartition("u", 0)] = "gone"
    assert names_by_value(values, most=3) == {"done": "t-0, t-1, t-2 and 1 more", "gone": "u-0"}
    assert names_by_value({}) == {}
