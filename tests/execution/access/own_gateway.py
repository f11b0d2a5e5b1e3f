"""A gateway that code takes where it asks for the cluster of a plan.

A test's gateway leads to the one cluster that the test has made, and its calls are counted or made
to fail: an :class:`OwnCluster` around it would add a call of its own. So mypy is told that the
gateway is one. What an :class:`OwnCluster` does is tested in ``test_own_cluster``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.cluster.gateway import ClusterGateway

if TYPE_CHECKING:
    from rehome.execution.access.own_cluster import OwnCluster

    class OwnGateway(ClusterGateway, OwnCluster):
        """For mypy alone; when tests run, it is the gateway."""

else:
    OwnGateway = ClusterGateway
