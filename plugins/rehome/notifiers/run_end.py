"""Notifies people how a run ended: the plan, the state left, the next step."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from rehome import alerting
from rehome.domain.actions import Trait, actions_with
from rehome.domain.clock import utc_now
from rehome.errors import RehomeError
from rehome.fleet import attempts, paused_plan
from rehome.run import plan_of_run
from rehome.run.authority import own_plan
from rehome.run.causes import recorded
from rehome.run.context import RunContext, follow_up_id
from rehome.run.ports import extras

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.account.account import PlanAccount
    from rehome.alerts.run_end import RunEnd
    from rehome.domain.run.causes.cause import Cause
    from rehome.ledger.base.records import PlanRecord

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
        # A task of Airflow's context was not rendered: it may hold a template.
        connection = (context.get("params") or {}).get("kafka_config_id")
        with extras().channels.one_callback(), RunContext(context, str(connection or "")) as run:
            self._tell(run, self._end(run))

    def _tell(self, context: RunContext, end: RunEnd) -> None:
        from rehome.alerts.due_alerts import OVER_WITH_ITS_RUN

        try:
            for plan in end.plans:
                context.ledger.close_alerts(plan.record.plan_id, *OVER_WITH_ITS_RUN)
            context.ledger.end_watch_start(
                end.dag_id,
                end.run_id,
                failed=self.ended == "failed",
                plan_id=None if end.plan is None else end.plan.record.plan_id,
            )
            end = replace(
                end,
                cause=self._cause(context),
                of_finding=attempts.of_run(context.ledger, end.dag_id, end.run_id, utc_now()),
            )
            if not self._was_idle(context, end):
                alerting.raise_alerts(context.ledger, [end.alert()])
        except RehomeError as error:
            log.error("Whether this was sent before is not known: %s", error)
            end = replace(end, cause=self._cause(context, away=True))
            alerting.send_unrecorded(end.alert())

    def _was_idle(self, context: RunContext, end: RunEnd) -> bool:
        """Whether the run has succeeded because there was nothing to do."""
        without = self.ended == "succeeded" and end.plan is None and not end.unknown
        return without and self.makes_plan and not own_plan.may_be_made(context)

    def _cause(self, context: RunContext, *, away: bool = False) -> Cause | None:
        """What the run's tasks have said, or what is known of the one that said nothing."""
        if context.dag_run is None:
            return None
        cause = recorded.of_run(context, away=away)
        if cause is None and self.ended == "failed":
            cause = recorded.silent(context)
            if cause is not None and not away:
                recorded.record(context, cause)
        return cause

    def _end(self, context: RunContext) -> RunEnd:
        from rehome.alerts.run_end import Ended, RunEnd

        run = context.dag_run
        recurring = not self.makes_plan and getattr(run, "run_type", "") == "scheduled"
        return RunEnd(
            dag_id=str(getattr(run, "dag_id", None) or "of an unknown DAG"),
            run_id=str(getattr(run, "run_id", None) or context.airflow.get("run_id")),
            ended=Ended(self.ended),
            attempt=getattr(run, "clear_number", 0),
            reason=str(context.airflow.get("reason") or ""),
            recurring=recurring,
            makes_plan=self.makes_plan,
            connection=context.connection,
            **_plans(context),
        )


def _plans(context: RunContext) -> dict[str, Any]:
    """What is known of the run's plans; nothing = that there are none."""
    if context.dag_run is None or not context.given:
        return {"unknown": "Airflow does not say with which parameters it was triggered."}
    try:
        record = plan_of_run.known_plan(context, context.plan_id)
        if record is None:
            return {}
        first = _plan_end(context, record)
        return {"plan": first, **_follow_up(context, record)}
    except RehomeError as error:
        return {"unknown": str(error)}


def _follow_up(context: RunContext, record: PlanRecord) -> dict[str, Any]:
    """Only what empties brokers is followed up."""
    if record.action not in actions_with(Trait.FOLLOWED_UP):
        return {}
    try:
        follow_up = plan_of_run.known_plan(context, follow_up_id(record.plan_id))
    except RehomeError as error:
        return {"follow_up_unknown": str(error)}
    return {} if follow_up is None else {"follow_up": _plan_end(context, follow_up)}


def _plan_end(context: RunContext, record: PlanRecord) -> PlanAccount:
    """The plan, with what its files hold where they can be read."""
    from rehome.alerts.run_end import plan_end
    from rehome.page.files import files_of

    ledger = context.ledger
    files = files_of(ledger, record)
    if files.problem:
        log.warning("Not all of plan %s is known here: %s", record.plan_id, files.problem)
    outlook = paused_plan.outlook(ledger, record, utc_now())
    run_over = context.drives(record)  # a run of control_reassignment drives none
    return plan_end(record, ledger, files.read, outlook, run_over=run_over)
