"""Pays what is owed, and tells of what is not ours to take back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome import runtime
from rehome.operators.base import ClusterOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.cluster.gateway import ClusterGateway
    from include.execution.foreign_throttles import ForeignThrottles
    from include.execution.owed_copies import OwedCopies
    from include.execution.throttle import Cleared
    from include.ledger.store import Ledger


class SweepThrottlesOperator(ClusterOperator):
    """Takes back throttles, and copies between log dirs, that plans which run no more still owe.

    Those that no plan has set are listed, for they may be what somebody has forgotten; they are
    never touched.
    """

    def step(self, context: Context) -> None:
        """End what nobody else will, sweep, and say what is left."""
        from include.execution.foreign_throttles import foreign_throttles

        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            self._end_orphan(context, ledger, cluster)
            self._sweep(ledger, cluster, context["dag_run"].run_id)
            self._tell_foreign(foreign_throttles(ledger, cluster))

    def _end_orphan(self, context: Context, ledger: Ledger, cluster: ClusterGateway) -> None:
        """Cancel a plan whose run died before it could heed a cancel; warn of one to be cancelled.

        Without a person's word nothing is ended: its run may be on its way back.
        """
        from include.execution.continuing import orphaned
        from include.execution.model import Control

        plan = ledger.active_plan(cluster.describe_cluster().cluster_id)
        if plan is None or not orphaned(plan, ledger):
            return
        if plan.cancel_requested:
            done = runtime.controller(context, ledger, cluster).control(
                Control.CANCEL, plan.plan_id
            )
            self.log.info("Plan %s: %s", plan.plan_id, done.told)
            return
        self.log.warning(
            "Plan %s is running, but its run %s gives no sign of life. Its moves in flight go on, "
            "throttled. Resume it or cancel it with control_reassignment.",
            plan.plan_id,
            plan.run_id,
        )

    def _sweep(self, ledger: Ledger, cluster: ClusterGateway, run_id: str) -> None:
        """Under the cluster's lease, so that no plan begins or resumes meanwhile."""
        from include.execution.lease import hold, ttl_s
        from include.execution.owed_copies import stop_owed_copies
        from include.execution.throttle import sweep
        from include.ledger.fencing import LeaseHeldError

        lasting_s, owner = ttl_s(runtime.settings()), f"sweep_throttles ({run_id})"
        cluster_id = cluster.describe_cluster().cluster_id
        try:
            with hold(
                ledger, cluster, cluster_id, owner, lasting_s, wait_s=0, release=True
            ) as held:
                self._tell_cleared(sweep(held.ledger, held.cluster, cluster_id))
                load = runtime.load_plan_at
                self._tell_copies(stop_owed_copies(held.ledger, held.cluster, cluster_id, load))
        except LeaseHeldError as error:
            self.log.info("%s A run that drives a plan pays all debts that it can.", error.what)

    def _tell_copies(self, done: OwedCopies) -> None:
        for partition in done.taken_back:
            self.log.info("%s: its copy between log dirs is over", partition)
        for partition, error in done.owed.items():
            self.log.warning("%s: its copy between log dirs is owed still: %s", partition, error)

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
            self.log.warning("Set by somebody else, and left alone: %s", throttle)
        if found.throttles and found.idle:
            self.log.warning(
                "Nothing is being reassigned, so these are probably left over. Ask whoever set "
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
