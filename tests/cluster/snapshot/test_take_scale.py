"""A snapshot of 20,000 replicas takes seconds, not minutes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from benchmarks.snapshots.snapshot import crowded_gateway
from rehome.cluster.snapshot.take import take_snapshot

REPLICAS = 20_000
LIMIT_S = 10.0


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_thousand_replicas_are_read_within_ten_seconds() -> None:
    with crowded_gateway(REPLICAS, timeout_s=300) as gateway:
        snapshot = take_snapshot(gateway, datetime.now(UTC))
    rows = snapshot.replicas
    assert rows.num_rows >= REPLICAS
    for column in ("size_bytes", "log_dir", "log_end_offset"):
        assert rows.column(column).null_count == 0
    print(f"{rows.num_rows} replicas on 4 brokers in {snapshot.duration_s} s")
    assert snapshot.duration_s <= LIMIT_S
