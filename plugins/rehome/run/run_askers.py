"""Who has asked for a run: by what Airflow has recorded of it, or by what a task has written down
before it has started the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.domain.clock import utc_now
from rehome.domain.run.askers import STARTED_DAG, Asker, AskerKind, RunDoor
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.authority.requested_runs import RequestedRun

BY_A_TASK = "operator_triggered"
"""What Airflow calls a run that a task has started; no user can make one."""
BY_SCHEDULE = "scheduled"
BY_BACKFILL = "backfill"
_KINDS = {
    BY_SCHEDULE: AskerKind.SCHEDULE,
    "asset_triggered": AskerKind.ASSET,
    BY_BACKFILL: AskerKind.BACKFILL,
    BY_A_TASK: AskerKind.TASK,
}


def asker_of(context: Context | Mapping[str, Any]) -> Asker:
    """Who has asked for the run. A run that a task has started says nothing by itself: Airflow
    gives it the user of the task's run, whatever that was cleared or forged to start. Nor does one
    of a backfill: another backfill may have given it other parameters since.
    """
    run = context["dag_run"]
    if is_by_a_task(run):
        requested = request_for(run)
        return Asker(AskerKind.TASK) if requested is None else requested.asker
    person = getattr(run, "triggering_user_name", None)
    if person and not is_by_backfill(run):
        return Asker(AskerKind.PERSON, str(person))
    kind = _KINDS.get(_type_of(run), AskerKind.NOT_KNOWN)
    timetable = getattr(context.get("dag"), "timetable", None)
    if kind is AskerKind.SCHEDULE and isinstance(timetable, MaintenanceWindowTimetable):
        kind = AskerKind.WINDOW
    return Asker(kind)


def request_run(
    context: Context | Mapping[str, Any],
    ledger: Ledger,
    door: RunDoor,
    run_id: str,
    conf: Mapping[str, Any],
    dag_id: str = STARTED_DAG,
) -> None:
    """Write down a run that is to be started, in the name of who has asked for the task's own run.

    :param dag_id: whose run it is to be.
    """
    from rehome.ledger.stores.authority.requested_runs import RequestedRun

    run, asker = context["dag_run"], asker_of(context)
    ledger.request_run(
        RequestedRun(
            dag_id,
            run_id,
            conf,
            door,
            asker.person if asker.kind is AskerKind.PERSON else None,
            run.dag_id,
            run.run_id,
            context["task"].task_id,
            utc_now(),
        )
    )


def chosen_in(run: Any) -> frozenset[str]:
    """The parameters of a run that watching has chosen: no target of the cluster replaces them.

    Of other runs it is not known: a form sends every parameter, chosen or not.
    """
    requested = request_for(run) if is_by_a_task(run) else None
    if requested is None or requested.door is not RunDoor.WATCH:
        return frozenset()
    return frozenset(requested.conf)


def is_by_a_task(run: Any) -> bool:
    """Whether a task has started the run."""
    return _type_of(run) == BY_A_TASK


def is_by_schedule(run: Any) -> bool:
    """Whether Airflow's scheduler has made the run, by the DAG's timetable."""
    return _type_of(run) == BY_SCHEDULE


def is_by_backfill(run: Any) -> bool:
    """Whether the run is of a backfill, or was made one: that changes its parameters, and leaves
    it the user who has triggered it before.
    """
    return _type_of(run) == BY_BACKFILL


def request_for(run: Any) -> RequestedRun | None:
    """What a task has written down of a run that it was to start; None = nothing."""
    url = installation.settings().ledger_url
    with suppress(KeyError):
        return _requested_run(url, str(run.dag_id), str(run.run_id))
    return None


def _type_of(run: Any) -> str:
    """Airflow's name of the kind of a run: as text, its enumeration has another one."""
    run_type = getattr(run, "run_type", "")
    return str(getattr(run_type, "value", run_type))


@lru_cache(maxsize=64)
def _requested_run(url: str, dag_id: str, run_id: str) -> RequestedRun:
    """A row never changes in what is asked here, so it is read once; none is looked for again.

    :raises KeyError: there is none.
    """
    from rehome.ledger.store import Ledger

    with Ledger.open(url) as ledger:
        found = ledger.requested_run(dag_id, run_id)
    if found is None:
        raise KeyError(run_id)
    return found
