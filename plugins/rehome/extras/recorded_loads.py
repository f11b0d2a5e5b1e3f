"""The load history of the warehouse, for what judges and shows a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.run.ports import KnownLoads

if TYPE_CHECKING:
    from rehome.account.clusters.cluster_facts import KnownLoad
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.warehouse import Warehouse


class RecordedLoads(KnownLoads):
    """By the rollups of snapshots."""

    def read(
        self, warehouse: Warehouse, snapshot: Snapshot, days: int, min_hours: float
    ) -> KnownLoad | None:
        """Of the cluster of a snapshot, before it."""
        from rehome.load_history.broker_loads import BrokerLoads, recorded_history
        from rehome.load_history.known_rates import Demands

        history = recorded_history(warehouse, snapshot, Demands(days, min_hours))
        return None if history is None else BrokerLoads(history)
