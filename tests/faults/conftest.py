"""A site for each case, on brokers that the session shares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.cluster.gateway import ClusterGateway
from include.ledger import database
from local.kafka_cluster import LocalCluster
from tests.conftest import Topics, impatient_gateway
from tests.faults.site import Site


@pytest.fixture(scope="session")
def impatient(cluster: LocalCluster) -> Iterator[ClusterGateway]:
    with impatient_gateway(cluster) as gateway:
        yield gateway


@pytest.fixture
def site(
    cluster: LocalCluster,
    impatient: ClusterGateway,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    """Whatever happens to its brokers, the next test finds them as they were."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 1.0)
    with Topics(cluster) as topics:
        made = Site(cluster, impatient, topics, f"sqlite:///{tmp_path}/ledger.db")
        yield made
        made.tidy()
