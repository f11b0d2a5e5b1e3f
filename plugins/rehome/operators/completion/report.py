"""Writes the report of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException

from rehome.domain.clock import utc_now
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.fleet import paused_plan
from rehome.links import PlanPageLink, ReportLink
from rehome.operators.base import ClusterOperator
from rehome.operators.completion.verify import prove
from rehome.run import plan_of_run
from rehome.run.run_note import NOTES, write_note

if TYPE_CHECKING:
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext


class WriteReportOperator(ClusterOperator):
    """Writes report.html (a teardown: it reports failures, too). Returns its URI."""

    operator_extra_links = (PlanPageLink(), ReportLink())

    def __init__(self, **kwargs: Any):
        super().__init__(outlets=[NOTES], **kwargs)

    def step(self, context: RunContext) -> str:
        """Collect and render."""
        from rehome.reporting.collect import note_of_end, write_plan_report

        ledger, directory = context.ledger, context.directory
        record = plan_of_run.recorded_plan(context)
        if record is None:
            raise AirflowSkipException("There is no plan to report on.")
        self._prove_losses(context, record)
        waits_for = paused_plan.outlook(ledger, record, utc_now(), context.dag_paused)
        uri = write_plan_report(directory, ledger, waits_for)
        write_note(context, note_of_end(directory, ledger, waits_for))
        self.log.info("Report: %s", uri)
        return uri

    def _prove_losses(self, context: RunContext, record: PlanRecord) -> None:
        """After a plan that has failed, `verify` does not run. Where messages are lost, the proof
        of what is known is made here.
        """
        from rehome.execution.completion.words.proof_words import proof_text

        lost = [p for p, data in context.ledger.data_seen(record.plan_id).items() if data.lost]
        if record.state is not PlanState.FAILED or not lost:
            return
        try:
            with context.gateway() as cluster:
                self.log.warning("%s", proof_text(prove(context, record, cluster)))
        except RehomeError as error:  # the report has what polls have seen
            self.log.warning("Nothing could be verified: %s", error)
