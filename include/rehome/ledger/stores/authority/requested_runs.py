"""Runs that tasks have started, and for whom; and which requests of people were carried out.

Airflow lets users write XComs, clear tasks and delete runs: a run that a task has started is what
its row says, or it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, bindparam, select, update

from rehome.domain.run.askers import Asker, RunDoor
from rehome.ledger.base.authority_models import CARRIED_OUT, NOT_WATCHED, REQUESTED_RUNS
from rehome.ledger.base.database import Database

_OF_RUN = select(REQUESTED_RUNS).where(
    REQUESTED_RUNS.c.dag_id == bindparam("dag"), REQUESTED_RUNS.c.run_id == bindparam("run")
)


@dataclass(frozen=True, slots=True)
class RequestedRun:
    """A run that a task starts, written by the step that knows who has asked for it.

    :param conf: that the run is to have, as JSON.
    :param asked_by: a person; None = none.
    :param by_dag_id, by_run_id, by_task_id: the task that has written it.
    :param begun_by: ``run_after`` of the run that began with it; None = none has.
    """

    dag_id: str
    run_id: str
    conf: Mapping[str, Any]
    door: RunDoor
    asked_by: str | None
    by_dag_id: str
    by_run_id: str
    by_task_id: str
    at: datetime
    begun_by: datetime | None = None

    @property
    def asker(self) -> Asker:
        """Who has asked for the run."""
        return Asker.through(self.door, self.asked_by)

    def has_conf(self, conf: Mapping[str, Any] | None) -> bool:
        """Whether a run has the parameters that were asked for, and no others."""
        return _as_json(conf or {}) == _as_json(self.conf)


class RequestedRunStore(Database):
    """Requests for runs, one row for each, and what has become of them."""

    def request_run(self, request: RequestedRun) -> None:
        """Write down what is about to be triggered. Of one run there is one row, and it never
        changes: a repeat does nothing.
        """
        values = {**asdict(request), "conf": json.loads(_as_json(request.conf))}
        with self.writing() as connection:
            query = select(REQUESTED_RUNS.c.run_id).where(*_keys(REQUESTED_RUNS, request))
            if connection.execute(query).first() is None:
                connection.execute(REQUESTED_RUNS.insert().values(**values))

    def requested_run(self, dag_id: str, run_id: str) -> RequestedRun | None:
        """What was asked for; None = no task has asked for the run."""
        with self.reading() as connection:
            row = connection.execute(_OF_RUN, {"dag": dag_id, "run": run_id}).mappings().first()
        return None if row is None else _record(row)

    def requested_through(self, door: RunDoor, run_id: str) -> RequestedRun | None:
        """What was asked for through a door under a run's id, whichever DAG it is for; None =
        nothing.
        """
        table = REQUESTED_RUNS.c
        query = select(REQUESTED_RUNS).where(table.door == door, table.run_id == run_id)
        with self.reading() as connection:
            row = connection.execute(query.order_by(table.at.desc())).mappings().first()
        return None if row is None else _record(row)

    def begin_requested(self, dag_id: str, run_id: str, run_after: datetime) -> bool:
        """Have a run be the one that was asked for. False = another run of the same id was: it has
        been deleted since.

        :param run_after: by which Airflow tells the two apart.
        """
        table = REQUESTED_RUNS.c
        of_run = (table.dag_id == dag_id) & (table.run_id == run_id)
        with self.writing() as connection:
            first = update(REQUESTED_RUNS).where(of_run, table.begun_by.is_(None))
            connection.execute(first.values(begun_by=run_after))
            same = select(table.run_id).where(of_run, table.begun_by == run_after)
            return connection.execute(same).first() is not None

    def carry_out(self, dag_id: str, run_id: str, clear_number: int) -> None:
        """Record that a run has carried out what it was triggered for.

        :param clear_number: how often the run was cleared before.
        """
        values = {"dag_id": dag_id, "run_id": run_id, "clear_number": clear_number}
        with self.writing() as connection:
            if self._carried_out(connection, dag_id, run_id) is None:
                connection.execute(CARRIED_OUT.insert().values(**values, at=self._clock()))

    def carried_out(self, dag_id: str, run_id: str) -> int | None:
        """How often a run had been cleared when it carried out what it was triggered for; None = it
        has not.
        """
        with self.reading() as connection:
            return self._carried_out(connection, dag_id, run_id)

    def _carried_out(self, connection: Any, dag_id: str, run_id: str) -> int | None:
        query = select(CARRIED_OUT.c.clear_number).where(
            CARRIED_OUT.c.dag_id == dag_id, CARRIED_OUT.c.run_id == run_id
        )
        clear_number: int | None = connection.execute(query).scalar_one_or_none()
        return clear_number

    def record_not_watched(self, dag_id: str, run_id: str, clusters: Collection[str]) -> None:
        """Record which clusters a run of watching could not judge; the latest attempt counts."""
        of_run = (NOT_WATCHED.c.dag_id == dag_id) & (NOT_WATCHED.c.run_id == run_id)
        rows = [
            {"dag_id": dag_id, "run_id": run_id, "cluster_id": each, "at": self._clock()}
            for each in clusters
        ]
        with self.writing() as connection:
            connection.execute(NOT_WATCHED.delete().where(of_run))
            if rows:
                connection.execute(NOT_WATCHED.insert(), rows)

    def not_watched(self, dag_id: str, run_id: str) -> list[str]:
        """The clusters that a run of watching could not judge."""
        query = select(NOT_WATCHED.c.cluster_id).where(
            NOT_WATCHED.c.dag_id == dag_id, NOT_WATCHED.c.run_id == run_id
        )
        with self.reading() as connection:
            return sorted(connection.execute(query).scalars())


def _as_json(conf: Mapping[str, Any]) -> str:
    return json.dumps(conf, sort_keys=True)


def _keys(table: Any, request: RequestedRun) -> tuple[Any, ...]:
    return table.c.dag_id == request.dag_id, table.c.run_id == request.run_id


def _record(row: RowMapping) -> RequestedRun:
    return RequestedRun(**{**row, "door": RunDoor(row["door"])})
