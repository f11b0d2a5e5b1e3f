"""Waits for a reassignment to end, and drives it: admits, follows the window, notices a stall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rehome import alerting
from rehome.cluster.interface.errors import ClusterError, MissingRightError
from rehome.domain.clock import sleep, utc_now
from rehome.domain.run.causes.error_kind import ErrorKind
from rehome.domain.run.states import PlanState
from rehome.domain.text import count_text, names_by_value
from rehome.execution.observation.foreign_reassignments import Watched
from rehome.execution.policy_from_request import policy_for
from rehome.execution.stall import overdue
from rehome.links import PlanPageLink
from rehome.operators.base import ClusterOperator
from rehome.run import (
    approval_terms,
    drivers,
    plan_of_run,
    run_request,
)
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.ports import extras
from rehome.settings import FIRST_POLL_S
from rehome.triggers.progress import ReassignmentTrigger
from rehome.triggers.watch import PlanWatch, PollOutcome, ReassignmentWatch

if TYPE_CHECKING:
    from rehome.execution.advance import Advance
    from rehome.run.context import RunContext


class ReassignmentSensor(ClusterOperator):
    """Succeeds when the plan of the run has ended well (or has paused at its window's end).

    Between steps it defers: the trigger watches, the worker acts. All state is in the ledger
    and the cluster, so a retry, after whatever crash, goes on where things stand.

    :param drive: False = only watch what another client has started. Succeeds when all of it is
        complete, fails when some of it was cancelled; never changes anything.
    :param partitions: (topic, partition) pairs to watch where ``drive`` is False; None = all
        that are in flight.
    :param poll_interval_s: time between two polls; None = the setting of that name.
    :param deferrable: False = hold the worker while waiting, where no triggerer runs.
    :param timeout: longest time between two wakes; a triggerer that is gone is noticed by it.
    """

    operator_extra_links = (PlanPageLink(),)
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

    def step(self, context: RunContext) -> None:
        """Act, or poll; then wait for the next reason."""
        if not self.drive:
            self.watch(context, None)
            return
        while not self._advance(context):
            if self.deferrable:
                self._defer(context, context.plan_id)
            self._wait(context)

    def resume(self, context: RunContext, event: dict[str, Any] | None = None) -> None:
        """The trigger saw a reason to act."""
        event = event or {}
        self.log.info("Woken: %s", event.get("reason"))
        if self.drive:
            self.step(context)
        else:
            self.watch(context, event["watched"])

    def _advance(self, context: RunContext) -> bool:
        """One step of the plan; whether that was the last."""
        from rehome.account.evidence import PaceFollower
        from rehome.execution import rolling
        from rehome.execution.throttle.set_up import sweep

        with context.gateway() as cluster:
            record = plan_of_run.recorded_plan(context)
            if record is None:
                raise plan_of_run.no_plan_yet(context)
            if record.state.ended:
                return self._check_end(context, record.plan_id, record.state, record.cause)
            if not record.state.active:
                raise plan_of_run.not_throttled(context, record)
            task = run_request.task_plan(context, record)
            approval_terms.refuse_unapproved(task)
            plan, policy = task.plan, policy_for(task.request, context.settings)
            metrics = extras().metrics.of_plan(plan, policy, context.settings)
            pace = PaceFollower(context.ledger, plan.plan_id)
            try:
                with drivers.driving(context, cluster, record) as lease:
                    sweep(lease.ledger, lease.cluster, plan.cluster_id)
                    for done in rolling.steps(plan, lease.ledger, lease.cluster, policy):
                        metrics.note_step(done)
                        metrics.note_copies(context.ledger, pace)
                        self._raise_alerts(context, plan.plan_id)
                        self._tell(done)
            except MissingRightError:
                raise
            except ClusterError as error:
                extras().metrics.error(plan.cluster_id, ErrorKind.CLUSTER_AWAY)
                view = context.ledger.view(plan.plan_id)
                if overdue(view, utc_now(), policy.stall_timeout_s):
                    raise
                self._raise_alerts(context, plan.plan_id)
                self.log.warning("The cluster is away; the next poll tries again. %s", error)
                return False
        return self._check_end(context, plan.plan_id, done.finished, done.cause)

    def _tell(self, done: Advance) -> None:
        if done.progress is not None:
            self.log.info("\n%s", done.progress.table())
        for state, names in names_by_value(done.settled).items():
            self.log.info("%s: %s", state, names)
        for error, names in names_by_value(done.errors, len(done.errors)).items():
            self.log.error("%s: %s", error, names)
        for cause in done.holds:
            self.log.info("Held back: %s", cause)

    def _check_end(
        self, context: RunContext, plan_id: str, state: PlanState | None, cause: str
    ) -> bool:
        if state is None:
            return False
        if state in (PlanState.DONE, PlanState.PAUSED):
            self.log.info("Plan %s is %s: %s", plan_id, state, cause)
            return True
        by = context.ledger.cancelled_by(plan_id) if state is PlanState.CANCELLED else None
        if by is not None:
            raise EndedError(TaskEnd(TaskReason.PLAN_CANCELLED, plan_id, state, who=by))
        raise EndedError(TaskEnd(TaskReason.PLAN_FAILED, plan_id, state, said=cause))

    def watch(self, context: RunContext, trigger_items: Sequence[Mapping[str, Any]] | None) -> None:
        """Poll until all of it has ended; then say how.

        :param trigger_items: what the trigger has watched; None = begin.
        """
        watched = [Watched.from_json(item) for item in trigger_items or ()]
        with closing(ReassignmentWatch(context.gateway(), watched)) as watch:
            if trigger_items is None:
                self.begin(context, watch)
            outcome = self._poll(watch)
            while not outcome.reason and not self.deferrable:
                sleep(self._interval_s(context))
                context.read_anew()
                outcome = self._poll(watch)
        if not outcome.reason:
            self._defer(context, None, [item.to_json() for item in watch.watched])
        if watch.ended_otherwise:
            others = "; ".join(f"{p}: {why}" for p, why in sorted(watch.ended_otherwise.items()))
            raise EndedError(TaskEnd(TaskReason.WATCHED_OTHERWISE, said=others))
        self.log.info(
            "%s complete", count_text(len(watch.watched), "reassignment is", "reassignments are")
        )

    def begin(self, context: RunContext, watch: ReassignmentWatch) -> None:
        """Find out what is watched."""
        watch.begin(self.partitions)

    def _poll(self, watch: ReassignmentWatch | PlanWatch) -> PollOutcome:
        outcome = watch.poll()
        self.log.info("\n%s", outcome.text)
        return outcome

    def _raise_alerts(self, context: RunContext, plan_id: str) -> None:
        """Alert people to lost messages, and to throttles that are removed again and again, or
        cannot be put back.
        """
        from rehome.alerts.due_alerts import LOST_OFTEN, data_lost, throttles_restored

        ledger = context.ledger
        alerting.raise_alerts(ledger, data_lost(ledger.plan(plan_id), ledger.lost_data(plan_id)))
        often = ledger.throttles_gone_often(plan_id, LOST_OFTEN)
        if often:
            alert = throttles_restored(ledger.plan(plan_id), often, self._interval_s(context))
            alerting.raise_alerts(ledger, [alert])
            ledger.mark_throttles_reported(often)

    def _interval_s(self, context: RunContext) -> float:
        return self.poll_interval_s or context.settings.poll_interval_s

    def _defer(
        self, context: RunContext, plan_id: str | None, watched: Sequence[dict[str, Any]] = ()
    ) -> None:
        interval_s = self._interval_s(context)
        self.defer(
            trigger=ReassignmentTrigger(
                self.kafka_config_id, plan_id, interval_s, FIRST_POLL_S, watched
            ),
            method_name="resume",
            timeout=self.timeout,
        )

    def _wait(self, context: RunContext) -> None:
        """Without a trigger: poll from here until there is a reason to act."""
        gateway, settings = context.gateway(), context.settings
        with closing(PlanWatch(gateway, context.plan_id, settings)) as watch:
            while True:
                sleep(self._interval_s(context))
                context.read_anew()
                outcome = self._poll(watch)
                alerting.send(outcome.due)
                if outcome.reason:
                    return
