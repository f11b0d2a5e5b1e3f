"""A cluster of real brokers that is watched: each snapshot by a clock that is set, then judged."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.snapshot.take import take_snapshot
from rehome.ledger.store import Ledger
from rehome.operators import assets
from rehome.operators.send_alerts import SendAlertsOperator
from rehome.operators.watch import WatchClustersOperator
from rehome.warehouse import Warehouse
from tests.plugins.fleet.recorded import WATCH_RUN, requested
from tests.plugins.run.taken import taken

CONNECTION = "kafka_default"


def _hours_ago() -> datetime:
    """A time of which the two hours that follow are over, and of the same day."""
    found = datetime.now(UTC) - timedelta(hours=3)
    return found if found.hour < 22 else found - timedelta(hours=3)


@dataclass
class Watched:
    """A cluster, and where its findings go: everything lies in one directory.

    :param begun: the clock's zero, so that the last snapshot of a test is not from the future, and
        none from another day than the first: histories are rolled up day by day.
    """

    cluster: LocalCluster
    gateway: ClusterGateway
    warehouse: Warehouse
    ledger: Ledger
    url: str
    patch: pytest.MonkeyPatch
    begun: datetime = field(default_factory=_hours_ago)

    def at(self, *minutes: float) -> list[dict[str, Any]]:
        """A fresh snapshot for each moment; one run of the task on all of them.

        :returns: the runs that are to be started.
        """
        self.patch.setenv("REHOME_WAREHOUSE", self.warehouse.uri)
        self.patch.setenv("REHOME_LEDGER_URL", self.url)
        events = []
        for moment in (self.begun + timedelta(minutes=each) for each in minutes):
            snapshot = take_snapshot(self.gateway, moment)
            uri = taken(self.ledger, self.warehouse.write_snapshot(snapshot))
            about = {"cluster_id": snapshot.cluster_id, "connection": CONNECTION, "uri": uri}
            events.append(SimpleNamespace(extra={**about, "taken_at": moment.isoformat()}))
        task = WatchClustersOperator(task_id="watch")
        context: Any = {"triggering_asset_events": {assets.SNAPSHOTS_ASSET: events}, "task": task}
        run_ids = task.execute({**context, "dag_run": WATCH_RUN})
        SendAlertsOperator(task_id="send_alerts").execute({})
        return [requested(self.ledger, run_id) for run_id in run_ids]

    def open(self) -> set[tuple[str, str]]:
        """Kind and subject of each open finding."""
        found = self.ledger.open_findings(self.cluster.cluster_id)
        return {(each.kind.value, each.subject) for each in found}

    def kill(self, broker: int) -> None:
        """Until every other broker knows."""
        self.cluster.kill(broker)
        self._wait_for(broker, there=False)

    def restart(self, broker: int) -> None:
        """Until every broker knows, and every replica is in sync."""
        self.cluster.restart(broker)
        self._wait_for(broker, there=True)
        wait_until(self._in_sync, "every replica to be in sync", 240)

    def _wait_for(self, broker: int, *, there: bool) -> None:
        asked = [self.cluster.address(each) for each in self.cluster.broker_ids if each != broker]

        def known() -> bool:
            return all((broker in self.cluster.brokers_known_at(each)) is there for each in asked)

        wait_until(known, f"broker {broker} to be {'there' if there else 'gone'}", 240)

    def _in_sync(self) -> bool:
        topics = self.gateway.describe_topics().values()
        partitions = (each for topic in topics for each in topic.partitions.values())
        return all(set(each.isr) == set(each.replicas) for each in partitions)


def watch_by(patch: pytest.MonkeyPatch, cluster: LocalCluster, **rules: Any) -> None:
    """The connection, and the watch rules: nothing but what a test is about opens soon."""
    patch.setenv("REHOME_MAX_SNAPSHOT_AGE_S", "86400")  # the clock of snapshots is set
    kafka = {"conn_type": "kafka", "extra": dict(cluster.client_settings())}
    patch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    given = {"grace_s": 1200, "snapshots_to_close": 1, "largest_throttle": 20_000_000, **rules}
    patch.setenv("REHOME_WATCH_RULES", json.dumps(given))
