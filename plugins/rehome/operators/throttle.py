"""Throttles: set up with a journal, torn down whatever happened in between."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from include.errors import RehomeError
from rehome import runtime
from rehome.operators.base import ClusterOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.execution.lease import Held
    from include.execution.throttle import Cleared
    from include.ledger.records import ThrottleEntry
    from include.planning.plan import Plan
    from include.planning.request import ReassignmentRequest
    from include.warehouse import PlanDirectory

EARLY_END = "the run ended before the plan did"


class SetThrottleOperator(ClusterOperator):
    """Claims the cluster and throttles what is about to move (a setup).

    The journal is written before the cluster is told, so that clearing works from it alone.
    """

    def step(self, context: Context) -> None:
        """Lease, drift, claim, journal, set, read back."""
        from include.execution.continuing import not_started
        from include.execution.drift import refuse_drift
        from include.execution.governor import first_rate
        from include.execution.model import PlanState
        from include.execution.throttle import set_up_throttle
        from include.planning.explanation import bytes_text

        plan, request = runtime.load_plan(context)
        rate, cause = _rate(request, runtime.plan_directory(context))
        if cause:
            self.log.info("Throttle: %s/s; %s", bytes_text(rate), cause)
        with (
            runtime.open_ledger() as ledger,
            self.gateway() as cluster,
            runtime.driving(context, ledger, cluster, ledger.plan(plan.plan_id)) as held,
        ):
            view = ledger.view(plan.plan_id)
            if view.state is not PlanState.RUNNING:
                refuse_drift(not_started(plan, view), cluster)
            if view.state.active:
                self.log.info("Plan %s goes on where it was left.", plan.plan_id)
            done = set_up_throttle(plan, held.ledger, held.cluster, first_rate(rate), rate, cause)
        for entry in done.entries:
            self.log.info("%s %s: %s", entry.resource, entry.key, ",".join(entry.ours))
        for where, value in done.foreign_rates.items():
            self.log.warning(
                "%s is already %s/s, set by somebody else: it stays, expect a longer run",
                where,
                bytes_text(value),
            )


def _rate(request: ReassignmentRequest, directory: PlanDirectory) -> tuple[int, str]:
    """The throttle that was asked for, or what the dry run has found for it, and why."""
    if request.throttle_bytes_per_s is not None:
        return request.throttle_bytes_per_s, ""
    tried = directory.read_json("dry_run.json")
    return tried["rate_bytes_per_s"], f"auto: {tried['rate_cause']}"


class ClearThrottleOperator(ClusterOperator):
    """Takes every throttle of the plan back and proves it by reading (a teardown).

    Runs after success, failure, a killed task, a run marked failed by hand. Where the plan has
    not ended by then, what is ours in flight is cancelled first: nothing of it may go on
    without its throttle.
    """

    ui_color = "#e3f0e4"

    def step(self, context: Context) -> None:
        """Stop what is left, clear, give the lease back, say what is owed."""
        from include.execution.model import PlanState

        plan_id = runtime.plan_id_of(context)
        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            record = runtime.recorded_plan(ledger, plan_id)
            if record is None:
                self.log.info("No plan was recorded: nothing was changed.")
                return
            if record.run_id != context["dag_run"].run_id:
                self.log.info("Run %s goes on with the plan: it will clear.", record.run_id)
                return
            if not record.state.active and not ledger.throttles(plan_id, open_only=True):
                # Nothing of it is on the cluster, which another plan may hold by now.
                if not record.state.ended:
                    ledger.transition(plan_id, PlanState.FAILED, EARLY_END)
                return
            with runtime.driving(context, ledger, cluster, record, release=True) as held:
                done = self._clear(runtime.plan_directory(context).load(), held)
        self.log.info("%d throttle settings are as they were before", len(done.cleared))
        if done.owed:
            self._owe(context, done.owed)

    def _clear(self, plan: Plan, held: Held) -> Cleared:
        from include.execution.abort import abort
        from include.execution.model import PlanState
        from include.execution.throttle import clear_throttle

        state = held.ledger.plan(plan.plan_id).state
        if not state.ended and state is not PlanState.PAUSED:
            stopped = len(abort(plan, held.ledger, held.cluster, EARLY_END).cancelled)
            self.log.warning("Plan %s was %s: %d moves cancelled", plan.plan_id, state, stopped)
        return clear_throttle(plan.plan_id, held.ledger, held.cluster)

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
