"""How long snapshots and rollups of days are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from rehome.load_history.daily_rollups import day_of, pending_days
from rehome.warehouse import Warehouse, taken_at_of


def remove_old(
    warehouse: Warehouse, cluster_id: str, now: datetime, *, snapshot_days: int, rollup_days: int
) -> list[str]:
    """Remove what is older than wanted; returns the URIs of snapshots and names of days removed.

    A snapshot stays while it is not rolled up, while the next interval begins with it, and for
    as long as there is a plan that was made on it.
    """
    oldest = (now - timedelta(days=snapshot_days)).date().isoformat()
    snapshots = warehouse.snapshots(cluster_id)
    needed = set(snapshots[-1:])
    for pending in pending_days(warehouse, cluster_id):
        needed |= {*pending.snapshots, pending.before or ""}
    old = [u for u in snapshots if day_of(taken_at_of(u)) < oldest and u not in needed]
    planned = warehouse.planned_snapshots() if old else set()
    removed = [uri for uri in old if uri not in planned]
    for uri in removed:
        warehouse.remove_snapshot(uri)
    rollups = warehouse.rollups(cluster_id)
    first = (now - timedelta(days=rollup_days)).date().isoformat()
    stale = [day for day in rollups.days() if day < first]
    for day in stale:
        rollups.discard(day)
    return [*removed, *stale]
