"""A task and its run: what it was given, and what it works with. Made once, at the task's start."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from airflow.sdk.api.client import ServerResponseError
from airflow.sdk.exceptions import AirflowRuntimeError

from rehome import installation
from rehome.domain.actions import Action
from rehome.domain.request.param_types import checked_plan_id
from rehome.domain.request.presets import fill_in
from rehome.domain.run.askers import Asker, AskerKind, RunDoor
from rehome.fleet import clusters, policies
from rehome.ledger.base.records import driver_name
from rehome.params import FORM_DEFAULTS
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.domain.request.presets import Filled
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.authority.requested_runs import RequestedRun
    from rehome.settings import Settings
    from rehome.warehouse import PlanDirectory, Warehouse

FOLLOW_UP = "follow_up"
"""The group of tasks that moves what has appeared on drained brokers; its plan's id ends so."""
_KINDS = {
    "scheduled": AskerKind.SCHEDULE,
    "asset_triggered": AskerKind.ASSET,
    "backfill": AskerKind.BACKFILL,
    "operator_triggered": AskerKind.TASK,  # by a task; no user can make such a run
}
"""Airflow's name of the kind of a run → who has asked for it."""

log = logging.getLogger(__name__)


class RunContext:
    """A task of a run. Each thing is read when it is first asked for, and once.

    :param airflow: Airflow's own context of the task, or of a callback.
    :param connection: that the task works through; None = its own, or the one that its run's
        parameters name.
    :ivar given: the parameters of the run as Airflow has them.
    :ivar in_follow_up: whether the task works on what has appeared since the run's plan was made.
    :ivar cleared: how often tasks of the run were cleared.
    """

    def __init__(self, airflow: Mapping[str, Any], connection: str | None = None) -> None:
        self.airflow = airflow
        self.dag_run: Any = airflow.get("dag_run")
        self.dag: Any = airflow.get("dag")
        self.task: Any = airflow.get("task")
        self.ti: Any = airflow.get("ti")
        self.given: Mapping[str, Any] = airflow.get("params") or {}
        own = getattr(self.task, "kafka_config_id", None) if connection is None else connection
        params_connection = self.given.get("kafka_config_id") if connection is None else None
        self.connection = str(own or params_connection or "")
        self.task_id = str(getattr(self.task, "task_id", "") or "")
        self.in_follow_up = self.task_id.startswith(f"{FOLLOW_UP}.")
        self.cleared = int(getattr(self.dag_run, "clear_number", 0) or 0)
        self._policies: dict[str, ConnectionPolicy | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give connections back."""
        if "ledger" in self.__dict__:
            self.ledger.close()

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, closed when the task ends."""
        return installation.open_ledger()

    @cached_property
    def settings(self) -> Settings:
        """The settings, with those that the clusters file gives the task's cluster."""
        return installation.settings(self.connection)

    @cached_property
    def warehouse(self) -> Warehouse:
        """Where snapshots and plans are."""
        return installation.warehouse()

    def gateway(self) -> ClusterGateway:
        """A gateway on the task's cluster; use it as a context manager."""
        through = self.connection or clusters.DEFAULT_CONNECTION
        return policies.cluster_hook(through).gateway(self.settings)

    def read_anew(self) -> None:
        """For a task that waits within one attempt: what people set may be another by now."""
        for name in ("settings", "filled"):
            self.__dict__.pop(name, None)
        self._policies.clear()

    @property
    def asked_as(self) -> AskerKind:
        """Who has asked for the run, by what kind of run Airflow says that it is."""
        run_type = getattr(self.dag_run, "run_type", "")
        return _KINDS.get(str(getattr(run_type, "value", run_type)), AskerKind.NOT_KNOWN)

    @cached_property
    def requested(self) -> RequestedRun | None:
        """What a task has written down of the run, which it was to start; None = nothing."""
        return self.ledger.requested_run(self.dag_run.dag_id, self.dag_run.run_id)

    @cached_property
    def asker(self) -> Asker:
        """Who has asked for the run. A run that a task has started says nothing by itself: Airflow
        gives it the user of the task's run, whatever that was cleared or forged to start. Nor does
        one of a backfill: another backfill may have given it other parameters since.
        """
        kind = self.asked_as
        if kind is AskerKind.TASK:
            return Asker(kind) if self.requested is None else self.requested.asker
        person = getattr(self.dag_run, "triggering_user_name", None)
        if person and kind is not AskerKind.BACKFILL:
            return Asker(AskerKind.PERSON, str(person))
        if kind is AskerKind.SCHEDULE and self._timetable is not None:
            kind = AskerKind.WINDOW
        return Asker(kind)

    @property
    def actor(self) -> str:
        """The same in words: a user's name, or what else has started the run."""
        return str(self.asker)

    @property
    def chosen(self) -> frozenset[str]:
        """The parameters that watching has chosen: no target of the cluster replaces them.

        Of other runs that is not known: a form sends every parameter, chosen or not.
        """
        requested = self.requested if self.asked_as is AskerKind.TASK else None
        if requested is None or requested.door is not RunDoor.WATCH:
            return frozenset()
        return frozenset(requested.conf)

    @cached_property
    def filled(self) -> Filled:
        """The parameters of the run, with what its preset and its cluster's targets fill in.

        :raises ClustersFileError: the clusters file cannot be used.
        """
        return clusters.fill_params(self._own_given, self.dag_run.run_after, self.chosen)

    @property
    def params(self) -> Mapping[str, Any]:
        """The same, without what has set them."""
        return self.filled.params

    @property
    def _identifying(self) -> Mapping[str, Any]:
        """Those that say which plan is the run's, with what its preset fills in. No cluster has a
        target for them: what a run has begun is found, and ended, whatever the clusters file says.
        """
        return fill_in(self._own_given, FORM_DEFAULTS, lambda: self.dag_run.run_after).params

    @property
    def _own_given(self) -> Mapping[str, Any]:
        """What the run was given, without what its DAG has for other tasks of its author's own. Of
        the rest, a name that there is not is refused.
        """
        others = set(getattr(self.dag, "params", ())) - FORM_DEFAULTS.keys()
        given = self.given
        return {name: given[name] for name in given if name not in others} if others else given

    @property
    def _timetable(self) -> MaintenanceWindowTimetable | None:
        timetable = getattr(self.dag, "timetable", None)
        return timetable if isinstance(timetable, MaintenanceWindowTimetable) else None

    @cached_property
    def window_end(self) -> datetime | None:
        """When the maintenance window of the run closes, aware UTC; None = it has no window.

        A run of the schedule has the window that it was made for; where it began late, and another
        one that closes later was open by then, that one. The data interval of any other is the
        choice of who has triggered it: it has the window that was open when it was due, or the last
        one before.
        """
        timetable, run = self._timetable, self.dag_run
        if timetable is None:
            return None
        by_schedule = self.asked_as is AskerKind.SCHEDULE
        of_schedule = run.data_interval_end if by_schedule else None
        if of_schedule is None:
            last: datetime = timetable.infer_manual_data_interval(run_after=run.run_after).end
            return last.astimezone(UTC)
        began = getattr(run, "start_date", None) or run.run_after
        newest = timetable.windows.open_at(began) if began < of_schedule else None
        end: datetime = max(of_schedule, newest.ends) if newest else of_schedule
        return end.astimezone(UTC)

    @property
    def plan_id(self) -> str:
        """The id of the task's plan, made by its run or continued: the same in every retry.

        Tasks of the group ``follow_up`` have a plan of their own, named after the run's.
        """
        first = self.first_plan_id
        return follow_up_id(first) if self.in_follow_up else first

    @property
    def first_plan_id(self) -> str:
        """The id of the plan that the run began with, made by it or continued."""
        plan_id = self._named_plan
        if plan_id is None and self.window_end is not None:
            plan_id = self.ledger.taken_up_by(self.dag_run.dag_id, self.dag_run.run_id)
        return plan_id or self.new_plan_id

    @property
    def named_plan_id(self) -> str | None:
        """The id of the plan that the task is asked to resume, or to act on.

        :raises InvalidRequestError: no plan can have this id.
        """
        return None if self.in_follow_up else self._named_plan

    @property
    def _named_plan(self) -> str | None:
        plan_id = str(self._identifying.get("plan_id") or "").strip()
        if not plan_id or self._identifying.get("action") == Action.ROLLBACK.value:
            return None
        return checked_plan_id(plan_id)

    @property
    def new_plan_id(self) -> str:
        """The id of the plan that the run makes, where it continues none."""
        run = self.dag_run
        action = str(self._identifying.get("action") or run.dag_id)
        return f"{run.run_after:%Y%m%dT%H%M%SZ}-{action}-{run_digest(run.dag_id, run.run_id)}"

    @property
    def directory(self) -> PlanDirectory:
        """The files of the task's plan."""
        return self.warehouse.plan(self.plan_id)

    def policy_for(self, plan: PlanRecord | None) -> ConnectionPolicy:
        """What may be done through the task's connection for a plan, on its cluster; None = there
        is none: on the cluster that the connection leads to. See ``policy_of_cluster``.
        """
        if plan is None:
            return self.policy_on(self.ledger.connections().get(self.connection))
        return self.policy_on(plan.cluster_id, plan)

    def policy_on(self, cluster_id: str | None, plan: PlanRecord | None = None) -> ConnectionPolicy:
        """The same on a cluster, wherever the connection was last seen to lead."""
        about = cluster_id, self.connection, plan
        return policies.policy_of_cluster(self.ledger, *about, read=self._policies)

    def driver_of(self, record: PlanRecord | None = None) -> str:
        """The run as the owner of a lease.

        :param record: of the plan to act on; a plan of an earlier Rehome knows no DAG.
        """
        dag_id = None if record is not None and record.dag_id is None else self.dag_run.dag_id
        return driver_name(dag_id, self.dag_run.run_id)

    def drives(self, record: PlanRecord) -> bool:
        """Whether the run is the one that drives the plan."""
        return self.driver_of(record) == record.driver

    def dag_paused(self, dag_id: str) -> bool | None:
        """Whether a DAG is paused in Airflow; None = Airflow knows no such DAG, or cannot be asked.

        A task has no access to Airflow's database: it asks the execution API.
        """
        ask = getattr(self.ti, "get_dag", None)  # not every Airflow has it
        if ask is None:
            return None
        try:
            return bool(ask(dag_id).is_paused)
        except (AirflowRuntimeError, ServerResponseError) as error:
            log.warning("Whether the DAG %s is paused is not known: %s", dag_id, error)
            return None


def follow_up_id(plan_id: str) -> str:
    """The id of the plan that follows a plan up within its run."""
    return f"{plan_id}-{FOLLOW_UP}"


def run_digest(dag_id: str, run_id: str) -> str:
    """What the id of a run's plan ends with."""
    return hashlib.sha256(f"{dag_id}/{run_id}".encode()).hexdigest()[:10]
