"""A warehouse with the history of a cluster whose load is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rehome.load_history.daily_rollups import SnapshotPace, pending_days, roll_up, window
from rehome.load_history.rollup import Rollup
from rehome.warehouse import Warehouse
from tests.quality.snapshots import Rows

CLUSTER = "test"
START = datetime(2026, 1, 5, 22, 0, tzinfo=UTC)
PACE = SnapshotPace()
RATE = 1_000  # bytes per second of partition n are n times that
Change = Callable[[Rows], Any]


class Cluster:
    """A cluster whose partition n is written to at n kB/s, with snapshots of it."""

    def __init__(self, uri: str) -> None:
        self.warehouse = Warehouse(uri)

    def snapshot(self, minutes: float, change: Change | None = None) -> str:
        rows = Rows()
        for row in rows.replicas:
            written = int(minutes * 60) * RATE * row["partition"]
            row.update(size_bytes=written, log_end_offset=written // 100, log_start_offset=0)
        if change is not None:
            change(rows)
        taken_at = START + timedelta(minutes=minutes)
        return self.warehouse.write_snapshot(replace(rows.snapshot(), taken_at=taken_at))

    def roll_up(self) -> None:
        for day in pending_days(self.warehouse, CLUSTER):
            roll_up(day, PACE)

    def rollup(self) -> Rollup:
        return window(self.warehouse, CLUSTER, 7)
