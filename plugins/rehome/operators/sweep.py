"""Takes back what is owed, and reports what is not ours to take back."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowSkipException

from rehome import alerting
from rehome.alerts.kinds import AlertKind
from rehome.domain.clock import utc_now
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import ANYTHING
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.words.cancel_words import taken_back_text
from rehome.execution.policy_from_request import policy_for
from rehome.executors import refuse_unshared_ledger
from rehome.fleet import bound
from rehome.ledger.base.fencing import LeaseHeldError
from rehome.operators.base import ClusterOperator
from rehome.run import drivers, recorded_plans
from rehome.run.ports import extras

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.execution.control.owed_log_dir_copies import OwedCopies
    from rehome.execution.throttle.foreign import ForeignThrottles
    from rehome.execution.throttle.set_up import Cleared
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext


SWEPT_EVERY = timedelta(minutes=10)
"""Between two sweeps of a cluster."""


class SweepThrottlesOperator(ClusterOperator):
    """Takes back throttles, and copies between log dirs, that plans which run no more still owe.

    Those that no plan has set are listed, for they may be forgotten ones; they are
    never touched.
    """

    def step(self, context: RunContext) -> None:
        """End what no run will, sweep, and say what is left.

        The schedule opens no connection where nothing can be owed: it may lead nowhere.
        """
        refuse_unshared_ledger(context)
        ledger = context.ledger
        try:
            self._sweep_if_any(context)
        finally:  # it takes no cluster: also where this one is away
            alerting.remind(ledger)
            alerting.send_left_over(ledger)  # as well: the DAG that has found it may be paused

    def _sweep_if_any(self, context: RunContext) -> None:
        scheduled = context.dag_run.run_type == "scheduled"
        if scheduled and not self._may_owe(context):
            raise AirflowSkipException(
                f"No plan was ever made through connection {self.kafka_config_id}, as far as "
                "ledger and warehouse know: nothing of Rehome's is set there. The connection was "
                "not opened."
            )
        self._sweep_all(context)

    @staticmethod
    def _may_owe(context: RunContext) -> bool:
        """Whether a plan was made through the connection; or one that the ledger does not know,
        for it is new, or was restored from an earlier backup: then through which is not known.
        """
        if context.ledger.was_planned_through(context.connection):
            return True
        return bool(context.ledger.not_recorded(context.warehouse.finished_plans()))

    def _sweep_all(self, context: RunContext) -> None:
        """Alerts are sent last: a slow channel delays nothing else."""
        from rehome.execution.throttle.foreign import foreign_throttles

        with context.gateway() as cluster:
            cluster_id = cluster.describe_cluster().cluster_id
            bound.record_binding(context, cluster_id)
            orphan = self._orphan(context, cluster, cluster_id)
            paused = self._dag_paused(context, cluster_id)
            self.take_back(context, cluster)
            others = foreign_throttles(context.ledger, cluster)
            self._tell_foreign(others)
        self._alert(
            context.ledger, cluster_id, paused or orphan, others, dag_paused=paused is not None
        )
        alerting.send_left_over(context.ledger)
        now, foreign = utc_now(), len(others.throttles)
        extras().metrics.cluster(context.ledger, cluster_id, swept_at=now, foreign=foreign)
        if orphan is not None:
            self._keep_window(context, orphan)

    @staticmethod
    def _dag_paused(context: RunContext, cluster_id: str) -> PlanRecord | None:
        """The plan that runs though its DAG is paused, so that no task of its run starts."""
        plan = context.ledger.active_plan(cluster_id)
        if plan is None or plan.state is not PlanState.RUNNING or plan.dag_id is None:
            return None
        return plan if context.dag_paused(plan.dag_id) else None

    def _keep_window(self, context: RunContext, plan: PlanRecord) -> None:
        """Keep the end of its window for a plan that no run drives. Where that comes before the
        next sweep, this one waits for it, after all else is done.
        """
        from rehome.execution.access.lease import ttl_s
        from rehome.execution.without_worker import keep_window

        settings, owner = context.settings, context.driver_of()
        try:
            policy = policy_for(recorded_plans.recorded_request(plan), settings)
        except InvalidRequestError as error:  # another Rehome may have recorded it
            self.log.warning("Plan %s: its window is not known: %s", plan.plan_id, error.what)
            return
        moves = recorded_plans.recorded_moves(context.ledger, plan)
        with context.gateway() as cluster:
            own = OwnCluster.of_plan(cluster, plan)
            within_s = SWEPT_EVERY.total_seconds()
            done = keep_window(moves, context.ledger, own, policy, owner, ttl_s(settings), within_s)
        if done is not None:
            back = taken_back_text(len(done.cancelled))
            self.log.info("Plan %s: %s; %s", plan.plan_id, back, done.cause)
            for cause in done.holds:
                self.log.warning("Plan %s: %s", plan.plan_id, cause)

    def _orphan(
        self, context: RunContext, cluster: ClusterGateway, cluster_id: str
    ) -> PlanRecord | None:
        """The plan whose run died. It is cancelled where that was asked for before.

        Nothing is cancelled unless a person has asked for it: the run may be about to go on.
        """
        from rehome.execution.access.lease import is_orphaned
        from rehome.execution.control.words.answer_words import answer_text

        plan = context.ledger.active_plan(cluster_id)
        if plan is None or not is_orphaned(plan, context.ledger):
            return None
        if not plan.cancel_requested:
            return plan
        # No policy refuses it, and one that cannot be read must not stop the sweep.
        done = drivers.controller(context, cluster, ANYTHING).control(Control.CANCEL, plan.plan_id)
        self.log.info("Plan %s: %s", plan.plan_id, answer_text(done.answer))
        return None

    def _alert(
        self,
        ledger: Ledger,
        cluster_id: str,
        plan: PlanRecord | None,
        foreign: ForeignThrottles,
        *,
        dag_paused: bool,
    ) -> None:
        """Alert people to what only they can repair; again after a while."""
        from rehome.alerts.due_alerts import foreign_leftovers, orphan, owed_alerts

        alerts, over = owed_alerts(ledger, cluster_id)
        if plan is not None:
            in_flight = len(ledger.planned_moves(plan.plan_id, MoveState.ADMITTED))
            alerts.append(orphan(plan, in_flight, dag_paused=dag_paused))
            self.log.warning("Plan %s: %s", plan.plan_id, alerts[-1].text)
        keys = {alert.key for alert in alerts}
        for kind in (AlertKind.ORPHANED, AlertKind.DAG_PAUSED):
            raised = ledger.open_alerts(kind, cluster_id=cluster_id)
            over += [
                (each.kind, each.subject)
                for each in raised
                if (each.kind, each.subject) not in keys
            ]
        if foreign.throttles and foreign.idle:
            left = foreign_leftovers(cluster_id, self.kafka_config_id, foreign.throttles)
            alerts.append(left)
        elif not foreign.throttles:  # else they may be in use
            over.append((AlertKind.FOREIGN_LEFTOVERS, cluster_id))
        alerting.raise_alerts(ledger, alerts, over)

    def take_back(self, context: RunContext, cluster: ClusterGateway) -> None:
        """Under the lease of the cluster: no plan begins or resumes meanwhile, and no other sweep:
        two connections, each with a DAG of its own, may lead to one cluster.
        """
        from rehome.execution.access.lease import hold, ttl_s
        from rehome.execution.control.owed_log_dir_copies import stop_owed_copies
        from rehome.execution.throttle.set_up import sweep

        lasting_s, owner = ttl_s(context.settings), context.driver_of()
        own = OwnCluster.itself(cluster)
        try:
            with hold(context.ledger, own, owner, lasting_s, wait_s=0, release=True) as lease:
                moves_of = partial(recorded_plans.moves_by_files, context.ledger)
                swept = sweep(lease.ledger, lease.cluster, own.cluster_id, moves_of)
                self._tell_cleared(swept)
                self._tell_copies(stop_owed_copies(lease.ledger, lease.cluster, own.cluster_id))
        except LeaseHeldError as error:
            self.log.info(
                "%s The run that drives a plan cleans up what it can.",
                error.what,
            )

    def _tell_copies(self, done: OwedCopies) -> None:
        for partition in done.taken_back:
            self.log.info("%s: its copy between log dirs is over", partition)
        for partition, error in done.owed.items():
            self.log.warning(
                "%s: its copy between log dirs could not be cancelled yet: %s", partition, error
            )
        for partition, state in done.ended.items():
            self.log.info("%s: could not be cancelled when its plan ended; is %s", partition, state)
        for partition in done.unread:
            self.log.warning(
                "%s: could not be cancelled when its plan ended; is over, and its topic cannot be "
                "read: the next sweep tries again",
                partition,
            )
        for partition in done.copying:
            self.log.warning("%s: could not be cancelled, and goes on as it has begun", partition)

    def _tell_cleared(self, done: Cleared) -> None:
        self.log.info("%s taken back", count_text(len(done.cleared), "throttle setting"))
        for entry in done.owed:
            self.log.warning(
                "Still pending cleanup: %s %s of plan %s: %s",
                entry.resource,
                entry.key,
                entry.plan_id,
                entry.detail,
            )

    def _tell_foreign(self, others: ForeignThrottles) -> None:
        from rehome.execution.throttle.foreign import mark_lines

        for throttle in others.throttles:
            self.log.warning("Not this ledger's to take back, and left alone: %s", throttle)
        for line in mark_lines(others):
            self.log.warning(line)
        if others.throttles and others.idle:
            self.log.warning(
                "Nothing is being reassigned, so these are probably left over. Ask who set "
                "them; kafka-configs --alter --delete-config takes them back."
            )
        if others.unread:
            resource, error = next(iter(others.unread.items()))
            self.log.warning(
                "%s could not be read and may hold more, the first of %s: %s",
                count_text(len(others.unread), "configuration"),
                resource,
                error,
            )
