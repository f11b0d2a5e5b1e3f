"""Proof that a plan is done: a fresh reading of every partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowSkipException

from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.operators.base import ClusterOperator
from rehome.run import evidence, plan_of_run, recorded_plans, steps
from rehome.run.causes.errors import EndedError, TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.execution.completion.verify import Verification
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext


PROOF = "verification.json"


def prove(context: RunContext, record: PlanRecord, cluster: ClusterGateway) -> Verification:
    """Read, compare, keep the proof, and record each loss that no poll has seen.

    :raises ClusterError: the cluster could not be read; nothing was kept.
    """
    from rehome.execution.completion.verify import record_losses, verify
    from rehome.execution.completion.words.proof_words import proof_json

    plan, directory = recorded_plans.recorded_moves(context.ledger, record), context.directory
    data = context.ledger.data_seen(record.plan_id)
    result = verify(plan, OwnCluster.of_plan(cluster, record), data)
    record_losses(context.ledger, result)
    evidence.keep(context.ledger, directory, plan.plan_id, PROOF, proof_json(result))
    return result


class VerifyReassignmentOperator(ClusterOperator):
    """Proves from a fresh read that each partition is where the plan says, and says what is known
    of its data.
    """

    def step(self, context: RunContext) -> None:
        """Read, compare, keep the proof, fail on any difference."""
        from rehome.execution.completion.words.proof_words import proof_text

        record = plan_of_run.require_plan(context)
        if record.state is PlanState.PAUSED:
            raise AirflowSkipException("The plan is paused; its end will be verified.")
        if record.state is not PlanState.DONE:
            end = TaskEnd(TaskReason.NOT_CHECKED, record.plan_id, record.state, said=record.cause)
            raise steps.not_before(context, steps.ChainStep.PROGRESS) or TaskConflictError(end)
        with context.gateway() as cluster:
            result = prove(context, record, cluster)
        said = proof_text(result)
        self.log.info("%s", said)
        if not result.ok:
            raise EndedError(TaskEnd(TaskReason.NOT_VERIFIED, record.plan_id, said=said))
