"""A gateway that code takes where it asks for the cluster of a plan.

A test's gateway leads to the one cluster that the test has made. Tests count its calls or make them
fail, and an :class:`OwnCluster` around it would add one. So the gateway counts as an
:class:`OwnCluster` for mypy. What an :class:`OwnCluster` does is tested in ``test_own_cluster``.
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
