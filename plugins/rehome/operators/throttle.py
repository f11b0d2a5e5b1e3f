"""Throttles: set up with a journal, torn down whatever happened in between."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from include.errors import PlanConflictError, RehomeError
from rehome import runtime
from rehome.operators.base import ClusterOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.ledger.records import ThrottleEntry


class SetThrottleOperator(ClusterOperator):
    """Claims the cluster and throttles what is about to move (a setup).

    The journal is written before the cluster is told, so that clearing works from it alone.
    """

    def step(self, context: Context) -> None:
        """Drift, claim, journal, set, read back."""
        from include.execution.continuing import unfinished
        from include.execution.drift import refuse_drift
        from include.execution.model import PlanState
        from include.execution.policy import rate_for
        from include.execution.throttle import set_up_throttle
        from include.planning.explanation import bytes_text

        plan, request = runtime.load_plan(context)
        rate = rate_for(request, runtime.settings())
        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            driver = ledger.plan(plan.plan_id).run_id
            if driver != context["dag_run"].run_id:
                raise PlanConflictError(
                    f"Plan {plan.plan_id} is in the hands of run {driver} now",
                    next_step="Look at that run.",
                )
            view = ledger.view(plan.plan_id)
            if view.state is not PlanState.RUNNING:
                refuse_drift(unfinished(plan, view), cluster)
            if view.state.active:
                self.log.info("Plan %s goes on where it was left.", plan.plan_id)
            done = set_up_throttle(plan, ledger, cluster, rate)
        for entry in done.entries:
            self.log.info("%s %s: %s", entry.resource, entry.key, ",".join(entry.ours))
        for where, value in done.foreign_rates.items():
            self.log.warning(
                "%s is already %s/s, set by somebody else: it stays, expect a longer run",
                where,
                bytes_text(value),
            )


class ClearThrottleOperator(ClusterOperator):
    """Takes every throttle of the plan back and proves it by reading (a teardown).

    Runs after success, failure, a killed task, a run marked failed by hand. Where the plan has
    not ended by then, what is ours in flight is cancelled first: nothing of it may go on
    without its throttle.
    """

    ui_color = "#e3f0e4"

    def step(self, context: Context) -> None:
        """Stop what is left, clear, say what is owed."""
        from include.execution.abort import abort
        from include.execution.model import PlanState
        from include.execution.throttle import clear_throttle

        plan_id = runtime.plan_id_of(context)
        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            record = runtime.recorded_plan(ledger, plan_id)
            if record is None:
                self.log.info("No plan was recorded: nothing was changed.")
                return
            if record.run_id != context["dag_run"].run_id:
                self.log.info("Run %s goes on with the plan: it will clear.", record.run_id)
                return
            plan, state = runtime.plan_directory(context).load(), record.state
            if not state.ended and state is not PlanState.PAUSED:
                result = abort(plan, ledger, cluster, "the run ended before the plan did")
                self.log.warning(
                    "Plan %s was %s: %d moves cancelled",
                    plan.plan_id,
                    state,
                    len(result.cancelled),
                )
            done = clear_throttle(plan.plan_id, ledger, cluster)
        self.log.info("%d throttle settings are as they were before", len(done.cleared))
        if done.owed:
            self._owe(context, done.owed)

    def _owe(self, context: Context, entries: Collection[ThrottleEntry]) -> None:
        """Another attempt may find the broker back; the last one leaves it to the sweep."""
        owed = "\n".join(f"  {item.resource} {item.key}: {item.detail}" for item in entries)
        error = RehomeError(
            f"Throttles that could not be taken back yet:\n{owed}\n",
            state_left="They are in the ledger as owed.",
            next_step="When the cause is gone, trigger sweep_throttles with kafka_config_id "
            f"{self.kafka_config_id}, or leave it to its schedule where that is switched on.",
        )
        if context["ti"].try_number <= context["ti"].max_tries:
            raise error
        self.log.error("%s", error)
