"""A whole ledger as a file, and a new ledger from that, in either database."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Float, Integer, String, UniqueConstraint, insert, select

from rehome.domain.run.event_kind import EventKind
from rehome.ledger import whole
from rehome.ledger.base.models import IDENTITY, METADATA, UtcDateTime
from rehome.ledger.store import Ledger
from rehome.ledger.whole import LedgerFileError, export_ledger, import_ledger
from tests.ledger.empty_ledgers import EmptyLedgers

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def value_of(column: Any) -> Any:
    """One that any column of its type may hold; rows of tables that name others name these."""
    match column.type:
        case UtcDateTime():
            return AT
        case Boolean():
            return True
        case Float():
            return 0.1
        case JSON():
            return {"name": "ü \n", "list": [1, None, 2.5]}
        case String():
            return "1"
        case Integer():  # and all that are larger
            return 1
    raise AssertionError(column)


@pytest.fixture
def full(empty_ledgers: EmptyLedgers, tmp_path: Path) -> Iterator[Ledger]:
    """A row in each table, and another one whose columns are empty where they may be."""
    empty_ledgers.put(tmp_path / "full.db")
    with Ledger.open(f"sqlite:///{tmp_path}/full.db") as ledger:
        with ledger.writing() as connection:
            for table in METADATA.sorted_tables:
                if table is IDENTITY:
                    continue
                row = {column.name: value_of(column) for column in table.columns}
                connection.execute(insert(table).values(row))
                if not table.foreign_keys:
                    indexed = (c for index in table.indexes if index.unique for c in index.columns)
                    constraints = (c for c in table.constraints if isinstance(c, UniqueConstraint))
                    named = (c for constraint in constraints for c in constraint.columns)
                    unique = {*table.primary_key, *indexed, *named}
                    keys = {c.name: 2 if value_of(c) == 1 else "2" for c in unique}
                    needed = {c.name: value_of(c) for c in table.columns if not c.nullable}
                    connection.execute(insert(table).values({**needed, **keys}))
        yield ledger


def rows_of(ledger: Ledger) -> dict[str, list[Any]]:
    with ledger.reading() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in METADATA.sorted_tables
        }


def exported(ledger: Ledger) -> io.BytesIO:
    file = io.BytesIO()
    export_ledger(ledger, file)
    file.seek(0)
    return file


@pytest.mark.slow
def test_every_row_of_every_table_comes_through_and_so_does_the_way_back(
    full: Ledger, ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "LEDGER_ROWS_AT_ONCE", 1)
    counts = {name: len(rows) for name, rows in rows_of(full).items()}
    assert min(counts.values()) >= 1, "a table is without a row"
    with Ledger.open(ledger_url) as there:
        assert import_ledger(there, exported(full)) == counts
    with Ledger.open(ledger_url) as there:
        assert rows_of(there) == rows_of(full)
        assert there.ledger_id == full.ledger_id
        again = exported(there)
        before = len(there.events())
        there.add_event(EventKind.REQUEST, "numbers are counted on")
        assert len(there.events()) == before + 1
    with Ledger.open(f"sqlite:///{tmp_path}/back.db") as back:
        import_ledger(back, again)
        assert rows_of(back) == rows_of(full)


@pytest.mark.slow
def test_a_ledger_that_holds_anything_takes_nothing(full: Ledger, ledger_url: str) -> None:
    with Ledger.open(ledger_url) as there:
        there.add_event(EventKind.REQUEST, "")
        before = rows_of(there)
        with pytest.raises(LedgerFileError, match="is not empty: it has rows of events"):
            import_ledger(there, exported(full))
        assert rows_of(there) == before


def a_row_less(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], *lines[4:]]


def another_value(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"1"', b'"7"', 1), *lines[2:]]


def cut_off(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def in_mid_row(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-3], lines[-3][:20]]


def other_counts(lines: list[bytes]) -> list[bytes]:
    end = json.loads(lines[-1])
    end["counts"]["plans"] += 1
    return [*lines[:-1], json.dumps(end).encode()]


def another_schema(lines: list[bytes]) -> list[bytes]:
    return [json.dumps({**json.loads(lines[0]), "schema": "0099"}).encode() + b"\n", *lines[1:]]


def no_json(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], b"}" + lines[3], *lines[4:]]


def another_row(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], b"{}\n", *lines[4:]]


def nothing(lines: list[bytes]) -> list[bytes]:
    return []


def something_else(lines: list[bytes]) -> list[bytes]:
    return [b"topic,partition\n", b"orders,1\n", b"orders,2\n"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (a_row_less, "cut off or changed"),
        (another_value, "cut off or changed"),
        (cut_off, "cut off or changed"),
        (in_mid_row, "cut off or changed"),
        (other_counts, "cut off or changed"),
        (no_json, "cut off or changed"),
        (another_row, "cut off or changed"),
        (nothing, "cut off or changed"),
        (something_else, "no export of a ledger"),
        (another_schema, "with the ledger's schema 0099"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused_and_nothing_is_written(
    full: Ledger, empty_ledgers: EmptyLedgers, tmp_path: Path, change: Any, why: str
) -> None:
    file = io.BytesIO(b"".join(change(exported(full).read().splitlines(keepends=True))))
    empty_ledgers.put(tmp_path / "new.db")
    with Ledger.open(f"sqlite:///{tmp_path}/new.db") as there:
        before = rows_of(there)
        with pytest.raises(LedgerFileError, match=why):
            import_ledger(there, file)
        assert rows_of(there) == before
