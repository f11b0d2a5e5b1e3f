"""Prepared statements answer as SQLAlchemy's own connection does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    create_engine,
    delete,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.pool import StaticPool

from rehome.ledger.base.models import UtcDateTime
from world.running.prepared import PreparedStatements

THINGS = Table(
    "things",
    MetaData(),
    Column("name", String, primary_key=True),
    Column("size", Integer, nullable=False, default=7),
    Column("parts", JSON(none_as_null=True)),
    Column("at", UtcDateTime),
)
AT = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
NEW = insert(THINGS)
BY_NAME = select(THINGS).where(THINGS.c.name == bindparam("of"))
BY_NAMES = select(THINGS.c.name).where(THINGS.c.name.in_(bindparam("names", expanding=True)))
BY_PAIRS = select(THINGS.c.name).where(
    tuple_(THINGS.c.name, THINGS.c.size).in_(bindparam("pairs", expanding=True))
)
OF_TWO_SIZES = select(THINGS.c.name).where(THINGS.c.size.in_([1, 2])).order_by(THINGS.c.name)
GROW = update(THINGS).where(THINGS.c.name == bindparam("of")).values(size=bindparam("to"))
GONE = delete(THINGS).where(THINGS.c.size > bindparam("above"))


@pytest.fixture
def both() -> Iterator[tuple[PreparedStatements, Connection]]:
    raw = sqlite3.connect(":memory:")
    engine = create_engine("sqlite://", creator=lambda: raw, poolclass=StaticPool)
    connection = engine.connect()
    THINGS.create(connection)
    yield PreparedStatements(connection, raw), connection
    connection.close()
    raw.close()


@pytest.fixture
def made(both: tuple[PreparedStatements, Connection]) -> PreparedStatements:
    rows = [
        {"name": "a", "size": 1, "parts": {"left": [1, 2]}, "at": AT},
        {"name": "b", "size": 2, "parts": None, "at": None},
        {"name": "c", "size": 3, "parts": [], "at": AT},
    ]
    for row in rows:
        both[0].execute(NEW, row)
    return both[0]


def twice(made: PreparedStatements, statement: Any, given: Any = None) -> list[Any]:
    """By SQLAlchemy, and prepared."""
    first = made.execute(statement, given).all()
    second = made.execute(statement, given).all()
    assert first == second
    return list(second)


def test_rows_have_their_types_and_are_read_by_name_and_by_column(made: PreparedStatements) -> None:
    made.execute(BY_NAME, {"of": "a"})
    row = made.execute(BY_NAME, {"of": "a"}).mappings().one()
    assert dict(row) == {"name": "a", "size": 1, "parts": {"left": [1, 2]}, "at": AT}
    assert row[THINGS.c.at] == AT
    assert made.execute(BY_NAME, {"of": "none"}).mappings().one_or_none() is None


@pytest.mark.parametrize("names", [["a"], ["a", "c"], [], ("c", "b", "a"), {"b"}])
def test_lists_of_any_length(made: PreparedStatements, names: Any) -> None:
    twice(made, BY_NAMES, {"names": ["a", "b"]})
    assert {name for (name,) in twice(made, BY_NAMES, {"names": names})} == set(names)


@pytest.mark.parametrize("pairs", [[("a", 1)], [("a", 1), ("c", 3)], [("a", 3), ("b", 2)], []])
def test_lists_of_pairs(made: PreparedStatements, pairs: list[tuple[str, int]]) -> None:
    twice(made, BY_PAIRS, {"pairs": [("x", 0)]})
    there = {("a", 1), ("b", 2), ("c", 3)}
    found = twice(made, BY_PAIRS, {"pairs": pairs})
    assert {name for (name,) in found} == {name for name, _ in there & set(pairs)}


def test_lists_of_the_statement_itself(made: PreparedStatements) -> None:
    assert twice(made, OF_TWO_SIZES) == [("a",), ("b",)]


def test_how_many_rows_were_written(made: PreparedStatements) -> None:
    changed = [made.execute(GROW, {"of": name, "to": 9}).rowcount for name in ("a", "x", "b")]
    assert changed == [1, 0, 1]
    made.execute(GONE, {"above": 100})
    assert made.execute(GONE, {"above": 8}).rowcount == 2
    assert made.execute(select(THINGS.c.name)).all() == [("c",)]


def test_values_that_a_column_gives_itself_are_left_to_sqlalchemy(
    made: PreparedStatements,
) -> None:
    for name in ("x", "y", "z"):
        made.execute(NEW, {"name": name})
    assert made.execute(BY_NAME, {"of": "z"}).mappings().one()["size"] == 7


def test_what_sqlite_refuses_is_an_error_of_sqlalchemy(made: PreparedStatements) -> None:
    with pytest.raises(IntegrityError, match="UNIQUE"):
        made.execute(NEW, {"name": "a", "size": 1, "parts": None, "at": None})


def test_a_value_that_is_missing_is_an_error_of_sqlalchemy(made: PreparedStatements) -> None:
    twice(made, BY_NAME, {"of": "a"})
    for _ in range(2):
        with pytest.raises(StatementError):
            made.execute(BY_NAME, {})


def test_statements_that_are_made_for_one_time_are_not_kept(made: PreparedStatements) -> None:
    before = list(made.kept)
    for size in range(1, 400):
        found = made.execute(select(THINGS.c.name).where(THINGS.c.size == size)).all()
        assert len(found) == (1 if size < 4 else 0)
    assert made.kept == before
