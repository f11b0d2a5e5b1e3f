"""Passes an operator's request on to a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome.domain.clock import utc_now
from rehome.domain.run.askers import STARTED_DAG, AskerKind, NotAsked, RunDoor
from rehome.domain.run.control_parameters import parse_control
from rehome.domain.run.paused.paused_text import handed_over_text
from rehome.domain.run.states import Control
from rehome.execution.access.connection_policy import ANYTHING
from rehome.execution.access.own_cluster import OwnCluster
from rehome.fleet import bound, paused_plan
from rehome.operators.base import ClusterOperator
from rehome.run import drivers, run_authority
from rehome.run.authority.refusals import told_of_refusal
from rehome.run.causes.errors import unasked_error
from rehome.run.causes.task_end import TaskReason

if TYPE_CHECKING:
    from rehome.domain.run.control_parameters import ControlRequest
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext

STARTED_RUN_PREFIX = "control__"
"""What the id of a run begins with that a request has started; that of the request's run follows:
a retry starts no second one."""


class ControlReassignmentOperator(ClusterOperator, SkipMixin):
    """Run, pause, resume, change_throttle, change_moves, cancel or roll_back, by the run's
    parameters.

    What it is asked is done once, and in the name of who has triggered the run: not again when the
    run is cleared. Where another run has to be started, the ledger is told which, and for whom;
    where none has, what follows is skipped.
    """

    inherits_from_skipmixin = True

    def step(self, context: RunContext) -> None:
        """Ask, and say what happens now."""
        request, run = parse_control(context.given), context.dag_run
        with told_of_refusal(context):
            starts = self._asked_before(context)
            if starts is None:
                self._refuse_unasked(context, request)
        if starts is None:
            starts = self._ask(context, request, context.ledger)
            context.ledger.carry_out(run.dag_id, run.run_id, context.cleared)
        if not starts:
            self.skip(ti=context.ti, tasks=context.task.get_flat_relatives(upstream=False))

    def _ask(self, context: RunContext, request: ControlRequest, ledger: Ledger) -> bool:
        """Whether a run has to be started: the ledger knows which."""
        from rehome.execution.control.words.answer_words import answer_text

        # To stop a plan is never refused: not even by a policy that cannot be read.
        policy = ANYTHING
        with context.gateway() as cluster:
            if not request.stops:
                own = OwnCluster.of_plan(cluster, context.ledger.plan(request.plan_id))
                found_id = own.describe_cluster().cluster_id
                bound.require(context, found_id)
                policy = context.policy_for(context.ledger.plan(request.plan_id))
            controller = drivers.controller(context, cluster, policy)
            done = controller.control(
                request.control,
                request.plan_id,
                request.rate_bytes_per_s,
                by_broker=request.rates_by_broker,
                moves_per_broker=request.moves_per_broker,
            )
        self.log.info("Plan %s: %s", request.plan_id, answer_text(done.answer))
        if request.control is Control.NEXT_WINDOW:
            ask = context.dag_paused
            text = handed_over_text(
                paused_plan.next_window(
                    context.ledger, context.ledger.plan(request.plan_id), utc_now(), ask
                )
            )
            self.log.info("Plan %s: %s", request.plan_id, text)
        if done.run is None:
            return False
        conf = {**done.run, "kafka_config_id": self.kafka_config_id}
        run_id = f"{STARTED_RUN_PREFIX}{context.dag_run.run_id}"
        run_authority.request_run(context, RunDoor.CONTROL, run_id, conf)
        return True

    def _asked_before(self, context: RunContext) -> bool | None:
        """Whether an attempt before this one has had a run to start; None = there was none, or it
        did not come to its end.

        :raises NotAskedForError: the run was cleared since.
        """
        run = context.dag_run
        cleared = context.ledger.carried_out(run.dag_id, run.run_id)
        if cleared is None:
            return None
        if cleared != context.cleared:
            raise unasked_error(
                NotAsked.CARRIED_OUT,
                TaskReason.CONTROL_CARRIED_OUT,
                who=context.actor,
                run_id=run.run_id,
            )
        self.log.info("An attempt before this one has carried it out.")
        started = f"{STARTED_RUN_PREFIX}{run.run_id}"
        return context.ledger.requested_run(STARTED_DAG, started) is not None

    def _refuse_unasked(self, context: RunContext, request: ControlRequest) -> None:
        """Only a person's fresh word starts anything; to stop a plan, any word will do."""
        run, who = context.dag_run, context.asker
        if run_authority.is_old(context):
            raise run_authority.old_request_error(context)
        if who.kind is AskerKind.TASK and not request.stops:
            raise unasked_error(
                NotAsked.NO_REQUEST,
                TaskReason.CONTROL_BY_TASK,
                run_id=run.run_id,
                said=request.control.value,
            )
