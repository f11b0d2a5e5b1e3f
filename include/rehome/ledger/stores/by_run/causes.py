"""What has ended or refused runs: a row for each attempt of a task that did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Executable, RowMapping, bindparam, func, insert, select, tuple_, update

from rehome.domain.run.causes.cause import Cause, kind_named, most_specific
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import RUN_CAUSES
from rehome.ledger.base.records import driver_name

_IDS = (RUN_CAUSES.c.dag_id, RUN_CAUSES.c.run_id)
_LASTS = RUN_CAUSES.c.over_at.is_(None)
_OF_RUN = (RUN_CAUSES.c.dag_id == bindparam("of_dag")) & (
    RUN_CAUSES.c.run_id == bindparam("of_run")
)
_OF_TASK = _OF_RUN & (RUN_CAUSES.c.task_id == bindparam("of_task"))
_OF_EARLIER = _OF_TASK & (RUN_CAUSES.c.attempt < bindparam("number")) & _LASTS
_SAME = select(RUN_CAUSES.c.at).where(_OF_TASK, RUN_CAUSES.c.attempt == bindparam("number"))
_EARLIER = select(RUN_CAUSES.c.at).where(_OF_EARLIER)
_OVER = update(RUN_CAUSES).where(_OF_EARLIER)
_NEW = insert(RUN_CAUSES)
_RUN = select(RUN_CAUSES).where(_OF_RUN, _LASTS)
_PLAN = select(RUN_CAUSES).where(RUN_CAUSES.c.plan_id == bindparam("of"), _LASTS)
_RUNS = select(RUN_CAUSES).where(tuple_(*_IDS).in_(bindparam("runs", expanding=True)), _LASTS)
_NEWEST = (
    select(*_IDS)
    .where(_LASTS, RUN_CAUSES.c.at > bindparam("since"))
    .group_by(*_IDS)
    .order_by(func.max(RUN_CAUSES.c.at).desc())
    .limit(bindparam("newest"))
)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run, and the cause that has led to its others.

    :param plan_id: of the plan that it is about; None = of none.
    :param connection: of its cluster; None = it names none.
    """

    dag_id: str
    run_id: str
    cause: Cause
    plan_id: str | None = None
    connection: str | None = None

    @property
    def driver(self) -> str:
        """The run as the owner of a lease."""
        return driver_name(self.dag_id, self.run_id)


class CauseStore(Database):
    """Causes are written as they come; they are over once their task has succeeded."""

    def record_cause(self, ended: EndedRun) -> None:
        """Write down why an attempt of a task has ended its run; what it has said first stays."""
        cause = ended.cause
        row = {
            "dag_id": ended.dag_id,
            "run_id": ended.run_id,
            "task_id": cause.task_id,
            "attempt": cause.attempt,
            "cleared": cause.cleared,
            "kind": cause.kind.value,
            "text": cause.text,
            "state_left": cause.left,
            "remedy": cause.remedy,
            "at": cause.at,
            "plan_id": ended.plan_id,
            "connection": ended.connection,
        }
        same = {"of_dag": ended.dag_id, "of_run": ended.run_id, "of_task": cause.task_id}
        with self.writing() as connection:
            if connection.execute(_SAME, same | {"number": cause.attempt}).first() is None:
                connection.execute(_NEW, row)

    def causes_over(self, dag_id: str, run_id: str, task_id: str, attempt: int) -> None:
        """An attempt of a task has succeeded: what earlier ones have said is over."""
        about = {"of_dag": dag_id, "of_run": run_id, "of_task": task_id, "number": attempt}
        with self.reading() as connection:
            if connection.execute(_EARLIER, about).first() is None:
                return
        with self.writing() as connection:
            connection.execute(_OVER, about | {"over_at": self._clock()})

    def cause_of(self, dag_id: str, run_id: str) -> Cause | None:
        """The most specific cause of a run; None = none was recorded, or it is over."""
        runs = self._ended_runs(_RUN, {"of_dag": dag_id, "of_run": run_id})
        return runs[0].cause if runs else None

    def ended_runs_of(self, plan_id: str) -> list[EndedRun]:
        """Runs about a plan that something has ended or refused, the last one first."""
        return self._ended_runs(_PLAN, {"of": plan_id})

    def ended_runs(self, newest: int, since: datetime) -> list[EndedRun]:
        """Runs that something has ended or refused after this moment, the last one first."""
        about = {"since": since, "newest": newest}
        with self.reading() as connection:
            runs = [(dag_id, run_id) for dag_id, run_id in connection.execute(_NEWEST, about)]
            return self._ended_runs(_RUNS, {"runs": runs}) if runs else []

    def _ended_runs(self, query: Executable, about: Mapping[str, Any]) -> list[EndedRun]:
        with self.reading() as connection:
            rows = connection.execute(query, about).mappings().all()
        by_run: dict[tuple[str, str], list[RowMapping]] = {}
        for row in rows:
            by_run.setdefault((row["dag_id"], row["run_id"]), []).append(row)
        dated_runs = [
            (max(row["at"] for row in each), _ended_run(each)) for each in by_run.values()
        ]
        return [each for _, each in sorted(dated_runs, key=lambda pair: pair[0], reverse=True)]


def _ended_run(rows: list[RowMapping]) -> EndedRun:
    row = rows[0]
    cause = most_specific(map(_cause, rows))
    assert cause is not None, "there is a row"
    return EndedRun(row["dag_id"], row["run_id"], cause, row["plan_id"], row["connection"])


def _cause(row: RowMapping) -> Cause:
    return Cause(
        kind_named(row["kind"]),
        row["text"],
        row["state_left"],
        row["remedy"],
        row["at"],
        row["task_id"],
        row["attempt"],
        row["cleared"],
    )
