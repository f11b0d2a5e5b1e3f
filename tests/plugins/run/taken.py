"""Snapshots of a warehouse that a task has taken, as far as the ledger knows."""

from __future__ import annotations

from contextlib import suppress

from rehome.errors import RehomeError
from rehome.ledger.store import Ledger
from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot
from rehome.warehouse import Warehouse, cluster_of, taken_at_of


def taken(
    ledger: Ledger,
    uri: str,
    connection: str = "kafka_default",
    run: tuple[str, str] = ("collect_snapshots", "r1"),
) -> str:
    """Have the ledger know a snapshot as one that the task ``snapshot`` of a run has taken; returns
    its URI. Its files need not be there.
    """
    root, name = uri.split("/snapshots/")
    digest = ""
    with suppress(RehomeError):
        digest = Warehouse(root).snapshot_digest(name)
    if ledger.taken_snapshot(name) is None:
        about = cluster_of(uri), connection, taken_at_of(uri)
        ledger.record_snapshot(TakenSnapshot(name, *about, digest, *run, "snapshot"))
    return uri
