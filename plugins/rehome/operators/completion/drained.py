"""Drain means empty: what has appeared on the brokers meanwhile is moved away, or reported."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome.domain.actions import Action
from rehome.domain.clock import utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from rehome.domain.text import count_text
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.completion.drained import (
    emptied_by,
    is_drain,
    less_unpaid,
    wait_until_drained,
)
from rehome.execution.completion.follow_up import why_no_follow_up
from rehome.execution.completion.words.end_words import NOT_FOLLOWED_UP, drained_text
from rehome.operators.base import ClusterOperator
from rehome.run import evidence, plan_of_run, recorded_plans
from rehome.run.authority import own_snapshot
from rehome.run.causes.errors import EndedError, TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import FOLLOW_UP, follow_up_id
from rehome.run.words.completion_words import followed_up_text

if TYPE_CHECKING:
    from rehome.domain.kafka import LogDirName
    from rehome.domain.plan.plan import Plan
    from rehome.execution.completion.drained import Drained
    from rehome.execution.completion.follow_up import NoFollowUp
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext

DRAINED = "drained.json"


class CheckDrainedOperator(ClusterOperator, SkipMixin):
    """Proves from metadata and log dirs that a drain has left its brokers empty.

    What is there all the same was created since the plan was made; what a budget does not pay for
    is reported. While the window and the budget
    allow, the tasks of the group ``follow_up`` move it away by a plan of its own, which is gated,
    checked and approved as every plan is; the same check inside of that group is the last one.
    Otherwise the run fails, and names what is left.
    """

    ui_color = "#e3f0e4"

    def step(self, context: RunContext) -> None:
        """Wait until the brokers are empty; then end here, go on to the follow-up, or fail."""
        with context.gateway() as cluster:
            record = plan_of_run.require_plan(context)
            if context.in_follow_up:
                record = context.ledger.plan(context.first_plan_id)
            request = recorded_plans.recorded_request(record)
            if not is_drain(request):
                self._end_here(context)
                return
            if record.state is not PlanState.DONE:
                about = record.plan_id, record.state
                raise TaskConflictError(TaskEnd(TaskReason.NOT_CHECKED, *about, record.cause))
            if self._is_followed_up(context, record):
                return
            emptied: Collection[LogDirName] = ()
            if request.action is Action.EVACUATE_LOG_DIRS:
                emptied = emptied_by(recorded_plans.recorded_moves(context.ledger, record))
            remainder = wait_until_drained(OwnCluster.of_plan(cluster, record), request, emptied)
            if request.budget_bytes is not None or request.budget_moves is not None:
                moves = recorded_plans.recorded_moves(context.ledger, record)
                remainder = without_unpaid(context, remainder, moves)
            self.log.info("%s", drained_text(remainder))
            self._conclude(context, record, remainder)

    def _is_followed_up(self, context: RunContext, record: PlanRecord) -> bool:
        """Whether a plan that follows up is open: its tasks carry it on and take its throttles
        back, whatever is on the brokers by now.
        """
        follow_up = recorded_plans.recorded_plan(context.ledger, follow_up_id(record.plan_id))
        if context.in_follow_up or follow_up is None or follow_up.state.ended:
            return False
        self.log.info("Plan %s follows up, and is %s.", follow_up.plan_id, follow_up.state)
        return True

    def _conclude(self, context: RunContext, record: PlanRecord, remainder: Drained) -> None:
        ledger, follow_up, last = context.ledger, follow_up_id(record.plan_id), context.in_follow_up
        if remainder.as_planned:
            made = recorded_plans.recorded_plan(ledger, follow_up) is not None
            _keep(context, record, remainder, follow_up if made else None)
            self._end_here(context)
            return
        plan = recorded_plans.recorded_moves(ledger, record)
        request = recorded_plans.recorded_request(record)
        reason = why_no_follow_up(remainder, request, plan, utc_now(), last=last)
        if reason is not None:
            _keep(context, record, remainder, follow_up if last else None, reason)
            self._fail(ledger, record.plan_id, remainder, reason)
        _keep(context, record, remainder, follow_up)
        appeared = count_text(len(remainder.plannable), "replica")
        event = followed_up_text(follow_up, appeared)
        ledger.add_event(EventKind.FOLLOWED_UP, event, plan_id=record.plan_id)
        self.log.warning("%s", event)

    def _fail(
        self, ledger: Ledger, plan_id: str, remainder: Drained, reason: NoFollowUp
    ) -> NoReturn:
        said = drained_text(remainder)
        ledger.add_event(
            EventKind.DRAINED_NOT_EMPTY, f"{NOT_FOLLOWED_UP[reason]}: {said}", plan_id=plan_id
        )
        raise EndedError(TaskEnd(TaskReason.DRAIN_NOT_ENDED, plan_id, said=said, why=reason))

    def _end_here(self, context: RunContext) -> None:
        """Skip the follow-up, where this comes before it."""
        below = context.task.get_flat_relatives(upstream=False)
        prefix = f"{FOLLOW_UP}."
        tasks = [task for task in below if task.task_id.startswith(prefix)]
        if tasks and not context.in_follow_up:
            self.skip(ti=context.ti, tasks=tasks)


def without_unpaid(context: RunContext, remainder: Drained, plan: Plan) -> Drained:
    """The same by the snapshot that the plan was made on.

    :raises PlanConflictError: what says which one, or its files, are not what was written.
    """
    from rehome.warehouse import read_snapshot

    warehouse, snapshot = context.warehouse, plan.summary.snapshot
    evidence.of_plan(context.ledger, plan.plan_id, warehouse.plan(plan.plan_id))
    uri, taken = warehouse.snapshot_uri(snapshot), context.ledger.taken_snapshot(snapshot)
    planned_on = read_snapshot(uri if taken is None else own_snapshot.require_unchanged(taken))
    rows = planned_on.replicas.select(["broker", "topic", "partition"])
    there = ((r["broker"], TopicPartition(r["topic"], r["partition"])) for r in rows.to_pylist())
    return less_unpaid(remainder, plan, there)


def _keep(
    context: RunContext,
    record: PlanRecord,
    remainder: Drained,
    follow_up: str | None,
    reason: NoFollowUp | None = None,
) -> None:
    """Write what was found, for the verdict and the report."""
    content: dict[str, Any] = {
        "as_planned": remainder.as_planned,
        "brokers": list(remainder.brokers),
        "log_dirs": [str(name) for name in remainder.log_dirs],
        "left": [item.to_json() for item in remainder.left],
        "unpaid": [item.to_json() for item in remainder.unpaid],
        "unread": {str(broker): why for broker, why in remainder.unread.items()},
        "follow_up": follow_up,
        "not_followed_up": None if reason is None else NOT_FOLLOWED_UP[reason],
    }
    directory = context.warehouse.plan_at(record.plan_dir)
    evidence.keep(context.ledger, directory, record.plan_id, DRAINED, content)
