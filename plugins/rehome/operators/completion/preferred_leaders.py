"""Preferred leaders lead again after the moves."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowSkipException

from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.clock import utc_now
from rehome.domain.run.states import PlanState
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.completion.demoted import is_demotion, wait_until_demoted
from rehome.execution.completion.preferred_leaders import restore_preferred_leaders
from rehome.execution.completion.words.end_words import demotion_text, restored_text
from rehome.fleet import bound
from rehome.ledger.base.fencing import LeaseHeldError
from rehome.operators.base import ClusterOperator
from rehome.run import drivers, evidence, plan_of_run, recorded_plans, run_authority

if TYPE_CHECKING:
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext


LEADERS, DEMOTED = "leaders.json", "demoted.json"
OWN_END = timedelta(hours=1)
"""For so long after a plan's end its elections still belong to its run, which may overrun its
window a little. Later, the task was cleared: then one of the policy's windows has to be open.
"""


class RestorePreferredLeadersOperator(ClusterOperator):
    """Hands leadership of the plan's partitions to their preferred replicas.

    After a demotion it also proves that the demoted brokers lead nothing; the verdict judges that.
    """

    def step(self, context: RunContext) -> None:
        """Elect where it is needed and possible; keep the result for the report."""
        ledger, record = context.ledger, plan_of_run.require_plan(context)
        if record.state is not PlanState.DONE:
            raise AirflowSkipException(f"Leaders stay as they are: the plan is {record.state}.")
        cleared = record.ended_at is None or utc_now() - record.ended_at >= OWN_END
        self._refuse_by_policy(context, record, cleared=cleared)
        if cleared and run_authority.is_old(context):
            raise AirflowSkipException(
                f"Leaders stay as they are. {run_authority.old_request_error(context)}"
            )
        with context.gateway() as cluster:
            plan, directory = recorded_plans.recorded_moves(ledger, record), context.directory
            try:
                with drivers.driving(context, cluster, record, wait_s=0, release=True) as lease:
                    if cleared:
                        bound.require(context, record.cluster_id)
                    result = restore_preferred_leaders(
                        plan, lease.cluster, on_progress=self._report_progress
                    )
                    request = recorded_plans.recorded_request(record)
                    if is_demotion(request):
                        demotion = wait_until_demoted(lease.cluster, request).to_json()
                        evidence.keep(ledger, directory, record.plan_id, DEMOTED, demotion)
                        self.log.info("%s", demotion_text(demotion))
            except LeaseHeldError as error:
                raise AirflowSkipException(f"Leaders stay as they are. {error}") from None
            evidence.keep(ledger, directory, record.plan_id, LEADERS, result.to_json())
        self.log.info("%s", restored_text(result))

    @staticmethod
    def _refuse_by_policy(context: RunContext, record: PlanRecord, *, cleared: bool) -> None:
        """See that leaders may be elected now.

        :param cleared: whether the plan has ended too long ago for this to be its own end.

        :raises AirflowSkipException: they may not.
        :raises ClustersFileError: the clusters file cannot be used, and the task was cleared.
        """
        try:
            policy = context.policy_for(None)
            if cleared:
                policy.require(record.action, None, utc_now())
            else:
                policy.require_carried_out(record.action, None)
        except PolicyError as error:
            raise AirflowSkipException(
                f"Leaders stay as they are. {error.what} Nothing was elected. Clear this task "
                "when the policy allows it."
            ) from None
        except ClustersFileError:
            if cleared:
                raise  # else the run ends within the bounds that it began with

    def _report_progress(self, done: int, of: int) -> None:
        self.log.info("Preferred leaders: %d of %d partitions dealt with", done, of)
