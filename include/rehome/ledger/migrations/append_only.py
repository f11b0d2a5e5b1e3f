"""Triggers that make a table of the ledger append-only, in the database itself.

Rows of ``audit`` and ``events`` are never changed, and are removed only where an export covers
them: a row of ``audit_exports`` that is itself never changed or removed. The newest row of each
stays, for SQLite would give its number away again.

A migration that has to rewrite such a table, or to build it anew (as Alembic's batch mode does in
SQLite, which loses triggers without a word), does so within :func:`rewriting`. A test sees that
the newest schema has all triggers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

NUMBERS = {"audit": "audit_id", "events": "event_id", "audit_exports": "export_id"}
"""The tables, and the number that each row has."""
NEVER_REMOVED = "audit_exports"
_SQLITE = ("not_changed", "not_replaced", "not_removed")
_POSTGRESQL = ("not_changed", "not_truncated", "not_removed")


@contextmanager
def rewriting(connection: Connection, table: str) -> Iterator[None]:
    """For a migration: the table without its triggers, in the migration's own transaction."""
    drop(connection, table)
    yield
    create(connection, table)


def create(connection: Connection, table: str) -> None:
    """Make the table append-only."""
    sqlite = connection.dialect.name == "sqlite"
    for text in _in_sqlite(table) if sqlite else _in_postgresql(table):
        connection.exec_driver_sql(text)


def drop(connection: Connection, table: str) -> None:
    """Undo :func:`create`."""
    if connection.dialect.name == "sqlite":
        for name in _SQLITE:
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table}_{name}")
        return
    for name in _POSTGRESQL:
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {table}_{name} ON {table}")
    connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {table}_refuse(), {table}_remove()")


def _refusal(table: str, to_remove: bool = False) -> str:
    if to_remove and table != NEVER_REMOVED:
        return f"{table} is append-only: `rehome audit export` removes what it has exported"
    return f"{table} is append-only: no row is changed or removed"


def _in_sqlite(table: str) -> Iterator[str]:
    key, refuse = NUMBERS[table], f"BEGIN SELECT RAISE(ABORT, '{_refusal(table)}'); END"
    yield f"CREATE TRIGGER {table}_not_changed BEFORE UPDATE ON {table} {refuse}"
    # What REPLACE removes to make room is no DELETE to SQLite's triggers.
    yield f"""
        CREATE TRIGGER {table}_not_replaced BEFORE INSERT ON {table}
        WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key}) {refuse}
    """
    if table == NEVER_REMOVED:
        yield f"CREATE TRIGGER {table}_not_removed BEFORE DELETE ON {table} {refuse}"
        return
    yield f"""
        CREATE TRIGGER {table}_not_removed BEFORE DELETE ON {table}
        WHEN OLD.{key} = (SELECT max({key}) FROM {table}) OR NOT EXISTS (
            SELECT 1 FROM {NEVER_REMOVED} WHERE removes AND (since IS NULL OR OLD.at >= since)
            AND OLD.at < until AND OLD.{key} <= {table}_last
        )
        BEGIN SELECT RAISE(ABORT, '{_refusal(table, to_remove=True)}'); END
    """


def _in_postgresql(table: str) -> Iterator[str]:
    key, code = NUMBERS[table], "USING ERRCODE = 'integrity_constraint_violation'"
    yield f"""
        CREATE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '{_refusal(table)}' {code}; END $$
    """
    yield f"""
        CREATE TRIGGER {table}_not_changed BEFORE UPDATE ON {table}
        FOR EACH ROW EXECUTE FUNCTION {table}_refuse()
    """
    yield f"""
        CREATE TRIGGER {table}_not_truncated BEFORE TRUNCATE ON {table}
        FOR EACH STATEMENT EXECUTE FUNCTION {table}_refuse()
    """
    if table != NEVER_REMOVED:
        # It reads the tables of its own schema, whatever the session looks through.
        yield f"""
            CREATE FUNCTION {table}_remove() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE own text := quote_ident(TG_TABLE_SCHEMA); newest bigint; covered boolean;
            BEGIN
                EXECUTE 'SELECT max({key}) FROM ' || own || '.{table}' INTO newest;
                EXECUTE 'SELECT EXISTS (SELECT 1 FROM ' || own || '.{NEVER_REMOVED} WHERE removes '
                    'AND (since IS NULL OR $1 >= since) AND $1 < until AND $2 <= {table}_last)'
                    INTO covered USING OLD.at, OLD.{key};
                IF OLD.{key} = newest OR NOT covered THEN
                    RAISE EXCEPTION '{_refusal(table, to_remove=True)}' {code};
                END IF;
                RETURN OLD;
            END $$
        """
    yield f"""
        CREATE TRIGGER {table}_not_removed BEFORE DELETE ON {table}
        FOR EACH ROW EXECUTE FUNCTION {table}_{"refuse" if table == NEVER_REMOVED else "remove"}()
    """
