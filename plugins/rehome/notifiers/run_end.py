"""Notifies people how a run ended: the plan, the state left, the next step."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from rehome import alerting, installation
from rehome.domain.clock import utc_now
from rehome.domain.request.request import FOLLOWED_UP_ACTIONS
from rehome.errors import RehomeError
from rehome.fleet import attempts, clusters, paused_plan
from rehome.run import drivers, plan_ids, plan_of_run
from rehome.run.authority import own_plan
from rehome.run.causes import recorded

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.account.account import PlanAccount
    from rehome.alerts.run_end import RunEnd
    from rehome.domain.run.causes.cause import Cause
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger

log = logging.getLogger(__name__)


class RehomeNotifier(BaseNotifier):
    """A DAG's failure and success callback. It says what it could not find out.

    Runs that never started have neither a plan nor params: the context is read with care.

    :param ended: ``failed`` or ``succeeded``.
    :param makes_plan: whether the DAG's runs change the cluster by a plan, and only by one.
    """

    def __init__(self, ended: str, *, makes_plan: bool = False) -> None:
        super().__init__()
        self.ended = ended
        self.makes_plan = makes_plan

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Nothing to render: a scheduler's serialized DAG has no environment to render with."""

    def notify(self, context: Context) -> None:
        """Send it once, through every channel; what ends with the run is over."""
        with clusters.working_through(_connection(context)):
            self._tell(context, self._end(context))

    def _tell(self, context: Context, end: RunEnd) -> None:
        from rehome.alerts.due_alerts import OVER_WITH_ITS_RUN

        try:
            with installation.open_ledger() as ledger:
                for plan in end.plans:
                    ledger.close_alerts(plan.record.plan_id, *OVER_WITH_ITS_RUN)
                ledger.end_watch_start(
                    end.dag_id,
                    end.run_id,
                    failed=self.ended == "failed",
                    plan_id=None if end.plan is None else end.plan.record.plan_id,
                )
                end = replace(
                    end,
                    cause=self._cause(context, ledger),
                    of_finding=attempts.of_run(ledger, end.dag_id, end.run_id, utc_now()),
                )
                if not self._was_idle(context, end, ledger):
                    alerting.raise_alerts(ledger, [end.alert()])
        except RehomeError as error:
            log.error("Whether this was sent before is not known: %s", error)
            end = replace(end, cause=self._cause(context, None))
            alerting.send_unrecorded(end.alert())

    def _was_idle(self, context: Context, end: RunEnd, ledger: Ledger) -> bool:
        """Whether the run has succeeded because there was nothing to do."""
        without = self.ended == "succeeded" and end.plan is None and not end.unknown
        return without and self.makes_plan and not own_plan.may_be_made(context, ledger)

    def _cause(self, context: Context, ledger: Ledger | None) -> Cause | None:
        """What the run's tasks have said, or what is known of the one that said nothing."""
        if context.get("dag_run") is None:
            return None
        found = recorded.of_run(context, ledger)
        if found is None and self.ended == "failed":
            found = recorded.silent(context)
            if found is not None and ledger is not None:
                recorded.record(context, ledger, found)
        return found

    def _end(self, context: Context) -> RunEnd:
        from rehome.alerts.run_end import Ended, RunEnd

        run = context.get("dag_run")
        recurring = not self.makes_plan and getattr(run, "run_type", "") == "scheduled"
        return RunEnd(
            dag_id=str(getattr(run, "dag_id", None) or "of an unknown DAG"),
            run_id=str(getattr(run, "run_id", None) or context.get("run_id")),
            ended=Ended(self.ended),
            attempt=getattr(run, "clear_number", 0),
            reason=str(context.get("reason") or ""),
            recurring=recurring,
            makes_plan=self.makes_plan,
            connection=_connection(context),
            **_plans(context),
        )


def _connection(context: Context) -> str:
    """That of the run. A task of the context was not rendered: it may hold a template."""
    return str((context.get("params") or {}).get("kafka_config_id") or "")


def _plans(context: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the run's plans; nothing = that there are none."""
    if context.get("dag_run") is None or not context.get("params"):
        return {"unknown": "Airflow does not say with which parameters it was triggered."}
    try:
        plan_id = plan_ids.plan_id_of(context)
        with installation.open_ledger() as ledger:
            record = plan_of_run.known_plan(plan_id, ledger)
            if record is None:
                return {}
            first = _plan_end(context, record, ledger)
            return {"plan": first, **_follow_up(context, record, ledger)}
    except RehomeError as error:
        return {"unknown": str(error)}


def _follow_up(context: Mapping[str, Any], record: PlanRecord, ledger: Ledger) -> dict[str, Any]:
    """Only what empties brokers is followed up."""
    if record.action not in FOLLOWED_UP_ACTIONS:
        return {}
    try:
        follow_up = plan_of_run.known_plan(plan_ids.follow_up_id(record.plan_id), ledger)
    except RehomeError as error:
        return {"follow_up_unknown": str(error)}
    return {} if follow_up is None else {"follow_up": _plan_end(context, follow_up, ledger)}


def _plan_end(context: Mapping[str, Any], record: PlanRecord, ledger: Ledger) -> PlanAccount:
    """The plan, with what its files hold where they can be read."""
    from rehome.alerts.run_end import plan_end
    from rehome.page.files import files_of

    files = files_of(ledger, record)
    read = files.read
    if files.problem:
        log.warning("Not all of plan %s is known here: %s", record.plan_id, files.problem)
    outlook = paused_plan.outlook(ledger, record, utc_now())
    run_over = drivers.drives(context, record)  # a run of control_reassignment drives none
    return plan_end(record, ledger, read, outlook, run_over=run_over)
