"""Waits for a reassignment to end, and drives it: admits, follows the window, notices a stall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from rehome import runtime
from rehome.notifiers.notifier import send
from rehome.operators.base import ClusterOperator
from rehome.triggers.progress import ReassignmentTrigger

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class ReassignmentSensor(ClusterOperator):
    """Succeeds when the plan of the run has ended well (or has paused at its window's end).

    Between steps it defers: the trigger watches, the worker acts. All state is in the ledger
    and the cluster, so a retry, after whatever crash, goes on where things stand.

    :param drive: False = only watch, whatever is in flight on the cluster, until nothing is.
    :param poll_interval_s: time between two polls; None = the setting of that name.
    """

    ui_color = "#e2e6f6"

    def __init__(
        self, *, drive: bool = True, poll_interval_s: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.drive = drive
        self.poll_interval_s = poll_interval_s

    def step(self, context: Context) -> None:
        """One advance, then wait for the next reason."""
        if not self.drive:
            return self._watch(context)
        from include.execution.advance import advance
        from include.execution.model import PlanState
        from include.execution.policy import policy_for

        plan, request = runtime.load_plan(context)
        policy = policy_for(plan, request, runtime.settings())
        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            done = advance(plan, ledger, cluster, policy)
        if done.progress is not None:
            self.log.info("\n%s", done.progress.table())
        for partition, state in done.settled.items():
            self.log.info("%s: %s", partition, state)
        for partition, error in done.errors.items():
            self.log.error("%s: %s", partition, error)
        for cause in done.holds:
            self.log.info("Held back: %s", cause)
        if done.finished in (PlanState.DONE, PlanState.PAUSED):
            self.log.info("Plan %s is %s: %s", plan.plan_id, done.finished, done.cause)
        elif done.finished is not None:
            raise AirflowFailException(f"Plan {plan.plan_id} is {done.finished}: {done.cause}")
        else:
            self._defer(plan.plan_id)
        return None

    def resume(self, context: Context, event: dict[str, Any] | None = None) -> None:
        """The trigger saw a reason to act."""
        reason = (event or {}).get("reason", "")
        self.log.info("Woken: %s", reason)
        if reason == "stalled":
            with runtime.plain_errors():
                self._alert(context)
        self.execute(context)

    def _alert(self, context: Context) -> None:
        from include.execution.stall import STALL_ALERT

        plan_id, limit = runtime.plan_id_of(context), runtime.settings().stall_timeout_s
        with runtime.open_ledger() as ledger:
            since = ledger.view(plan_id).last_progress_at
            ledger.add_event(STALL_ALERT, f"nothing has moved since {since}", plan_id=plan_id)
        send(
            f"Plan {plan_id}: nothing has moved since {since:%H:%M:%S} UTC. What is in flight "
            f"goes on; after {limit:g} s without progress it is cancelled and the run fails. "
            "Check the destination brokers and the rate of the throttle.",
            plan_id=plan_id,
        )

    def _watch(self, context: Context) -> None:
        with self.gateway() as cluster:
            ongoing = cluster.list_reassignments()
        if not ongoing:
            self.log.info("No reassignment is in flight.")
            return
        self.log.info("%d partitions are being reassigned", len(ongoing))
        self._defer(None)

    def _defer(self, plan_id: str | None) -> None:
        interval = self.poll_interval_s or runtime.settings().poll_interval_s
        self.defer(
            trigger=ReassignmentTrigger(self.kafka_config_id, plan_id, interval),
            method_name="resume",
        )
