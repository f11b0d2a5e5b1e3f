"""Clusters as their newest snapshots show them: read once for each snapshot."""

from __future__ import annotations

from functools import lru_cache

from include.page.cluster_view import ClusterView, cluster_view
from include.warehouse import read_snapshot
from rehome import installation

KEPT = 8


def cluster_ids() -> list[str]:
    """Ids of the clusters that have snapshots."""
    return installation.warehouse().clusters()


def newest(cluster_id: str) -> ClusterView | None:
    """A cluster's newest finished snapshot; None = there is none.

    :param cluster_id: one of :func:`cluster_ids`.
    """
    uri = installation.warehouse().latest_snapshot(cluster_id)
    return None if uri is None else _view(uri)


@lru_cache(maxsize=KEPT)
def _view(uri: str) -> ClusterView:
    return cluster_view(read_snapshot(uri))
