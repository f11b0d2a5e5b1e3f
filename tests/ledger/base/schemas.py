"""Schemas of ledgers: made up to a migration, and read as values that can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, inspect, make_url

from rehome.ledger.base import database

MIGRATIONS = Path(database.__file__).parents[1] / "migrations"

SQLITE_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
POSTGRESQL_TRIGGERS = """
    SELECT tgname, pg_get_triggerdef(t.oid) || E'\\n' || pg_get_functiondef(t.tgfoid)
    FROM pg_trigger t WHERE NOT tgisinternal
"""


def schema_of(connection: Connection) -> dict[str, Any]:
    """Tables with their columns, keys and indexes; triggers with their text.

    The order of columns and the names of constraints are left out: no statement of Rehome's depends
    on them.
    """
    found, dialect = inspect(connection), connection.dialect
    tables = {}
    for table in sorted(found.get_table_names()):
        tables[table] = {
            "columns": {
                each["name"]: [
                    each["type"].compile(dialect),
                    "null" if each["nullable"] else "not null",
                    _default(each.get("default"), table),
                ]
                for each in sorted(found.get_columns(table), key=lambda column: column["name"])
            },
            "primary key": found.get_pk_constraint(table)["constrained_columns"],
            "foreign keys": sorted(
                [each["constrained_columns"], each["referred_table"], each["referred_columns"]]
                for each in found.get_foreign_keys(table)
            ),
            "unique": sorted(each["column_names"] for each in found.get_unique_constraints(table)),
            "checks": sorted(each["sqltext"] for each in found.get_check_constraints(table)),
            "indexes": sorted(
                [each["name"], each["column_names"], bool(each["unique"])]
                for each in found.get_indexes(table)
                if not each.get("duplicates_constraint")
            ),
        }
    sqlite = dialect.name == "sqlite"
    triggers = connection.exec_driver_sql(SQLITE_TRIGGERS if sqlite else POSTGRESQL_TRIGGERS)
    schema = connection.exec_driver_sql("SELECT current_schema()").scalar() if not sqlite else ""
    texts = {
        name: " ".join(str(text).replace(f"{schema}.", "").split())
        for name, text in triggers.tuples()
    }
    return {"tables": tables, "triggers": dict(sorted(texts.items()))}


def _default(text: Any, table: str) -> str | None:
    """A number that the database counts has the name of its sequence, which is the table's."""
    if text is None:
        return None
    return "counted" if str(text).startswith("nextval(") else str(text)


def at_revision(ledger_url: str, revision: str, *statements: str) -> dict[str, Any]:
    """A ledger as an older Rehome has left it, with what these statements write; its schema."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    url = make_url(ledger_url)
    if url.get_backend_name() == "sqlite":
        Path(str(url.database)).parent.mkdir(parents=True)
    engine = create_engine(url)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for statement in statements:
            connection.exec_driver_sql(statement)
        found = schema_of(connection)
    engine.dispose()
    return found
