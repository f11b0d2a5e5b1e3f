"""Preferred leaders lead again after the moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from rehome import installation
from rehome.operators.base import ClusterOperator
from rehome.run import drivers, plan_of_run, recorded_plans

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


LEADERS, DEMOTED = "leaders.json", "demoted.json"


class RestorePreferredLeadersOperator(ClusterOperator):
    """Hands leadership of the plan's partitions to their preferred replicas.

    After a demotion it also proves that the demoted brokers lead nothing; the verdict judges that.
    """

    def step(self, context: Context) -> None:
        """Elect where it is needed and possible; keep the result for the report."""
        from include.domain.run.states import PlanState
        from include.execution.completion.demoted import (
            demotion_text,
            is_demotion,
            wait_until_demoted,
        )
        from include.execution.completion.preferred_leaders import restore_preferred_leaders
        from include.ledger.base.fencing import LeaseHeldError

        with installation.open_ledger() as ledger, self.gateway() as cluster:
            record = plan_of_run.required(context, ledger)
            if record.state is not PlanState.DONE:
                raise AirflowSkipException(f"Leaders stay as they are: the plan is {record.state}.")
            plan, directory = recorded_plans.directory_plan(context)
            try:
                with drivers.driving(
                    context, ledger, cluster, record, wait_s=0, release=True
                ) as held:
                    result = restore_preferred_leaders(
                        plan, held.cluster, on_progress=self._report_progress
                    )
                    request = recorded_plans.recorded_request(record)
                    if is_demotion(request):
                        found = wait_until_demoted(held.cluster, request).to_json()
                        directory.write_json(DEMOTED, found)
                        self.log.info("%s", demotion_text(found))
            except LeaseHeldError as error:
                raise AirflowSkipException(f"Leaders stay as they are. {error}") from None
        directory.write_json(LEADERS, result.to_json())
        self.log.info("%s", result.text())

    def _report_progress(self, done: int, of: int) -> None:
        self.log.info("Preferred leaders: %d of %d partitions dealt with", done, of)
