"""The workload's proof must be able to fail: lost, repeated and misordered messages are named."""

from __future__ import annotations

import pytest

from local.workload import PartitionJournal, Reading


def _read(journal: PartitionJournal, *sequences: int) -> tuple[int, list[str]]:
    reading = Reading(journal)
    for sequence in sequences:
        reading.see(sequence)
    problems = list(reading.finish())
    return reading.acknowledged_seen, problems


def test_everything_acknowledged_and_read_in_order_is_clean() -> None:
    assert _read(PartitionJournal(sent=3, acknowledged=3), 0, 1, 2) == (3, [])


@pytest.mark.parametrize(
    ("sequences", "problem"),
    [
        ((0, 2), "1 acknowledged messages lost, first 1"),
        ((0, 1), "1 acknowledged messages lost, first 2"),
        ((), "3 acknowledged messages lost, first 0"),
        ((0, 1, 1, 2), "1 came after 1"),
        ((0, 2, 1), "1 came after 2"),
    ],
)
def test_a_lost_repeated_or_misordered_message_is_named(
    sequences: tuple[int, ...], problem: str
) -> None:
    _, problems = _read(PartitionJournal(sent=3, acknowledged=3), *sequences)
    assert problem in problems


def test_a_message_never_acknowledged_may_be_missing_or_there_but_does_not_count() -> None:
    journal = PartitionJournal(sent=3, acknowledged=2, unacknowledged={1})
    assert _read(journal, 0, 2) == (2, [])
    assert _read(journal, 0, 1, 2) == (2, [])
