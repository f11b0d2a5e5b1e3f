"""How full the brokers' disks will be: when the move has ended, and some days later."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import NONE, Floats, Ints
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.plan import Plan
from rehome.domain.time_range import DAY_S
from rehome.load_history.key_codes import found_at, keys_of
from rehome.load_history.known_rates import GROWTH, LoadHistory
from rehome.planning.model.arrays import ClusterArrays, broker_sums


@dataclass(frozen=True, slots=True)
class DiskForecast:
    """One broker's disks, in bytes over its log dirs that are not offline.

    :param total_bytes: null where a log dir does not report them, as are the free ones.
    :param growth_bytes_per_s: of its replicas after the plan.
    :param free_bytes_after_move: when the plan has ended, by its own prediction of the time.
    :param free_bytes_in_days: as many days after that as the forecast is for.
    :param days_until_full: from the end of the plan, at that growth; null = it does not grow.
    """

    broker: BrokerId
    total_bytes: int | None
    free_bytes: int | None
    growth_bytes_per_s: float
    free_bytes_after_move: int | None
    free_bytes_in_days: int | None
    days_until_full: float | None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return asdict(self)


def disk_forecast(
    snapshot: Snapshot, plan: Plan | None, history: LoadHistory, days: float
) -> tuple[DiskForecast, ...]:
    """What the disks of each broker will hold; by its replicas' growth in the history's window.

    :param plan: None = nothing is moved.

    While the plan runs a broker grows by what it hosts today or will host, whichever is more; a
    partition whose growth is not known does not grow, and none shrinks below nothing.
    """
    arrays = ClusterArrays.from_snapshot(snapshot)
    growth, count = _growth(arrays, history), len(arrays.brokers.ids)
    rows = arrays.rows if plan is None else _rows_after(arrays, plan)
    now, later = (broker_sums(r, growth, count) for r in (arrays.rows, rows))
    move_s = plan.summary.predicted_s or 0.0 if plan is not None else 0.0
    sizes = arrays.size_bytes.astype(float)
    brought = broker_sums(rows, sizes, count) - broker_sums(arrays.rows, sizes, count)
    during = np.maximum(now, later) * move_s
    # A log that shrinks stops at nothing.
    change = np.maximum(growth * days * DAY_S, -sizes)
    after = broker_sums(rows, change, count)
    disks = _disks(snapshot)
    return tuple(
        _forecast(int(broker), disks.get(int(broker)), *map(float, numbers))
        for broker, *numbers in zip(arrays.brokers.ids, later, brought + during, after, strict=True)
    )


def load_report(snapshot: Snapshot, plan: Plan, history: LoadHistory, days: int) -> dict[str, Any]:
    """What a plan's load.json holds. Without a known growth there is no forecast."""
    has_growth = history.is_known(GROWTH)
    forecast = disk_forecast(snapshot, plan, history, days) if has_growth else ()
    return {
        "history": asdict(history.span),
        "resources": [item.to_json() for item in history.resources],
        "forecast_days": days,
        "forecast": [item.to_json() for item in forecast],
    }


def _forecast(
    broker: BrokerId, disk: tuple[int, int] | None, growth: float, move: float, after: float
) -> DiskForecast:
    if disk is None:
        return DiskForecast(broker, None, None, round(growth, 3), None, None, None)
    total, free = disk
    left = free - move
    return DiskForecast(
        broker=broker,
        total_bytes=total,
        free_bytes=free,
        growth_bytes_per_s=round(growth, 3),
        free_bytes_after_move=int(left),
        free_bytes_in_days=int(left - after),
        days_until_full=round(max(left, 0.0) / growth / DAY_S, 2) if growth > 0 else None,
    )


def _growth(arrays: ClusterArrays, history: LoadHistory) -> Floats:
    """(P,) of ``arrays``: bytes per second, 0 where not known."""
    place = {topic: code for code, topic in enumerate(history.topics)}
    codes: Ints = np.array([place.get(topic, -1) for topic in arrays.topics], np.int64)
    keys = keys_of(codes[arrays.topic_of], arrays.partition_of)
    at = found_at(keys, history.keys)
    growth = history.growth if len(history.growth) else np.zeros(1)
    return np.where(at >= 0, np.nan_to_num(growth[at]), 0.0)


def _rows_after(arrays: ClusterArrays, plan: Plan) -> Any:
    """(P, R) dense brokers when the plan has ended, padded with NONE."""
    index, brokers = arrays.partition_index(), arrays.brokers.index()
    width = max([arrays.rows.shape[1], *(len(move.target) for move in plan.moves)])
    rows = np.full((len(arrays.rows), width), NONE, np.int32)
    rows[:, : arrays.rows.shape[1]] = arrays.rows
    for move in plan.moves:
        row = rows[index[move.partition]]
        row[:] = NONE
        row[: len(move.target)] = [brokers[broker] for broker in move.target]
    return rows


def _disks(snapshot: Snapshot) -> dict[BrokerId, tuple[int, int]]:
    """Total and free bytes of each broker's log dirs; without those that do not report it."""
    disks: dict[BrokerId, tuple[int, int]] = {}
    unknown = set()
    for row in snapshot.log_dirs.to_pylist():
        if row["offline"]:
            continue
        if row["total_bytes"] is None or row["usable_bytes"] is None:
            unknown.add(row["broker"])
            continue
        total, free = disks.get(row["broker"], (0, 0))
        disks[row["broker"]] = (total + row["total_bytes"], free + row["usable_bytes"])
    return {broker: disk for broker, disk in disks.items() if broker not in unknown}
