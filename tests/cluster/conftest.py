"""Gateways onto the session's clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway


@pytest.fixture
def gateway_of(secured_cluster: LocalCluster) -> Iterator[Callable[[str], ClusterGateway]]:
    """Opens a gateway onto the secured cluster as a user; closed at the end of the test."""
    opened: list[ClusterGateway] = []

    def open_as(user: str) -> ClusterGateway:
        settings = secured_cluster.client_settings(user)
        opened.append(ClusterGateway(Connection.from_settings(settings)))
        return opened[-1]

    yield open_as
    for gateway in opened:
        gateway.close()
