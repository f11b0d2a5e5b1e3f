"""Audit and events are append-only by the database itself, whoever writes to it."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from sqlalchemy import create_engine, insert, inspect, make_url
from sqlalchemy.exc import DBAPIError, IntegrityError

from rehome.domain.run.event_kind import EventKind
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.audit_tables import AUDIT_EXPORTS
from rehome.ledger.migrations import append_only, written_once
from rehome.ledger.store import Ledger
from tests.ledger.audit_rows import audit_of
from tests.ledger.postgresql import PostgreSQL
from tests.ledger.small_plans import make_plan

YEARS = [datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2100)]


def _fill(ledger: Ledger) -> None:
    for number in range(3):
        ledger.add_audit(AuditEntry(Decided.CLEARED, Door.CLI, user_name=f"name {number}"))
        ledger.add_event(EventKind.REQUEST, f"detail {number}")


def _covering(**values: object) -> dict[str, object]:
    rows = {"audit_rows": 0, "audit_last": 0, "events_rows": 0, "events_last": 0}
    return {"at": YEARS[0], "by": "ann", "until": YEARS[1], "digest": "d", **rows, **values}


def by_another_client(ledger: Ledger, statement: str) -> None:
    """As any other client of the database would."""
    engine = create_engine(ledger.engine.url.render_as_string(hide_password=False))
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit SET user_name = 'eve'",
        "UPDATE audit SET at = '2000-01-01' WHERE audit_id = 1",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE audit_id = 1",
        "UPDATE events SET actor = 'eve'",
        "DELETE FROM events WHERE event_id = 1",
        "UPDATE audit_exports SET removes = true",
        "DELETE FROM audit_exports",
    ],
)
def test_no_row_is_changed_or_removed(ledger: Ledger, statement: str) -> None:
    _fill(ledger)
    with ledger.writing() as connection:
        connection.execute(insert(AUDIT_EXPORTS).values(_covering(removes=False)))
    with pytest.raises(IntegrityError, match="is append-only"):
        by_another_client(ledger, statement)
    assert [row.user_name for row in audit_of(ledger)] == ["name 0", "name 1", "name 2"]
    assert [event.detail for event in ledger.events()] == ["detail 0", "detail 1", "detail 2"]
    assert [export.removes for export in ledger.audit_exports()] == [False]


@pytest.mark.parametrize("table", append_only.NUMBERS)
def test_no_table_is_emptied_in_postgresql(ledger: Ledger, table: str) -> None:
    _fill(ledger)
    with pytest.raises(DBAPIError):  # SQLite knows no such statement
        by_another_client(ledger, f"TRUNCATE {table}")
    assert len(ledger.events()) == len(audit_of(ledger)) == 3


def test_no_row_is_put_in_place_of_another(ledger: Ledger) -> None:
    _fill(ledger)
    sqlite = ledger.engine.dialect.name == "sqlite"
    row = "(event_id, at, actor, kind, detail) VALUES (1, '2000-01-01', 'eve', 'request', '')"
    one_way = f"INSERT OR REPLACE INTO events {row}"
    other_way = f"INSERT INTO events {row} ON CONFLICT (event_id) DO UPDATE SET actor = 'eve'"
    for statement in (one_way, other_way) if sqlite else (other_way,):
        with pytest.raises(IntegrityError, match="is append-only"):
            by_another_client(ledger, statement)
    assert {event.actor for event in ledger.events()} == {"rehome"}


@pytest.mark.parametrize(
    "cover",
    [
        {"removes": False, "events_last": 3},
        {"removes": True, "events_last": 1},
        {"removes": True, "events_last": 3, "until": YEARS[0]},
        {"removes": True, "events_last": 3, "since": YEARS[1]},
        {"removes": True, "audit_last": 3},
    ],
)
def test_only_what_an_export_covers_is_removed(ledger: Ledger, cover: dict[str, object]) -> None:
    _fill(ledger)
    with ledger.writing() as connection:
        connection.execute(insert(AUDIT_EXPORTS).values(_covering(**cover)))
    with pytest.raises(IntegrityError, match="removes what it has exported"):
        by_another_client(ledger, "DELETE FROM events WHERE event_id = 2")


def test_what_an_export_covers_is_removed_except_the_newest(ledger: Ledger) -> None:
    _fill(ledger)
    with ledger.writing() as connection:
        cover = _covering(removes=True, events_last=3, since=YEARS[0])
        connection.execute(insert(AUDIT_EXPORTS).values(cover))
    by_another_client(ledger, "DELETE FROM events WHERE event_id < 3")
    with pytest.raises(IntegrityError, match="is append-only"):
        by_another_client(ledger, "DELETE FROM events")
    assert [event.detail for event in ledger.events()] == ["detail 2"]


def test_a_migration_may_rewrite_a_table_and_leaves_its_triggers_in_place(ledger: Ledger) -> None:
    _fill(ledger)
    with ledger.writing() as connection, append_only.rewriting(connection, "events"):
        connection.exec_driver_sql("UPDATE events SET detail = 'anew' WHERE event_id = 1")
    assert [event.detail for event in ledger.events()] == ["anew", "detail 1", "detail 2"]
    with pytest.raises(IntegrityError, match="is append-only"):
        by_another_client(ledger, "DELETE FROM events")


def test_the_newest_schema_has_every_trigger(ledger_url: str) -> None:
    """A migration that builds such a table anew in SQLite would lose them without a word."""
    with Ledger.open(ledger_url) as ledger, ledger.reading() as connection:
        sqlite = make_url(ledger_url).get_backend_name() == "sqlite"
        names = (
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            if sqlite
            else "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
        )
        found = set(connection.exec_driver_sql(names).scalars())
        assert set(append_only.NUMBERS) <= set(inspect(connection).get_table_names())
    third = "not_replaced" if sqlite else "not_truncated"
    assert found == {
        f"{table}_{name}"
        for table in append_only.NUMBERS
        for name in ("not_changed", "not_removed", third)
    } | {
        f"{written_once.TABLE}_{name}"
        for name in (written_once.SQLITE if sqlite else written_once.POSTGRESQL)
    }


def test_a_role_that_does_not_own_the_tables_can_write_and_cannot_drop_triggers(
    postgresql: PostgreSQL,
) -> None:
    """As docs/audit.md recommends."""
    url = make_url(postgresql.new_database())
    name = f"rehome_{url.database}"
    with Ledger.open(url.render_as_string(hide_password=False)) as owners:
        for statement in (
            f"CREATE ROLE {name} LOGIN",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}",
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {name}",
        ):
            by_another_client(owners, statement)
        with Ledger.open(url.set(username=name).render_as_string(hide_password=False)) as ledger:
            _fill(ledger)
            ledger.create_plan(make_plan("p"), {}, "file:///nowhere", "run", "ann")
            export = ledger.export_audit(io.BytesIO(), "ann", None, YEARS[1])
            assert ledger.keep_export(export, remove=True) > 0
            for statement in (
                "DROP TRIGGER events_not_changed ON events",
                "ALTER TABLE events DISABLE TRIGGER ALL",
                "UPDATE events SET actor = 'eve'",
            ):
                with pytest.raises(DBAPIError, match=r"must be owner|append-only"):
                    by_another_client(ledger, statement)
        by_another_client(owners, f"DROP OWNED BY {name}")
        by_another_client(owners, f"DROP ROLE {name}")
