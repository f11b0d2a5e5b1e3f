"""What databases hold, read by SQL alone: the ledger of Rehome, and Airflow's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from tests.e2e.soak.judge import TAKEN_BACK


class PlanRow(NamedTuple):
    """A plan in the ledger."""

    plan_id: str
    action: str
    state: str
    run_id: str
    dag_id: str
    started_at: datetime | None
    ended_at: datetime | None
    moves: int


class DatabaseSize:
    """How large a database is.

    :param url: of one on PostgreSQL.
    """

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url, poolclass=NullPool)
        self._database = make_url(url).database

    def size_bytes(self) -> int:
        """Of the database, as PostgreSQL has it on disk."""
        return int(self._all(f"SELECT pg_database_size('{self._database}')")[0][0])

    def _all(self, query: str) -> Sequence[Any]:
        with self._engine.connect() as connection:
            return connection.execute(text(query)).all()


class LedgerRows(DatabaseSize):
    """Reads of one ledger."""

    def is_made(self) -> bool:
        """Whether Rehome has made its tables: its first task does."""
        return self._all("SELECT to_regclass('run_causes')")[0][0] is not None

    def plans(self) -> list[PlanRow]:
        """All plans, oldest first."""
        rows = self._all(
            "SELECT plan_id, action, state, run_id, coalesce(dag_id, ''), started_at, ended_at, "
            "(SELECT count(*) FROM moves WHERE moves.plan_id = plans.plan_id) "
            "FROM plans ORDER BY created_at"
        )
        return [PlanRow(*row) for row in rows]

    def plan_of(self, run_id: str) -> PlanRow | None:
        """That of a run; None = it has made none."""
        return next((plan for plan in self.plans() if plan.run_id == run_id), None)

    def kinds(self) -> dict[tuple[str, str], str]:
        """Why runs have ended or were refused: DAG and run → the first cause that is its own."""
        rows = self._all(
            "SELECT dag_id, run_id, kind FROM run_causes WHERE over_at IS NULL "
            "ORDER BY kind = 'verdict', cleared DESC, at"
        )
        found: dict[tuple[str, str], str] = {}
        for dag_id, run_id, kind in rows:
            found.setdefault((dag_id, run_id), kind)
        return found

    def causes(self) -> list[tuple[str, str, str, str]]:
        """Run, task, kind and text of each cause that is not over."""
        return [
            (row[0], row[1], row[2], row[3])
            for row in self._all(
                "SELECT run_id, task_id, kind, text FROM run_causes WHERE over_at IS NULL "
                "ORDER BY at"
            )
        ]

    def owed(self) -> list[str]:
        """Settings of ours that are not known to be taken back."""
        rows = self._all(
            "SELECT plan_id, resource_type, resource_name, key, state FROM throttle_entries"
        )
        return [" ".join(map(str, row)) for row in rows if row[-1] not in TAKEN_BACK]

    def held(self) -> list[str]:
        """Owners of leases that have not run out."""
        now = datetime.now(UTC).replace(tzinfo=None)
        rows = self._all("SELECT owner, expires_at FROM leases WHERE owner <> ''")
        return [owner for owner, expires_at in rows if expires_at > now]

    def count(self, table: str) -> int:
        """Rows of a table."""
        return int(self._all(f"SELECT count(*) FROM {table}")[0][0])
