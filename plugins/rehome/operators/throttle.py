"""Throttles: set up with a journal, cleared whatever happened in between."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from rehome import alerting
from rehome.domain.clock import utc_now
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import PlanState
from rehome.domain.text import bytes_text, count_text
from rehome.execution.governor.control_loop import first_rate, first_rates
from rehome.execution.observation.drift import DriftError, refuse_drift
from rehome.fleet import bound
from rehome.links import PlanPageLink
from rehome.operators.base import ClusterOperator
from rehome.run import (
    approval_terms,
    by_itself,
    drivers,
    evidence,
    plan_of_run,
    recorded_plans,
    run_authority,
    run_request,
)
from rehome.run.causes.errors import EndedError
from rehome.run.causes.recorded import of_run, silent, tell
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.ports import extras
from rehome.run.steps import ChainStep, not_before
from rehome.run.words.plan_words import EARLY_END

if TYPE_CHECKING:
    from rehome.domain.run.approval_terms import Terms
    from rehome.execution.access.lease import LeasedCluster
    from rehome.execution.throttle.set_up import Cleared
    from rehome.ledger.base.records import PlanRecord, ThrottleEntry
    from rehome.run.context import RunContext
    from rehome.run.run_request import TaskPlan


def _refuse_undone(context: RunContext, record: PlanRecord) -> None:
    """See that what must come before the throttle has been done."""
    evidence.require_dry_run(context, record.plan_id)
    missing = not_before(context, ChainStep.APPROVE)
    if record.state is PlanState.PLANNED and missing is not None:
        raise missing


class SetThrottleOperator(ClusterOperator):
    """Claims the cluster and throttles what is about to move (a setup).

    Brokers that are drained are cordoned here, where that was asked for.

    The journal is written before the cluster is changed, so that clearing works from it alone.
    """

    operator_extra_links = (PlanPageLink(),)

    @staticmethod
    def _refuse_by_policy(task: TaskPlan, terms: Terms, rate: int) -> None:
        """As at the start of the run: since then the window may have closed, the policy changed."""
        record, free, own = task.record, task.request.unthrottled, terms.rates_by_broker
        policy = task.context.policy_for(record)
        policy.require(record.action, rate, utc_now(), unthrottled=free, by_broker=own)
        if terms.effects is None or terms.effects.changes_cluster:
            approval_terms.refuse_recorded_approval(policy, record)

    def step(self, context: RunContext) -> None:
        """Policy, lease, drift, approval, claim, journal, set, read back."""
        from rehome.execution.throttle.cordon import cordon
        from rehome.execution.throttle.set_up import begin_unthrottled, set_up_throttle

        run_authority.refuse_unasked(context)
        record = plan_of_run.require_plan(context)
        if record.state is PlanState.DONE:
            self.log.info("Plan %s is done: there is nothing to throttle.", record.plan_id)
            return
        task = run_request.task_plan(context, record)
        plan, request = task.plan, task.request
        if record.state is not PlanState.RUNNING:
            _refuse_undone(context, record)
        rate, cause = approval_terms.rate_of(context, request, record)
        if cause:
            self.log.info("Throttle: %s/s; %s", bytes_text(rate), cause)
        terms = approval_terms.terms_of(task)
        if record.state is not PlanState.RUNNING:
            self._refuse_by_policy(task, terms, rate)
        with (
            context.gateway() as cluster,
            drivers.driving(context, cluster, record, begins=True) as lease,
        ):
            task = task.with_record(lease.ledger.plan(plan.plan_id))
            if task.record.state is not PlanState.RUNNING:
                bound.require(context, plan.cluster_id)
                by_itself.refuse_lowering(context, plan, record)
                recorded_plans.refuse_changed_files(plan, task.directory)
            self._check(task, approval_terms.terms_of(task), lease)
            if request.unthrottled:
                begin_unthrottled(plan, lease.ledger, lease.cluster)
                self.log.warning(
                    "Plan %s runs without a throttle. The limit for each broker and direction is "
                    "%s at once.",
                    plan.plan_id,
                    count_text(request.max_moves_per_broker, "move"),
                )
                return
            own = first_rates(terms.rates_by_broker, utc_now())
            done = set_up_throttle(
                *(plan, lease.ledger, lease.cluster, first_rate(rate), rate, cause, own)
            )
            cordoned = cordon(plan, request, lease.ledger, lease.cluster)
        extras().metrics.rates_set(plan.cluster_id, [RateReason.SET_UP])
        for broker in cordoned:
            self.log.info("Broker %d: its log dirs are cordoned (%s)", broker, request.cordon)
        for entry in done.entries:
            self.log.info("%s %s: %s", entry.resource, entry.key, ",".join(entry.ours))
        for where, value in done.foreign_rates.items():
            self.log.warning(
                "%s is already %s/s, set by another client: it stays, expect a longer run",
                where,
                bytes_text(value),
            )

    def _check(self, task: TaskPlan, terms: Terms, lease: LeasedCluster) -> None:
        """See that what was approved is what starts; else the approval lapses.

        A plan that pauses stays as it is, one that has not started yet fails.
        """
        from rehome.execution.control.refused import ApprovalLapsedError, refuse_lapsed
        from rehome.execution.control.resume import not_started

        record, plan, request = task.record, task.plan, task.request
        view = lease.ledger.view(plan.plan_id)
        runs = view.state is PlanState.RUNNING
        try:
            if not runs:
                refuse_drift(not_started(plan, view), lease.cluster)
            refuse_lapsed(
                plan.plan_id,
                record.approval,
                terms,
                None if runs else utc_now(),
                requested_rate_bytes_per_s=record.requested_rate_bytes_per_s,
                requested_rates_by_broker=None
                if record.requested_rates_by_broker is None
                else terms.rates_by_broker,
                begun=view.state.active,
                needs_person=request.approval
                and (terms.effects is None or terms.effects.changes_cluster),
            )
        except (DriftError, ApprovalLapsedError) as error:
            if not view.state.ended:
                lease.ledger.add_event(EventKind.APPROVAL_LAPSED, error.what, plan_id=plan.plan_id)
            if view.state is PlanState.APPROVED:
                lease.ledger.transition(plan.plan_id, PlanState.FAILED, error.what)
            raise
        if view.state.active:
            self.log.info("Plan %s goes on where it was left.", plan.plan_id)


class ClearThrottleOperator(ClusterOperator):
    """Takes every throttle of the plan back and proves it by reading (a teardown).

    Runs after success, failure, a killed task, a run marked failed by hand. Where the plan has
    not ended by then, what is ours in flight is cancelled first: nothing of it may go on
    without its throttle.
    """

    ui_color = "#e3f0e4"

    def step(self, context: RunContext) -> None:
        """Stop what is left, clear, give the lease back, say what is owed."""
        with context.gateway() as cluster:
            record = plan_of_run.recorded_plan(context)
            if record is None:
                self.log.info("No plan was recorded: there is nothing to take back.")
                return
            plan_id = record.plan_id
            if not context.drives(record):
                self.log.info("Run %s resumes the plan: it will clear.", record.driver)
                return
            if not record.state.active and not context.ledger.throttles(plan_id, open_only=True):
                # Nothing of it is on the cluster, which another plan may hold by now.
                if not record.state.ended:
                    context.ledger.transition(plan_id, PlanState.FAILED, _early_end(context))
                return
            with drivers.driving(context, cluster, record, release=True) as lease:
                done = self._clear(context, record, lease)
            extras().metrics.plan_ended(context.ledger, record.cluster_id, plan_id)
            extras().metrics.cluster(context.ledger, record.cluster_id)
        others = len(done.changed_by_others)
        as_found = len(done.cleared) - others
        self.log.info(
            "%s found",
            count_text(
                as_found, "throttle setting is as it was", "throttle settings are as they were"
            ),
        )
        if others:
            left = count_text(others, "was", "were")
            self.log.info("%s changed by other clients meanwhile: that is left alone", left)
        if done.owed:
            self._owe(context, done.owed)

    def _clear(self, context: RunContext, plan: PlanRecord, lease: LeasedCluster) -> Cleared:
        from rehome.execution.control.cancel import abort
        from rehome.execution.throttle.set_up import clear_throttle

        now = lease.ledger.plan(plan.plan_id)
        if not now.state.ended and now.state is not PlanState.PAUSED:
            has_cancel_request = now.cancel_requested  # and nothing could carry it out
            cause = _early_end(context)
            end = PlanState.CANCELLED if has_cancel_request else PlanState.FAILED
            done = abort(plan.plan_id, lease.ledger, lease.cluster, cause, state=end)
            stopped = count_text(len(done.cancelled), "move")
            self.log.warning("Plan %s was %s: %s cancelled", plan.plan_id, now.state, stopped)
        return clear_throttle(plan.plan_id, lease.ledger, lease.cluster)

    def _owe(self, context: RunContext, entries: Collection[ThrottleEntry]) -> None:
        """Fail, so that a retry finds brokers that are back; the last attempt leaves it to the
        sweep.
        """
        error = EndedError(
            TaskEnd(TaskReason.OWED, names=_lines_of(entries), connection=self.kafka_config_id)
        )
        if context.ti.try_number <= context.ti.max_tries:
            raise error
        self.log.error("%s", error)
        self._tell_owed(context, entries)

    def _tell_owed(self, context: RunContext, entries: Collection[ThrottleEntry]) -> None:
        """Alert people: the sweep may not come through this connection by itself."""
        from rehome.alerts.due_alerts import owed_alert

        record = context.ledger.plan(next(iter(entries)).plan_id)
        alerting.raise_alerts(context.ledger, [owed_alert(record, _lines_of(entries))])


def _lines_of(entries: Collection[ThrottleEntry]) -> tuple[str, ...]:
    return tuple(item.line for item in entries)


def _early_end(context: RunContext) -> str:
    """Why the run has ended before its plan did, as the plan's cause."""
    cause = of_run(context)
    if cause is None:
        cause = silent(context)
        if cause is not None:
            tell(context, cause)
    return EARLY_END if cause is None else cause.text.splitlines()[0].rstrip(".:")
