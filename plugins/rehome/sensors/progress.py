"""Waits for a reassignment to end, and drives it: admits, follows the window, notices a stall."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from rehome import runtime
from rehome.notifiers.notifier import send
from rehome.operators.base import ClusterOperator
from rehome.triggers.progress import FIRST_POLL_S, ReassignmentTrigger
from rehome.triggers.watching import STALLED, PlanWatch, ReassignmentWatch

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.cluster.errors import ClusterError
    from include.execution.advance import Advance
    from include.execution.model import Policy
    from include.planning.plan import Plan


class ReassignmentSensor(ClusterOperator):
    """Succeeds when the plan of the run has ended well (or has paused at its window's end).

    Between steps it defers: the trigger watches, the worker acts. All state is in the ledger
    and the cluster, so a retry, after whatever crash, goes on where things stand.

    :param drive: False = only watch what somebody else has started, until it has ended.
    :param partitions: (topic, partition) pairs to watch where ``drive`` is False; None = all
        that are in flight.
    :param poll_interval_s: time between two polls; None = the setting of that name.
    :param deferrable: False = hold the worker while waiting, where no triggerer runs.
    :param timeout: longest time between two wakes; a triggerer that is gone is noticed by it.
    """

    ui_color = "#e2e6f6"

    def __init__(
        self,
        *,
        drive: bool = True,
        partitions: Sequence[tuple[str, int]] | None = None,
        poll_interval_s: float | None = None,
        deferrable: bool = True,
        timeout: timedelta = timedelta(days=7),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.drive = drive
        self.partitions = partitions
        self.poll_interval_s = poll_interval_s
        self.deferrable = deferrable
        self.timeout = timeout

    def step(self, context: Context) -> None:
        """Act, or look; then wait for the next reason."""
        while not (self._advance(context) if self.drive else self._over()):
            if self.deferrable:
                self._defer(context)
            self._wait(context)

    def resume(self, context: Context, event: dict[str, Any] | None = None) -> None:
        """The trigger saw a reason to act."""
        reason = (event or {}).get("reason", "")
        self.log.info("Woken: %s", reason)
        if reason == STALLED:
            with runtime.plain_errors():
                self._alert(context)
        self.execute(context)

    def _advance(self, context: Context) -> bool:
        """One step of the plan; whether that was the last."""
        from include.cluster.errors import ClusterError, MissingRightError
        from include.execution.advance import advance
        from include.execution.policy import policy_for

        plan, request = runtime.load_plan(context)
        policy = policy_for(plan, request, runtime.settings())
        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            try:
                done = advance(plan, ledger, cluster, policy)
            except MissingRightError:
                raise
            except ClusterError as error:
                self._bear(error, ledger.view(plan.plan_id).last_progress_at, policy)
                return False
        self._tell(done)
        return self._ended(plan, done)

    def _bear(self, error: ClusterError, last: datetime | None, policy: Policy) -> None:
        """A cluster may be away for a while, and goes on copying: that is no failure yet."""
        if last is None or datetime.now(UTC) - last > timedelta(seconds=policy.stall_timeout_s):
            raise error
        self.log.warning("The cluster is away; the next poll tries again. %s", error)

    def _tell(self, done: Advance) -> None:
        if done.progress is not None:
            self.log.info("\n%s", done.progress.table())
        for partition, state in done.settled.items():
            self.log.info("%s: %s", partition, state)
        for partition, error in done.errors.items():
            self.log.error("%s: %s", partition, error)
        for cause in done.holds:
            self.log.info("Held back: %s", cause)

    def _ended(self, plan: Plan, done: Advance) -> bool:
        from include.execution.model import PlanState

        if done.finished is None:
            return False
        if done.finished in (PlanState.DONE, PlanState.PAUSED):
            self.log.info("Plan %s is %s: %s", plan.plan_id, done.finished, done.cause)
            return True
        raise AirflowFailException(f"Plan {plan.plan_id} is {done.finished}: {done.cause}")

    def _over(self) -> bool:
        """Whether nothing is in flight any more of what is watched."""
        watch = ReassignmentWatch(self.gateway(), self.partitions)
        try:
            ongoing = watch.ongoing()
        finally:
            watch.close()
        if self.partitions is None:
            # What starts from now on is not what this task was asked to wait for.
            self.partitions = [(name, number) for name, number in ongoing]
        self.log.info("%d partitions are being reassigned", len(ongoing))
        return not ongoing

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

    def _interval_s(self) -> float:
        return self.poll_interval_s or runtime.settings().poll_interval_s

    def _defer(self, context: Context) -> None:
        self.defer(
            trigger=ReassignmentTrigger(
                self.kafka_config_id,
                runtime.plan_id_of(context) if self.drive else None,
                self._interval_s(),
                FIRST_POLL_S,
                self.partitions,
            ),
            method_name="resume",
            timeout=self.timeout,
        )

    def _wait(self, context: Context) -> None:
        """Without a trigger: look from here until there is a reason to act."""
        watch = (
            PlanWatch(self.gateway(), runtime.plan_id_of(context))
            if self.drive
            else ReassignmentWatch(self.gateway(), self.partitions)
        )
        try:
            while True:
                time.sleep(self._interval_s())
                look = watch.look()
                self.log.info("\n%s", look.text)
                if look.reason == STALLED:
                    self._alert(context)
                elif look.reason:
                    return
        finally:
            watch.close()
