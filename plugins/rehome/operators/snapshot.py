"""Takes a snapshot of a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rehome.operators.base import ClusterOperator
from rehome.runtime import open_ledger, request_of, warehouse

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class SnapshotClusterOperator(ClusterOperator):
    """Reads the cluster into the warehouse; returns the snapshot's URI.

    :param for_request: also check the run's parameters, and that no other plan is active on the
        cluster: what cannot work must not start.
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
            request_of(context)
        with self.gateway() as cluster:
            if self.for_request:
                self._refuse_second_plan(context, cluster.describe_cluster().cluster_id)
                role = Role.PLANNER if context["params"].get("dry_run") else Role.REASSIGNER
                require("This run", rights_to_start(cluster, role))
            snapshot = take_snapshot(cluster, datetime.now(UTC))
        uri = warehouse().write_snapshot(snapshot)
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

    def _refuse_second_plan(self, context: Context, cluster_id: str) -> None:
        from include.errors import PlanConflictError

        if context["params"].get("dry_run"):
            return
        with open_ledger() as ledger:
            active = ledger.active_plan(cluster_id)
        if active is not None and active.run_id != context["dag_run"].run_id:
            raise PlanConflictError(
                f"Plan {active.plan_id} is {active.state} on this cluster (run {active.run_id})",
                next_step="Wait until it has ended, or cancel it.",
            )
