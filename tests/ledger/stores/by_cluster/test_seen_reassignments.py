"""Since when reassignments in flight are known, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from rehome.domain.kafka import OngoingReassignment, TopicPartition
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_cluster.seen_reassignments import COMPARED_AFTER, SeenReassignment
from tests.ledger.set_clock import SetClock

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
SEEN = SeenReassignment(OngoingReassignment((3, 2, 1), (3,), (1,)), "id-1", 1, 100)


def test_what_is_in_flight_is_known_since_it_was_first_seen_with_an_identity(
    ledger: Ledger, clock: SetClock
) -> None:
    began = clock()
    first = ledger.note_seen("c1", began, {ONE: SEEN})
    later = began + COMPARED_AFTER
    moved = replace(SEEN, leader=2, bytes_in_place=700)
    again = ledger.note_seen("c1", later, {ONE: moved, TWO: SEEN})
    assert again[ONE] == first[ONE]
    assert (again[ONE].first_seen_at, again[ONE].first_leader) == (began, 1)
    assert (again[ONE].read_at, again[ONE].bytes_in_place) == (began, 100)
    assert (again[TWO].first_seen_at, again[TWO].read_at) == (later, later)
    assert again[TWO].seen_id != again[ONE].seen_id
    kept = ledger.seen_reassignments("c1")
    rate = 600 / COMPARED_AFTER.total_seconds()
    assert kept[ONE] == replace(
        first[ONE], read_at=later, bytes_in_place=700, rate_bytes_per_s=rate
    )
    assert ledger.seen_reassignments("c2") == {}


def test_a_reading_is_compared_with_until_it_is_old_enough(ledger: Ledger, clock: SetClock) -> None:
    began = clock()
    ledger.note_seen("c1", began, {ONE: SEEN})
    soon = began + COMPARED_AFTER - timedelta(seconds=1)
    ledger.note_seen("c1", soon, {ONE: replace(SEEN, bytes_in_place=500)})
    assert ledger.seen_reassignments("c1")[ONE].read_at == began


def test_one_that_ended_or_has_another_target_or_topic_is_another_one(
    ledger: Ledger, clock: SetClock
) -> None:
    began = clock()
    first = ledger.note_seen("c1", began, {ONE: SEEN, TWO: SEEN})
    later = began + timedelta(seconds=60)
    elsewhere = replace(SEEN, entry=OngoingReassignment((4, 2, 1), (4,), (1,)))
    ledger.note_seen("c1", later, {ONE: elsewhere, TWO: replace(SEEN, topic_id="id-2")})
    kept = ledger.seen_reassignments("c1")
    assert {each.first_seen_at for each in kept.values()} == {later}
    assert {each.seen_id for each in kept.values()}.isdisjoint(
        each.seen_id for each in first.values()
    )
    assert ledger.note_seen("c1", later + timedelta(seconds=60), {}) == {}
    assert ledger.seen_reassignments("c1") == {}


def test_an_older_reading_changes_nothing(ledger: Ledger, clock: SetClock) -> None:
    began = clock()
    first = ledger.note_seen("c1", began, {ONE: SEEN})
    assert ledger.note_seen("c1", began - timedelta(seconds=1), {ONE: SEEN}) == first
    assert ledger.note_seen("c1", began - timedelta(seconds=1), {}) == {}
    assert ledger.seen_reassignments("c1") == first
