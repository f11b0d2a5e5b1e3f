"""A cluster's brokers as a snapshot shows them, with the load that its history knows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rehome.account.clusters.cluster_facts import BrokerState, KnownLoad
from rehome.cluster.snapshot.columns import RATE_COLUMNS
from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import BrokerId


def broker_states(snapshot: Snapshot, load: KnownLoad | None = None) -> list[BrokerState]:
    """Every broker, by id.

    :param load: by what was before this snapshot; None = there is no history.
    """
    replicas, dirs = snapshot.replicas, snapshot.log_dirs
    replica_sums = _by_broker(
        replicas, ("broker", "count"), *((n, "sum") for n in ("is_leader", "in_isr", "size_bytes"))
    )
    online = dirs.filter(pc.invert(dirs["offline"]))
    disks = _by_broker(online, ("total_bytes", "sum"), ("usable_bytes", "sum"))
    off = _by_broker(dirs, ("offline", "sum"), ("cordoned", "sum"))
    loads = load.by_broker(snapshot) if load is not None else {}
    states = []
    for row in sorted(snapshot.brokers.to_pylist(), key=lambda row: row["broker"]):
        broker = row["broker"]
        holds, has, lacks = (of.get(broker, {}) for of in (replica_sums, disks, off))
        count = holds.get("broker_count", 0)
        answered = row["live"] and row["answered"]
        states.append(
            BrokerState(
                broker=broker,
                rack=tuple(row["rack_path"]),
                live=row["live"],
                problem="" if answered else row["error"] or "it did not answer",
                replicas=count,
                leaders=holds.get("is_leader_sum") or 0,
                out_of_sync=count - (holds.get("in_isr_sum") or 0),
                size_bytes=holds.get("size_bytes_sum") or (0 if answered else None),
                total_bytes=has.get("total_bytes_sum"),
                usable_bytes=has.get("usable_bytes_sum"),
                offline_log_dirs=lacks.get("offline_sum") or 0,
                cordoned_log_dirs=lacks.get("cordoned_sum") or 0,
                throttled={
                    key: row[column]
                    for column, key in RATE_COLUMNS.items()
                    if row[column] is not None
                },
                config_problem=row["config_error"] or "",
                **loads.get(broker, {}),
            )
        )
    return states


def _by_broker(table: pa.Table, *columns: tuple[str, str]) -> dict[BrokerId, dict[str, Any]]:
    rows = table.group_by("broker").aggregate(list(columns)).to_pylist()
    return {row["broker"]: row for row in rows}
