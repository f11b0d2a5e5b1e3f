"""Snapshots that runs have taken: what tasks read is what is written down here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import RowMapping, bindparam, delete, insert, select

from rehome.domain.clock import CLOCKS_DIFFER
from rehome.ledger.base.authority_models import TAKEN_SNAPSHOTS
from rehome.ledger.base.database import Database

_TOGETHER = 500
"""Rows that one statement deletes: SQLite bounds the parameters of a statement."""

_NEW = insert(TAKEN_SNAPSHOTS)
_NAMED = select(TAKEN_SNAPSHOTS).where(TAKEN_SNAPSHOTS.c.name == bindparam("of"))
_LAST_OF_TASK = (
    select(TAKEN_SNAPSHOTS)
    .where(
        TAKEN_SNAPSHOTS.c.dag_id == bindparam("of_dag"),
        TAKEN_SNAPSHOTS.c.run_id == bindparam("of_run"),
        TAKEN_SNAPSHOTS.c.task_id == bindparam("of_task"),
    )
    .order_by(TAKEN_SNAPSHOTS.c.taken_at.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class TakenSnapshot:
    """A snapshot in the warehouse, and the task that has taken it.

    :param name: ``cluster=<id>/taken_at=<utc>``, its place below ``snapshots/``.
    :param connection: through which it was taken.
    :param digest: SHA-256 (hex) of its ``snapshot.json``.
    """

    name: str
    cluster_id: str
    connection: str
    taken_at: datetime
    digest: str
    dag_id: str
    run_id: str
    task_id: str


class TakenSnapshotStore(Database):
    """One row for each snapshot, as long as it is kept."""

    def record_snapshot(self, snapshot: TakenSnapshot) -> None:
        """Write down a snapshot that was taken."""
        with self.writing() as connection:
            connection.execute(_NEW, asdict(snapshot))

    def taken_snapshot(self, name: str) -> TakenSnapshot | None:
        """A snapshot by its name; None = no task of this ledger has taken it."""
        with self.reading() as connection:
            row = connection.execute(_NAMED, {"of": name}).mappings().first()
        return None if row is None else _record(row)

    def snapshot_taken_by(self, dag_id: str, run_id: str, task_id: str) -> TakenSnapshot | None:
        """The last snapshot that a task of a run has taken; None = it has taken none."""
        about = {"of_dag": dag_id, "of_run": run_id, "of_task": task_id}
        with self.reading() as connection:
            row = connection.execute(_LAST_OF_TASK, about).mappings().first()
        return None if row is None else _record(row)

    def newest_snapshot(
        self, cluster_id: str, before: datetime | None = None
    ) -> TakenSnapshot | None:
        """The newest snapshot of a cluster that a task has taken; None = there is none. What was
        taken by a clock that is ahead of the ledger's is left out.

        :param before: only of those that were taken earlier; None = of all.
        """
        table = TAKEN_SNAPSHOTS.c
        query = select(TAKEN_SNAPSHOTS).where(
            table.cluster_id == cluster_id, table.taken_at <= self._clock() + CLOCKS_DIFFER
        )
        if before is not None:
            query = query.where(table.taken_at < before)
        query = query.order_by(table.taken_at.desc()).limit(1)
        with self.reading() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else _record(row)

    def forget_snapshots(self, names: Collection[str]) -> None:
        """Remove the rows of snapshots that are no longer kept."""
        left = list(names)
        with self.writing() as connection:
            while left:
                some, left = left[:_TOGETHER], left[_TOGETHER:]
                connection.execute(delete(TAKEN_SNAPSHOTS).where(TAKEN_SNAPSHOTS.c.name.in_(some)))


def _record(row: RowMapping) -> TakenSnapshot:
    return TakenSnapshot(**row)
