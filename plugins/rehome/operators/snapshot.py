"""Takes a snapshot of a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rehome import runtime
from rehome.operators.base import ClusterOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.cluster.gateway import ClusterGateway
    from include.ledger.store import Ledger


class SnapshotClusterOperator(ClusterOperator):
    """Reads the cluster into the warehouse; returns the snapshot's URI.

    :param for_request: also check the run's parameters, and that no other plan is active on the
        cluster: what cannot work must not start. A paused plan that the run is to go on with,
        or that waits for this run's window, is taken up; if the cluster has changed too much
        for one that waits, it is given up, and the run makes a new one.
    """

    def __init__(self, *, for_request: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self.for_request = for_request

    def step(self, context: Context) -> str:
        """Snapshot → URI."""
        from include.cluster.collect import take_snapshot
        from include.cluster.errors import require
        from include.cluster.rights import Role, rights_to_start

        if self.for_request:
            _refuse_closed_window(context)
        with self.gateway() as cluster:
            if self.for_request:
                role = Role.PLANNER if context["params"].get("dry_run") else Role.REASSIGNER
                require("This run", rights_to_start(cluster, role))
                with runtime.open_ledger() as ledger:
                    self._settle_plan(context, ledger, cluster)
            snapshot = take_snapshot(cluster, datetime.now(UTC))
        uri = runtime.warehouse().write_snapshot(snapshot)
        self.log.info(
            "%d brokers, %d topics, %d replicas read in %.1f s: %s",
            len(snapshot.brokers),
            len(snapshot.topics),
            len(snapshot.replicas),
            snapshot.duration_s,
            uri,
        )
        for row in snapshot.brokers.to_pylist():
            if not row["answered"]:
                self.log.warning("Broker %s did not answer: %s", row["broker"], row["error"])
        hidden = [f"Topic Describe on {name}" for name in snapshot.hidden_topics]
        if self.for_request:
            require("A plan", hidden)
        elif hidden:
            self.log.warning("Topics are hidden for want of %s", ", ".join(hidden))
        return uri

    def _settle_plan(self, context: Context, ledger: Ledger, cluster: ClusterGateway) -> None:
        """Go on with a paused plan, or see that a new one may be made."""
        from include.errors import PlanConflictError
        from include.execution.continuing import orphaned, waits_for_window

        named = runtime.named_plan_id(context)
        if named is not None:
            self._take_up(context, ledger, cluster, named)
            return
        active = ledger.active_plan(cluster.describe_cluster().cluster_id)
        if active is None or context["params"].get("dry_run"):
            return
        if active.run_id == context["dag_run"].run_id:
            return
        if runtime.window_end_of(context) is None or not waits_for_window(active, ledger):
            told = f"Plan {active.plan_id} is {active.state} on this cluster (run {active.run_id})"
            what_next = "Wait until it has ended, or cancel it; resume it if it is paused."
            if orphaned(active, ledger):
                told += ", and its run gives no sign of life"
                what_next = "Resume it or cancel it with control_reassignment."
            raise PlanConflictError(told, next_step=what_next)
        self._go_on(context, ledger, cluster, active.plan_id)

    def _go_on(
        self, context: Context, ledger: Ledger, cluster: ClusterGateway, plan_id: str
    ) -> None:
        from include.execution.control import give_up
        from include.execution.drift import DriftError
        from include.execution.lease import ttl_s
        from include.warehouse import PlanDirectory

        try:
            self._take_up(context, ledger, cluster, plan_id)
        except DriftError as error:
            self.log.warning("%s A new plan is made instead.", error.what)
            plan = PlanDirectory(ledger.plan(plan_id).plan_dir).load()
            owner, lease_s = context["dag_run"].run_id, ttl_s(runtime.settings())
            give_up(plan, ledger, cluster, error.what, owner, lease_s)

    def _take_up(
        self, context: Context, ledger: Ledger, cluster: ClusterGateway, plan_id: str
    ) -> None:
        from include.execution.continuing import bounds_of, check_continuable
        from include.execution.lease import ttl_s
        from include.warehouse import PlanDirectory

        run, request = context["dag_run"], runtime.request_of(context)
        plan = PlanDirectory(ledger.plan(plan_id).plan_dir).load()
        check_continuable(plan, ledger, cluster, run.run_id)
        if request.dry_run:
            return
        in_window = runtime.window_end_of(context) is not None
        ledger.take_up(
            plan_id,
            run.dag_id,
            run.run_id,
            bounds_of(request),
            runtime.actor_of(context),
            lease_s=ttl_s(runtime.settings()),
            rate_bytes_per_s=None if in_window else request.throttle_bytes_per_s,
        )
        self.log.info("Going on with plan %s.", plan_id)


def _refuse_closed_window(context: Context) -> None:
    from include.errors import InvalidRequestError

    ends = runtime.request_of(context).window_end
    if ends is not None and ends <= datetime.now(UTC):
        raise InvalidRequestError([f"The window closed at {ends:%Y-%m-%d %H:%M} UTC."])
