"""Snapshots of brokers with several log dirs that replicas are copied to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from rehome.cluster.snapshot.model import LOG_DIRS, REPLICAS, Snapshot
from rehome.domain.kafka import ANY_LOG_DIR
from rehome.domain.plan.move import Move
from tests.planning.clusters import Cluster

Disks = Mapping[int, Mapping[str, tuple[int, int]]]
"""Broker → path → (total, usable) bytes; a missing broker reports nothing."""


def with_disks(of: Cluster, disks: Disks, *, cordoned: Iterable[tuple[int, str]] = ()) -> Snapshot:
    """The cluster's snapshot with these log dirs; replicas lie in them in turn."""
    plain, shut = of.snapshot(), set(cordoned)
    rows = [
        {
            "broker": broker,
            "log_dir": path,
            "total_bytes": disks.get(broker, {}).get(path, (None, None))[0],
            "usable_bytes": disks.get(broker, {}).get(path, (None, None))[1],
            "offline": False,
            "cordoned": (broker, path) in shut,
            "stray_replicas": 0,
        }
        for broker in of.racks
        for path in disks.get(broker, {"/d": ()})
    ]
    paths = {broker: list(disks.get(broker, {"/d": ()})) for broker in of.racks}
    replicas = plain.replicas.to_pylist()
    for row in replicas:
        mine = paths[row["broker"]]
        row["log_dir"] = mine[row["partition"] % len(mine)]
    return replace(
        plain,
        log_dirs=pa.Table.from_pylist(rows, LOG_DIRS),
        replicas=pa.Table.from_pylist(replicas, REPLICAS),
    )


def overfilled(moves: Iterable[Move], disks: Disks, min_free: float = 0.0) -> list[str]:
    """Log dirs that would run full: those that are named for too much, and those that a broker
    may choose for all that comes without a name. Each lies on a volume of its own.
    """
    named: dict[tuple[int, str], int] = {}
    free: dict[int, int] = {}
    for move in moves:
        wanted = move.target_log_dirs or (ANY_LOG_DIR,) * len(move.target)
        for broker, path in zip(move.target, wanted, strict=True):
            if broker in move.current:
                assert path == ANY_LOG_DIR
            elif path == ANY_LOG_DIR:
                free[broker] = free.get(broker, 0) + move.size_bytes
            else:
                named[broker, path] = named.get((broker, path), 0) + move.size_bytes
    return [
        f"{broker} {path}"
        for broker, dirs in disks.items()
        for path, (total, usable) in dirs.items()
        if named.get((broker, path), 0) + free.get(broker, 0) > max(0, usable - min_free * total)
        and named.get((broker, path), 0) + free.get(broker, 0) > 0
    ]
