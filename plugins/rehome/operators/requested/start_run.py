"""Starts the run that another task has asked for, by what the ledger knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

from rehome.domain.clock import utc_now
from rehome.domain.run.askers import STARTED_DAG, NotAsked, RunDoor
from rehome.run.authority.refusals import told_of_refusal
from rehome.run.causes.errors import unasked_error
from rehome.run.causes.operator import RecordedOperator
from rehome.run.causes.task_end import TaskReason

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.ledger.stores.authority.requested_runs import RequestedRun
    from rehome.run.context import RunContext


class StartRequestedRunOperator(RecordedOperator, TriggerDagRunOperator):
    """Triggers the run that the ledger has for an id: its DAG, and its parameters.

    Nothing of it comes from an XCom but the id: users may write those. A run that is there already
    stays, and no second one is started: the task is skipped.

    :param door: through which the run has to have been asked for.
    """

    template_fields: Sequence[str] = ("trigger_run_id",)

    def __init__(self, *, door: str, **kwargs: Any):
        super().__init__(
            trigger_dag_id=STARTED_DAG,
            skip_when_already_exists=True,
            openlineage_inject_parent_info=False,  # the run has what was asked for, and no more
            **kwargs,
        )
        self.door = door

    def step(self, context: RunContext) -> None:
        """Look up, and trigger."""
        with told_of_refusal(context):
            requested = self._require_request(context)
        self.trigger_dag_id, self.conf = requested.dag_id, dict(requested.conf)
        TriggerDagRunOperator.execute(self, cast("Context", context.airflow))

    def _require_request(self, context: RunContext) -> RequestedRun:
        run_id = str(self.trigger_run_id)
        requested = context.ledger.requested_through(RunDoor(self.door), run_id)
        if requested is None:
            raise unasked_error(
                NotAsked.NO_REQUEST,
                TaskReason.START_NOT_ASKED,
                place=context.dag_run.dag_id,
                run_id=run_id,
            )
        lasting_s = context.settings.approval_lasts_s
        age_s = (utc_now() - requested.at).total_seconds()
        if lasting_s is not None and age_s > lasting_s:
            raise unasked_error(
                NotAsked.TOO_OLD,
                TaskReason.ASKED_TOO_LONG_AGO,
                who=str(requested.asker),
                run_id=run_id,
                at=requested.at,
                hours=lasting_s / 3600,
            )
        return requested
