"""Takes back what is owed, and reports what is not ours to take back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from rehome import installation, run_context
from rehome.executors import refuse_unshared_ledger
from rehome.notifiers.webhook import send
from rehome.operators.base import ClusterOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.cluster.gateway import ClusterGateway
    from include.execution.control.owed_log_dir_copies import OwedCopies
    from include.execution.throttle.foreign import ForeignThrottles
    from include.execution.throttle.set_up import Cleared
    from include.ledger.base.records import PlanRecord
    from include.ledger.store import Ledger

ORPHAN_ALERT = "orphan alert"
"""Kind of the event for a plan that runs, and that no run drives."""

ALERT_AGAIN = timedelta(hours=1)
"""How long after an alert the same plan is worth another one."""


class SweepThrottlesOperator(ClusterOperator):
    """Takes back throttles, and copies between log dirs, that plans which run no more still owe.

    Those that no plan has set are listed, for they may be forgotten ones; they are
    never touched.
    """

    def step(self, context: Context) -> None:
        """End what no run will, sweep, and say what is left.

        The schedule opens no connection that no plan was made through: it may lead nowhere.
        """
        refuse_unshared_ledger(context, installation.settings().ledger_url)
        with installation.open_ledger() as ledger:
            scheduled = context["dag_run"].run_type == "scheduled"
            if scheduled and not was_planned_through(ledger, self.kafka_config_id):
                raise AirflowSkipException(
                    f"No plan was ever made through connection {self.kafka_config_id}: Rehome "
                    "owes nothing there. The connection was not opened."
                )
            self._sweep_all(context, ledger)

    def _sweep_all(self, context: Context, ledger: Ledger) -> None:
        from include.execution.throttle.foreign import foreign_throttles

        with self.gateway() as cluster:
            self._end_orphan(context, ledger, cluster)
            self._sweep(ledger, cluster, context["dag_run"].run_id)
            self._tell_foreign(foreign_throttles(ledger, cluster))

    def _end_orphan(self, context: Context, ledger: Ledger, cluster: ClusterGateway) -> None:
        """Cancel a plan whose run died before it could carry a cancel out; alert of any other.

        Without a person's word nothing is ended: its run may be on its way back.
        """
        from include.domain.run.states import Control
        from include.execution.control.resume import orphaned

        plan = ledger.active_plan(cluster.describe_cluster().cluster_id)
        if plan is None or not orphaned(plan, ledger):
            return
        if plan.cancel_requested:
            done = run_context.controller(context, ledger, cluster, self.policy).control(
                Control.CANCEL, plan.plan_id
            )
            self.log.info("Plan %s: %s", plan.plan_id, done.told)
            return
        self._alert(plan, ledger)

    def _alert(self, plan: PlanRecord, ledger: Ledger) -> None:
        """Alert people to a plan that no run drives; again after a while, not at each sweep."""
        told = (
            f"Plan {plan.plan_id} is running, but its run {plan.driver} gives no sign of life. "
            "Its moves in flight go on, throttled; nothing ends them at a window's end. Resume it "
            "or cancel it with control_reassignment."
        )
        now = datetime.now(UTC)
        alerts = [event.at for event in ledger.events(plan.plan_id) if event.kind == ORPHAN_ALERT]
        if alerts and now - max(alerts) < ALERT_AGAIN:
            self.log.warning("%s", told)
            return
        ledger.add_event(
            ORPHAN_ALERT,
            f"run {plan.driver} gives no sign of life",
            plan_id=plan.plan_id,
            cluster_id=plan.cluster_id,
        )
        send(told, plan_id=plan.plan_id, run_id=plan.run_id)

    def _sweep(self, ledger: Ledger, cluster: ClusterGateway, run_id: str) -> None:
        """Under the cluster's lease, so that no plan begins or resumes meanwhile."""
        from include.execution.access.lease import hold, ttl_s
        from include.execution.access.own_cluster import OwnCluster
        from include.execution.control.owed_log_dir_copies import stop_owed_copies
        from include.execution.throttle.set_up import sweep
        from include.ledger.base.fencing import LeaseHeldError

        lasting_s, owner = ttl_s(installation.settings()), f"sweep_throttles ({run_id})"
        own = OwnCluster.itself(cluster)
        try:
            with hold(ledger, own, owner, lasting_s, wait_s=0, release=True) as held:
                self._tell_cleared(sweep(held.ledger, held.cluster, own.cluster_id))
                self._tell_copies(stop_owed_copies(held.ledger, held.cluster, own.cluster_id))
        except LeaseHeldError as error:
            self.log.info(
                "%s A run that drives a plan takes back all that is owed, as far as it can.",
                error.what,
            )

    def _tell_copies(self, done: OwedCopies) -> None:
        for partition in done.taken_back:
            self.log.info("%s: its copy between log dirs is over", partition)
        for partition, error in done.owed.items():
            self.log.warning("%s: its copy between log dirs is owed still: %s", partition, error)
        for partition, state in done.ended.items():
            self.log.info("%s: could not be cancelled when its plan ended; is %s", partition, state)
        for partition in done.unread:
            self.log.warning(
                "%s: could not be cancelled when its plan ended; is over, and its topic cannot be "
                "read: the next sweep looks again",
                partition,
            )
        for partition in done.copying:
            self.log.warning("%s: could not be cancelled, and goes on, throttled", partition)

    def _tell_cleared(self, done: Cleared) -> None:
        self.log.info("%d throttle settings taken back", len(done.cleared))
        for entry in done.owed:
            self.log.warning(
                "Still owed: %s %s of plan %s: %s",
                entry.resource,
                entry.key,
                entry.plan_id,
                entry.detail,
            )

    def _tell_foreign(self, found: ForeignThrottles) -> None:
        for throttle in found.throttles:
            self.log.warning("Set by another client, and left alone: %s", throttle)
        if found.throttles and found.idle:
            self.log.warning(
                "Nothing is being reassigned, so these are probably left over. Ask who set "
                "them; kafka-configs --alter --delete-config takes them back."
            )
        if found.unread:
            resource, error = next(iter(found.unread.items()))
            self.log.warning(
                "%d configurations could not be read and may hold more, the first of %s: %s",
                len(found.unread),
                resource,
                error,
            )


def was_planned_through(ledger: Ledger, connection: str) -> bool:
    """Whether a plan was made through a connection, or through one that the ledger does not know
    the name of.
    """
    return any(plan.planned_through in (None, connection) for plan in ledger.plans())
