"""Writes the report of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from include.domain.clock import utc_now
from rehome import installation
from rehome.fleet import paused_plan
from rehome.operators.base import ClusterOperator
from rehome.run import plan_of_run, recorded_plans
from rehome.run.run_note import NOTES, write_note
from rehome.ui.links import PlanPageLink, ReportLink

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class WriteReportOperator(ClusterOperator):
    """Writes report.html (a teardown: it reports failures, too). Returns its URI."""

    operator_extra_links = (PlanPageLink(), ReportLink())

    def __init__(self, **kwargs: Any):
        super().__init__(outlets=[NOTES], **kwargs)

    def step(self, context: Context) -> str:
        """Collect and render."""
        from include.reporting.collect import note_of_end, write_plan_report

        directory = recorded_plans.plan_directory(context)
        with installation.open_ledger() as ledger:
            record = plan_of_run.recorded(context, ledger)
            if record is None:
                raise AirflowSkipException("There is no plan to report on.")
            ending = context["dag_run"].run_id
            waits_for = paused_plan.outlook(ledger, record, utc_now(), ending=ending)
            uri = write_plan_report(directory, ledger, waits_for)
            write_note(context, note_of_end(directory, ledger, waits_for))
        self.log.info("Report: %s", uri)
        return uri
