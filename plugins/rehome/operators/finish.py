"""After the move: proof, leaders, report, verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from rehome import runtime
from rehome.operators.base import ClusterOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.ledger.records import PlanRecord


class VerifyReassignmentOperator(ClusterOperator):
    """Proves from a fresh read that each partition is where the plan says."""

    def step(self, context: Context) -> None:
        """Read, compare, keep the proof, fail on any difference."""
        from include.execution.model import PlanState
        from include.execution.verify import verify

        plan, directory = runtime.directory_plan(context)
        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            if ledger.plan(plan.plan_id).state is PlanState.PAUSED:
                raise AirflowSkipException("The plan is paused; its end will be verified.")
            result = verify(plan, cluster)
        directory.write_json("verification.json", result.to_json())
        self.log.info("%s", result.text())
        if not result.ok:
            raise AirflowFailException(f"Plan {plan.plan_id} did not verify:\n{result.text()}")


class RestorePreferredLeadersOperator(ClusterOperator):
    """Hands leadership of the plan's partitions to their preferred replicas."""

    def step(self, context: Context) -> None:
        """Elect where it is needed and possible; keep the result for the report."""
        from include.execution.leaders import restore_preferred_leaders
        from include.ledger.fencing import LeaseHeldError

        plan, directory = runtime.directory_plan(context)
        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            record = ledger.plan(plan.plan_id)
            try:
                with runtime.driving(
                    context, ledger, cluster, record, wait_s=0, release=True
                ) as held:
                    result = restore_preferred_leaders(plan, held.cluster)
            except LeaseHeldError as error:
                raise AirflowSkipException(f"Leaders stay as they are. {error}") from None
        directory.write_json("leaders.json", result.to_json())
        self.log.info("%s", result.text())


class WriteReportOperator(ClusterOperator):
    """Writes report.html (a teardown: it also tells of failures). Returns its URI."""

    def step(self, context: Context) -> str:
        """Collect and render."""
        from include.reporting.collect import write_plan_report

        directory = runtime.plan_directory(context)
        with runtime.open_ledger() as ledger:
            if runtime.recorded_plan(ledger, runtime.plan_id_of(context)) is None:
                raise AirflowSkipException("There is no plan to report on.")
            uri = write_plan_report(directory, ledger)
        self.log.info("Report: %s", uri)
        return uri


class VerdictOperator(ClusterOperator):
    """Fails the run when the plan did not end well (a teardown).

    Airflow alone would call such a run a success: a run marked failed by hand, for one, skips
    what would have failed and succeeds in its teardowns.
    """

    def step(self, context: Context) -> None:
        """Read the ledger, believe nothing else."""
        from include.execution.model import PlanState

        plan_id = runtime.plan_id_of(context)
        directory = runtime.plan_directory(context)
        with runtime.open_ledger() as ledger:
            record = runtime.recorded_plan(ledger, plan_id)
            owed = ledger.throttles(plan_id, open_only=True)
        if record is None:
            raise AirflowFailException(
                "The run ended before there was a plan; nothing was changed. The task that "
                "failed first says why."
            )
        if record.state is PlanState.PAUSED or self._rejected(record):
            self.log.info("Plan %s is %s: %s", plan_id, record.state, record.cause)
            return
        if record.state is not PlanState.DONE:
            raise AirflowFailException(
                f"Plan {plan_id} is {record.state}: {record.cause}. See the report: "
                f"{directory.uri}/report.html"
            )
        if not directory.exists("verification.json") or not directory.read_json(
            "verification.json"
        ).get("ok"):
            raise AirflowFailException(f"Plan {plan_id} is done, but was not verified.")
        if owed:
            raise AirflowFailException(
                f"Plan {plan_id} is done and verified, but throttles are owed: "
                + "; ".join(f"{entry.resource} {entry.key}: {entry.detail}" for entry in owed)
                + ". When the cause is gone, trigger sweep_throttles with kafka_config_id "
                + f"{self.kafka_config_id}, or leave it to its schedule where that is switched on."
            )
        self.log.info("Plan %s is done and verified.", plan_id)

    @staticmethod
    def _rejected(record: PlanRecord) -> bool:
        return record.started_at is None and record.cause == "rejected"
