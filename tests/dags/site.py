"""Cluster, ledger, warehouse and Airflow of a DAG run, in one fixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.kafka.cluster import LocalCluster
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.dags.runs import Run
from tests.execution.access.own_gateway import OwnGateway


@dataclass(frozen=True)
class Site:
    """The session's shared cluster, and a ledger and a warehouse of the test's own."""

    cluster: LocalCluster
    topics: Topics
    gateway: OwnGateway
    ledger: Ledger
    rehome: Callable[..., Run]

    def run(self, **conf: Any) -> Run:
        """Run `reassign_partitions`, or another ``dag``, on the cluster; see the fixture."""
        return self.rehome(self.cluster, **conf)
