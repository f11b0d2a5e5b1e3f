"""Rows of some partitions are found by them, however many a plan has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Engine

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import MoveState, Settle
from rehome.ledger.base.paging import MoveFilter
from rehome.ledger.base.partition_chunks import chunks
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan, move
from tests.ledger.stores.test_moves import seen

PARTITION = TopicPartition("t", 0)
BY_PARTITION = "plan_id=? AND topic=? AND partition=?"
_OF_MANY = re.compile(
    r"\b(moves|reassignments|replica_statuses) USING (?:COVERING )?INDEX \S+ \((.*)\)"
)


def test_chunks_have_all_partitions_once_and_name_their_topics_and_numbers() -> None:
    partitions = {TopicPartition(f"t{n % 7}", n) for n in range(450)}
    made = list(chunks(partitions))
    assert [len(each["places"]) for each in made] == [200, 200, 50]
    assert {place for each in made for place in each["places"]} == partitions
    for each in made:
        assert {topic for topic, _ in each["places"]} == set(each["topics"])
        assert {number for _, number in each["places"]} == set(each["numbers"])
    assert not list(chunks([]))


@pytest.fixture
def lookups(sqlite_url: str) -> Callable[[Callable[[Ledger], object]], set[tuple[str, ...]]]:
    """How SQLite finds rows of the tables with a row for each move, in what a call asks of it."""
    moves = [move("t", number, (1, 2), (3, 2), 100) for number in range(3)]
    plan = make_plan("p1", *moves)

    def of(call: Callable[[Ledger], object]) -> set[tuple[str, ...]]:
        asked: list[tuple[str, Any]] = []

        def note(_: Any, __: Any, statement: str, parameters: Any, *more: Any) -> None:
            if statement.startswith(("SELECT", "UPDATE")):
                asked.append((statement, parameters))

        with Ledger.open(sqlite_url) as ledger:
            ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
            ledger.approve("p1", plan.plan_hash, "ann")
            ledger.claim("p1")
            ledger.admit("p1", moves, seen(plan), 1000)
            event.listen(Engine, "before_cursor_execute", note)
            try:
                call(ledger)
            finally:
                event.remove(Engine, "before_cursor_execute", note)
        with create_engine(sqlite_url).connect() as connection:
            return {
                match.groups()
                for statement, parameters in asked
                for given in (parameters if isinstance(parameters, list) else [parameters])
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)
                if (match := _OF_MANY.search(row.detail))
            }

    return of


def test_moves_that_are_settled_are_found_by_their_partitions(lookups: Any) -> None:
    """By the times of statuses, to settle 5,000 moves took seconds of one transaction."""
    found = lookups(lambda ledger: ledger.settle_all("p1", [Settle(PARTITION, MoveState.DONE)]))
    assert found == {
        (name, BY_PARTITION) for name in ("moves", "reassignments", "replica_statuses")
    }


def test_moves_that_are_sent_are_found_by_their_partitions(lookups: Any) -> None:
    found = lookups(lambda ledger: ledger.mark_sent("p1", [PARTITION]))
    assert found == {("reassignments", BY_PARTITION)}


def test_a_page_of_moves_finds_their_starts_and_replicas_by_their_partitions(lookups: Any) -> None:
    found = lookups(lambda ledger: ledger.move_page("p1", MoveFilter(), 0, 2))
    assert {(name, how) for name, how in found if name != "moves"} == {
        ("reassignments", BY_PARTITION),
        ("replica_statuses", BY_PARTITION),
    }
