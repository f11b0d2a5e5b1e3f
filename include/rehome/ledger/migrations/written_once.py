"""Triggers that keep what was asked of people, and what they have answered, in the database itself.

A row of ``questions`` is never removed, and what was asked in it never changes. Its answer is
written once: into a row that has none.

A migration that has to rewrite the table, or to build it anew, does so within :func:`rewriting`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

TABLE, KEY = "questions", "question_id"
ASKED = (
    KEY,
    "plan_id",
    "cluster_id",
    "dag_id",
    "run_id",
    "task_id",
    "try_number",
    "ti_id",
    "terms",
    "digest",
    "shown",
    "plan_asked_by",
    "run_asked_by",
    "terms_asked_by",
    "not_asked",
    "shown_at",
)
"""Columns that no statement may set in a row that is there; the others are the answer's."""
SQLITE = ("asked", "answered", "not_replaced", "not_removed")
POSTGRESQL = ("asked", "answered", "not_truncated", "not_removed")
"""Names of the triggers, after that of the table."""
_REFUSAL = f"{TABLE} are written once: neither question nor answer is changed or removed"


@contextmanager
def rewriting(connection: Connection) -> Iterator[None]:
    """For a migration: the table without its triggers, in the migration's own transaction."""
    drop(connection)
    yield
    create(connection)


def create(connection: Connection) -> None:
    """Have questions and answers written once."""
    sqlite = connection.dialect.name == "sqlite"
    for text in _in_sqlite() if sqlite else _in_postgresql():
        connection.exec_driver_sql(text)


def drop(connection: Connection) -> None:
    """Undo :func:`create`."""
    if connection.dialect.name == "sqlite":
        for name in SQLITE:
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {TABLE}_{name}")
        return
    for name in POSTGRESQL:
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {TABLE}_{name} ON {TABLE}")
    connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {TABLE}_refuse()")


def _in_sqlite() -> Iterator[str]:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
    yield f"CREATE TRIGGER {TABLE}_asked BEFORE UPDATE OF {', '.join(ASKED)} ON {TABLE} {refuse}"
    yield f"""
        CREATE TRIGGER {TABLE}_answered BEFORE UPDATE ON {TABLE}
        WHEN OLD.answer IS NOT NULL {refuse}
    """
    # What REPLACE removes to make room is no DELETE to SQLite's triggers.
    yield f"""
        CREATE TRIGGER {TABLE}_not_replaced BEFORE INSERT ON {TABLE}
        WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE {KEY} = NEW.{KEY}) {refuse}
    """
    yield f"CREATE TRIGGER {TABLE}_not_removed BEFORE DELETE ON {TABLE} {refuse}"


def _in_postgresql() -> Iterator[str]:
    yield f"""
        CREATE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '{_REFUSAL}' USING ERRCODE = 'integrity_constraint_violation';
        END $$
    """
    refuse = f"EXECUTE FUNCTION {TABLE}_refuse()"
    yield f"""
        CREATE TRIGGER {TABLE}_asked BEFORE UPDATE OF {", ".join(ASKED)} ON {TABLE}
        FOR EACH ROW {refuse}
    """
    yield f"""
        CREATE TRIGGER {TABLE}_answered BEFORE UPDATE ON {TABLE}
        FOR EACH ROW WHEN (OLD.answer IS NOT NULL) {refuse}
    """
    yield f"""
        CREATE TRIGGER {TABLE}_not_truncated BEFORE TRUNCATE ON {TABLE}
        FOR EACH STATEMENT {refuse}
    """
    yield f"""
        CREATE TRIGGER {TABLE}_not_removed BEFORE DELETE ON {TABLE}
        FOR EACH ROW {refuse}
    """
