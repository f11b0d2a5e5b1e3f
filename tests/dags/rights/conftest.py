"""Fixtures of the tests of rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway


@pytest.fixture
def admin(secured_cluster: LocalCluster) -> Iterator[ClusterGateway]:
    """Sees everything, whatever the principal of the run may do."""
    settings = Connection.from_settings(secured_cluster.client_settings())
    with ClusterGateway(settings) as opened:
        yield opened
