"""Runs that watching has started for findings, and what has become of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.watched.finding import About
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import WATCH_STARTS
from rehome.ledger.stores.events import write_event

_OF_RUN = select(WATCH_STARTS).where(
    WATCH_STARTS.c.dag_id == bindparam("of"), WATCH_STARTS.c.run_id == bindparam("of_run")
)

_OF_CLUSTER = (
    select(WATCH_STARTS)
    .where(WATCH_STARTS.c.cluster_id == bindparam("of"))
    .order_by(WATCH_STARTS.c.started_at.desc())
)


@dataclass(frozen=True, slots=True)
class StartRecord:
    """One run, recorded before it is triggered.

    :param opened_at: when the finding opened that it is for.
    :param deadline: until when its plan can be approved; None = no approval is asked for.
    :param ended_at: None = it has not ended, or that is not known.
    :param failed: None = not known yet.
    :param plan_id: that the run has made; None = it has made none, or that is not known yet.
    """

    dag_id: str
    run_id: str
    cluster_id: str
    kind: FindingKind
    subject: str
    opened_at: datetime
    policy: WatchPolicy
    started_at: datetime
    deadline: datetime | None = None
    ended_at: datetime | None = None
    failed: bool | None = None
    plan_id: str | None = None

    @property
    def about(self) -> About:
        """The finding that it is for: of one subject, one after the other may open."""
        return self.kind, self.subject, self.opened_at


class WatchStartStore(Database):
    """Starts, one row per run."""

    def record_watch_start(self, start: StartRecord) -> None:
        """Write down what is about to be triggered. Of one run there is one row: a repeat changes
        nothing.
        """
        with self.writing() as connection:
            if _of_run(connection, start.dag_id, start.run_id) is not None:
                return
            connection.execute(WATCH_STARTS.insert().values(**asdict(start)))
            about = f"{start.policy}: {start.kind} {start.subject}".rstrip()
            detail = f"{about}: {start.dag_id} {start.run_id}"
            write_event(
                connection,
                self._clock(),
                EventKind.RUN_STARTED_FOR_FINDING,
                detail,
                cluster_id=start.cluster_id,
            )

    def end_watch_start(
        self, dag_id: str, run_id: str, *, failed: bool, plan_id: str | None = None
    ) -> None:
        """Record how a run has ended; of a run that watching has not started, nothing.

        :param plan_id: that it has made; None = it has made none.
        """
        place = (WATCH_STARTS.c.dag_id == dag_id) & (WATCH_STARTS.c.run_id == run_id)
        values = {"ended_at": self._clock(), "failed": failed, "plan_id": plan_id}
        with self.writing() as connection:
            connection.execute(update(WATCH_STARTS).where(place).values(**values))

    def watch_start(self, dag_id: str, run_id: str) -> StartRecord | None:
        """What a run was started for; None = watching has not started it."""
        with self.reading() as connection:
            row = _of_run(connection, dag_id, run_id)
        return None if row is None else _record(row)

    def watch_starts(self, cluster_id: str) -> list[StartRecord]:
        """Every start on a cluster, the newest first."""
        with self.reading() as connection:
            rows = connection.execute(_OF_CLUSTER, {"of": cluster_id}).mappings()
            return [_record(row) for row in rows]


def _of_run(connection: Connection, dag_id: str, run_id: str) -> RowMapping | None:
    return connection.execute(_OF_RUN, {"of": dag_id, "of_run": run_id}).mappings().first()


def _record(row: RowMapping) -> StartRecord:
    values = {"kind": FindingKind(row["kind"]), "policy": WatchPolicy(row["policy"])}
    return StartRecord(**{**row, **values})
