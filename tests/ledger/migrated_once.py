"""New SQLite ledgers of tests get the schema that migrations have made once, by its statements.

A plugin. What upgrades a ledger that holds something runs the migrations themselves.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection

SCHEMA = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"


class MigratedOnce:
    """Takes the place of ``alembic.command.upgrade``."""

    def __init__(self, upgrade: Any) -> None:
        self._upgrade = upgrade
        self._made: dict[
            str, tuple[list[str], str]
        ] = {}  # statements and version, by what is asked

    def __call__(self, config: Any, revision: str, **options: Any) -> None:
        connection: Connection | None = config.attributes.get("connection")
        if connection is None:  # Airflow's database
            self._upgrade(config, revision, **options)
            return
        run = connection.exec_driver_sql
        is_new = connection.dialect.name == "sqlite" and not run(SCHEMA).first()
        if not (is_new and revision in self._made):
            self._upgrade(config, revision)
            if is_new:
                statements = [str(sql) for (sql,) in run(SCHEMA)]
                (version,) = run("SELECT version_num FROM alembic_version").one()
                self._made[revision] = (statements, version)
            return
        statements, version = self._made[revision]
        for statement in statements:
            run(statement)
        run("INSERT INTO alembic_version VALUES (?)", (version,))
        run("INSERT INTO identity VALUES (?)", (uuid.uuid4().hex,))


@pytest.fixture(scope="session", autouse=True)
def migrated_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "upgrade", MigratedOnce(command.upgrade))
        yield
