"""Pays what is owed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome import runtime
from rehome.operators.base import ClusterOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class SweepThrottlesOperator(ClusterOperator):
    """Takes back throttles that plans which run no more still owe on the cluster."""

    def step(self, context: Context) -> None:
        """Sweep, and say what is left."""
        from include.execution.throttle import sweep

        with runtime.open_ledger() as ledger, self.gateway() as cluster:
            done = sweep(ledger, cluster)
        self.log.info("%d throttle settings taken back", len(done.cleared))
        for entry in done.owed:
            self.log.warning(
                "Still owed: %s %s of plan %s: %s",
                entry.resource,
                entry.key,
                entry.plan_id,
                entry.detail,
            )
