"""Clusters as their newest snapshots show them: read once for each snapshot."""

from __future__ import annotations

from functools import lru_cache

from include.ledger.store import Ledger
from include.load_history.known_rates import Demands, LoadHistory
from include.page.cluster_view import ClusterView, Ours, cluster_view
from include.warehouse import cluster_of, read_snapshot, taken_at_of
from rehome import installation

KEPT = 64


def cluster_ids() -> list[str]:
    """Ids of the clusters that have snapshots."""
    return installation.warehouse().clusters()


def newest(cluster_id: str, ledger: Ledger, *, load: bool) -> ClusterView | None:
    """A cluster's newest finished snapshot; None = there is none.

    :param cluster_id: one of :func:`cluster_ids`.
    :param load: with traffic and growth, which takes longer to read.
    """
    uri = installation.warehouse().latest_snapshot(cluster_id)
    return None if uri is None else _view(uri, ledger, load)


def topics(cluster_id: str) -> tuple[tuple[str, int, bool], ...]:
    """Name, number of partitions, and whether it is internal, of each topic that can be seen."""
    uri = installation.warehouse().latest_snapshot(cluster_id)
    return () if uri is None else _topics(uri)


@lru_cache(maxsize=KEPT)
def _topics(uri: str) -> tuple[tuple[str, int, bool], ...]:
    found = read_snapshot(uri, replicas=False).topics
    columns = (found[name].to_pylist() for name in ("topic", "partitions", "internal", "visible"))
    return tuple(
        (topic, partitions or 0, internal)
        for topic, partitions, internal, visible in zip(*columns, strict=True)
        if visible
    )


@lru_cache(maxsize=KEPT)
def _view(uri: str, ledger: Ledger, load: bool) -> ClusterView:
    snapshot, at = read_snapshot(uri), taken_at_of(uri)
    cluster_id = cluster_of(uri)
    ours = Ours(ledger.throttled_here_at(cluster_id, at), ledger.moving_here_at(cluster_id, at))
    history = None
    if load:
        settings, warehouse = installation.settings(), installation.warehouse()
        demands = Demands(settings.history_days, settings.min_history_hours)
        if warehouse.rollups(cluster_id).days():
            history = LoadHistory.read(warehouse, snapshot, demands)
    return cluster_view(snapshot, history, ours)
