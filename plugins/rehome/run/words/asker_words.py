"""Why nobody who may ask stands behind a run, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.domain.text import minute_text
from rehome.run.causes.task_end import EndTexts, TaskEnd
from rehome.run.causes.task_end import TaskReason as R

if TYPE_CHECKING:
    from rehome.ledger.base.records import PlanRecord

TRIGGER_ANEW = (
    "Trigger a new run on Rehome's page, in Airflow's UI or through its API: then the user who "
    "triggers it has asked for it"
)
OWN_PLAN_FALSE = "Windows of this cluster make no plan of their own, for own_plan is false"
OWN_PLAN_NOT_SAID = (
    "Windows of this cluster make no plan of their own, for it had none before, and own_plan is "
    "not true"
)


def _at(end: TaskEnd) -> str:
    return "" if end.at is None else minute_text(end.at)


def own_plan_text(stated: bool | None) -> str:
    """Why windows make no plan of their own: their settings say so, or nobody has decided."""
    return OWN_PLAN_NOT_SAID if stated is None else OWN_PLAN_FALSE


def idle_text(active: PlanRecord | None, stated: bool | None) -> str:
    """The note of a run of a window that had nothing to do.

    :param active: the plan that holds the cluster; None = none does.
    """
    why = "no plan waits for this window"
    if active is not None:
        why = (
            f"plan {active.plan_id} is {active.state} on this cluster, and this window does not "
            "resume it"
        )
    return f"Nothing to do: {why}. {own_plan_text(stated)}."


ASKER_TEXTS: EndTexts = {
    R.CARRIED_OUT: lambda end: (
        f"What was asked for with run {end.run_id} was carried out before, by a run of the same id "
        "that has been deleted since"
    ),
    R.CONTROL_CARRIED_OUT: lambda end: (
        f"What {end.who} has asked for with run {end.run_id} was carried out once, and the run was "
        "cleared since: it is not carried out again"
    ),
    R.OF_BACKFILL: lambda end: (
        f"Run {end.run_id} is of a backfill. Windows that are over are not made up for, and who "
        "chose the parameters of such a run is not known"
    ),
    R.CLEARED_TOO_LATE: lambda end: (
        f"Run {end.run_id} was asked for by {end.who}, for {_at(end)}, and was cleared when that "
        f"was over: a request counts for {end.hours:g} hours"
    ),
    R.ASKED_TOO_LONG_AGO: lambda end: (
        f"{end.who} has asked for run {end.run_id} at {_at(end)}, which is too long ago: a request "
        f"counts for {end.hours:g} hours"
    ),
    R.STARTED_BY_TASK: lambda end: (
        f"Run {end.run_id} was started by a task, and the ledger does not know who has asked for "
        "it: a task of another DAG has started it, or an earlier Rehome"
    ),
    R.CONTROL_BY_TASK: lambda end: (
        f"Run {end.run_id} was started by a task: who asks for {end.said} is not known"
    ),
    R.START_NOT_ASKED: lambda end: (
        f"The ledger has no request by which {end.place} is to start run {end.run_id}: a state or "
        "an XCom of its tasks was changed by hand, or the ledger is another one"
    ),
    R.ID_OF_ANOTHER: lambda end: (
        f"Run {end.run_id} was triggered by hand, but its run id is that of a run which "
        f"{end.place} was to start"
    ),
    R.OTHER_PARAMETERS: lambda end: (
        f"The parameters of run {end.run_id} are not those that {end.who} has asked for by "
        f"{end.place}"
    ),
    R.LOWERS_REPLICATION: lambda end: (
        f"Plan {end.plan_id} takes replicas away ({end.said}), and no person has asked for it: a "
        "run that starts by itself may not do that"
    ),
    R.NO_OWN_PLAN: lambda end: own_plan_text(False if end.count else None),
}
ASKER_STEPS: EndTexts = {
    R.CARRIED_OUT: TRIGGER_ANEW,
    R.CONTROL_CARRIED_OUT: "To ask for it anew, trigger a new run of control_reassignment. If only "
    "the task `start` of this run has failed, clear that task alone",
    R.OF_BACKFILL: TRIGGER_ANEW,
    R.CLEARED_TOO_LATE: TRIGGER_ANEW,
    R.ASKED_TOO_LONG_AGO: "Ask for it anew, on Rehome's page or by a new run",
    R.STARTED_BY_TASK: TRIGGER_ANEW,
    R.CONTROL_BY_TASK: TRIGGER_ANEW,
    R.START_NOT_ASKED: "Trigger a new run of that DAG: it records what you ask for",
    R.ID_OF_ANOTHER: f"{TRIGGER_ANEW}. Give it no run id: Airflow chooses one",
    R.OTHER_PARAMETERS: TRIGGER_ANEW,
    R.LOWERS_REPLICATION: "Trigger reassign_partitions by hand, or have the run ask for approval",
    R.NO_OWN_PLAN: "Trigger the DAG, or reassign_partitions, by hand: then it makes a plan.",
}
