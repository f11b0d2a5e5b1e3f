"""What tasks have written to the warehouse: others may write there, but not here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, insert, select

from rehome.domain.clock import Clock
from rehome.ledger.base.approval_tables import DRY_RUNS, RECORDED_FILES
from rehome.ledger.base.database import Database

_DRY_RUN = "dry_run.json"
_LAST = (
    select(DRY_RUNS)
    .where(
        DRY_RUNS.c.plan_id == bindparam("of"),
        DRY_RUNS.c.dag_id == bindparam("of_dag"),
        DRY_RUNS.c.run_id == bindparam("of_run"),
    )
    .order_by(DRY_RUNS.c.dry_run_id.desc())
    .limit(1)
)
_FILES = (
    select(RECORDED_FILES.c.name, RECORDED_FILES.c.digest)
    .where(RECORDED_FILES.c.plan_id == bindparam("of"))
    .order_by(RECORDED_FILES.c.file_id)
)
_NEW_DRY_RUN = insert(DRY_RUNS)
_DRY_RUNS = (
    select(DRY_RUNS).where(DRY_RUNS.c.plan_id == bindparam("of")).order_by(DRY_RUNS.c.dry_run_id)
)
_NEW_FILES = insert(RECORDED_FILES)


@dataclass(frozen=True, slots=True)
class DryRun:
    """That a plan was tried out by a run, and how it went.

    :param rate_bytes_per_s: the throttle that was tried; ``rate_cause``: why it is this one, "" =
        it was asked for.
    :param digest: SHA-256 of the bytes of ``dry_run.json``.
    :param moves: that were tried out: of a plan that goes on, those that are left; None = not
        known, an earlier Rehome made it.
    :param least_s, most_s: the predicted time of these; None = they would never end.
    """

    plan_id: str
    dag_id: str
    run_id: str
    ok: bool
    rate_bytes_per_s: int
    rate_cause: str
    digest: str
    tried_at: datetime | None = None
    moves: int | None = None
    least_s: float | None = None
    most_s: float | None = None


class WrittenFileStore(Database):
    """Dry runs, and the digests of files that count only as they were written."""

    def record_dry_run(self, dry_run: DryRun) -> None:
        """Write down that a plan was tried out."""
        with self.writing() as connection:
            values = asdict(dry_run) | {"tried_at": self._clock()}
            connection.execute(_NEW_DRY_RUN, values)

    def last_dry_run(self, plan_id: str, dag_id: str, run_id: str) -> DryRun | None:
        """The last time that a run has tried a plan out; None = never, or by an earlier Rehome."""
        of_run = {"of": plan_id, "of_dag": dag_id, "of_run": run_id}
        with self.reading() as connection:
            row = connection.execute(_LAST, of_run).mappings().one_or_none()
        return None if row is None else _dry_run(row)

    def dry_runs(self, plan_id: str) -> list[DryRun]:
        """Of a plan, oldest first."""
        with self.reading() as connection:
            rows = connection.execute(_DRY_RUNS, {"of": plan_id}).mappings().all()
        return [_dry_run(row) for row in rows]

    def record_files(self, plan_id: str, digests: Mapping[str, str]) -> None:
        """Write down what files of a plan hold.

        :param digests: name → SHA-256 of its bytes.
        """
        with self.writing() as connection:
            write_files(connection, plan_id, digests, self._clock)

    def recorded_files(self, plan_id: str) -> dict[str, str]:
        """Name of each file of a plan → SHA-256 of what was last written by a task."""
        with self.reading() as connection:
            rows = connection.execute(_FILES, {"of": plan_id})
            return {row.name: row.digest for row in rows}

    def known_files(self, plan_id: str) -> dict[str, str]:
        """The same, with what the newest dry run of the plan has written, whichever run made it."""
        newest = select(DRY_RUNS.c.digest).where(DRY_RUNS.c.plan_id == plan_id)
        newest = newest.order_by(DRY_RUNS.c.dry_run_id.desc()).limit(1)
        with self.reading() as connection:
            dry_run = connection.execute(newest).scalar_one_or_none()
        files = self.recorded_files(plan_id)
        return files if dry_run is None else {**files, _DRY_RUN: dry_run}


def _dry_run(row: RowMapping) -> DryRun:
    return DryRun(**{field.name: row[field.name] for field in fields(DryRun)})


def write_files(
    connection: Connection, plan_id: str, digests: Mapping[str, str], clock: Clock
) -> None:
    """Within a transaction that writes what the files are of, too."""
    now = clock()
    rows = [
        {"plan_id": plan_id, "name": name, "digest": digest, "recorded_at": now}
        for name, digest in digests.items()
    ]
    if rows:
        connection.execute(_NEW_FILES, rows)
