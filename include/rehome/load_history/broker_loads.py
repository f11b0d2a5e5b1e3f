"""What the load history knows of brokers, for the page and for what judges a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import BrokerId
from rehome.load_history.forecast import disk_forecast
from rehome.load_history.known_rates import GROWTH, Demands, LoadHistory
from rehome.planning.model.arrays import ClusterArrays, broker_sums
from rehome.warehouse import Warehouse


def recorded_history(
    warehouse: Warehouse, snapshot: Snapshot, demands: Demands
) -> LoadHistory | None:
    """What was recorded of a snapshot's cluster; None = there is no history."""
    if not warehouse.rollups(snapshot.cluster_id).days():
        return None
    return LoadHistory.read(warehouse, snapshot, demands)


@dataclass(frozen=True)
class BrokerLoads:
    """The load of a cluster's brokers, by a history of before its snapshot."""

    history: LoadHistory

    def with_rates(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the rates that are known well enough to plan by."""
        return self.history.with_rates(snapshot)

    def problems(self) -> str:
        """Why some are not known; "" = all are."""
        problems = (each for resource in self.history.resources for each in resource.problems())
        return "; ".join(dict.fromkeys(problems))

    def by_broker(self, snapshot: Snapshot) -> Mapping[BrokerId, Mapping[str, float | None]]:
        """Broker → what is known of it, named as in ``BrokerState``."""
        arrays = ClusterArrays.from_snapshot(self.history.with_rates(snapshot))
        brokers = arrays.brokers.ids.tolist()
        loads: dict[BrokerId, dict[str, float | None]] = {broker: {} for broker in brokers}
        if arrays.bytes_in is not None:
            written = broker_sums(arrays.rows, arrays.bytes_in, len(brokers)).tolist()
            for broker, rate in zip(brokers, written, strict=True):
                loads[broker]["written_bytes_per_s"] = rate
        if arrays.bytes_out is not None:
            led = arrays.leader >= 0
            sent = np.bincount(arrays.leader[led], arrays.bytes_out[led], len(brokers)).tolist()
            for broker, rate in zip(brokers, sent, strict=True):
                loads[broker]["sent_bytes_per_s"] = rate
        if self.history.is_known(GROWTH):
            for item in disk_forecast(snapshot, None, self.history, days=1):
                loads[item.broker]["days_until_full"] = item.days_until_full
        return loads
