"""How long history takes to roll up, and the load model to be made of it: `make bench-load`.

Writes benchmarks/results/load.json. The history is one cluster's: snapshots with all tables, one
consumer group that reads everything, log-normal rates that swing over the day. Snapshots are made
before the clock starts, in a directory that is removed at the end. Seconds are of the wall clock;
Spark runs on local[*] and is started before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rehome.cluster.snapshot.model import (
    BROKERS,
    GROUP_OFFSETS,
    GROUPS,
    LOG_DIRS,
    REPLICAS,
    TOPICS,
    Snapshot,
)
from rehome.load_history.daily_rollups import SnapshotPace, pending_days, window
from rehome.load_history.histogram import RELATIVE_ERROR
from rehome.load_history.known_rates import LoadHistory
from rehome.load_history.load_profile import loads_of
from rehome.warehouse import Warehouse, read_snapshot
from spark_jobs.load_model import loads
from spark_jobs.rollup import roll_up_all
from spark_jobs.session import spark_session

RESULTS = Path(__file__).parents[1] / "results" / "load.json"
CLUSTER = "bench"
START = datetime(2026, 1, 5, tzinfo=UTC)
PER_TOPIC = 50
BROKER_COUNT = 100
RECORD_BYTES = 500
DAY_S = 86_400


class History:
    """Snapshots of a cluster, replica by replica, at any time."""

    def __init__(self, partitions: int, replication_factor: int) -> None:
        rng = np.random.default_rng(1)
        self.partitions = partitions
        self.mean = rng.lognormal(8, 2, partitions)
        self.phase = rng.uniform(0, 2 * np.pi, partitions)
        topics = partitions // PER_TOPIC
        names = np.array([f"topic-{number:06}" for number in range(topics)])
        self.topic = pa.array(np.repeat(names, PER_TOPIC))
        self.number = pa.array(np.tile(np.arange(PER_TOPIC, dtype=np.int32), topics))
        self.topics = pa.table(
            {
                "topic": names,
                "topic_id": names,
                "internal": [False] * topics,
                "visible": [True] * topics,
                "cleanup_policy": ["delete"] * topics,
            }
        )
        rf = replication_factor
        count = partitions * rf
        first = np.arange(count) // rf
        position = np.arange(count, dtype=np.int32) % rf
        no = np.zeros(count, bool)
        self.row_of = first
        self.fixed = {
            "topic": self.topic.take(pa.array(first)),
            "partition": self.number.take(pa.array(first)),
            "broker": pa.array(((first + position) % BROKER_COUNT).astype(np.int32)),
            "position": pa.array(position),
            "is_leader": pa.array(position == 0),
            "in_isr": pa.array(~no),
            "adding": pa.array(no),
            "removing": pa.array(no),
            "log_dir": pa.array(["/data"] * count),
        }
        self.leads = position == 0

    def written(self, seconds: float) -> Any:
        """(P,) records since the start: the rate swings between nothing and twice its mean."""
        day = 2 * np.pi / DAY_S
        swing = np.sin(day * seconds + self.phase) - np.sin(self.phase)
        return (self.mean * (seconds + swing / day) / RECORD_BYTES).astype(np.int64)

    def snapshot(self, seconds: float) -> Snapshot:
        end = self.written(seconds)
        ends = end[self.row_of]
        replicas = self.fixed | {
            "size_bytes": pa.array(ends * RECORD_BYTES),
            "log_end_offset": pa.array(ends),
            "log_start_offset": pa.array(np.zeros(len(ends), np.int64), mask=~self.leads),
        }
        offsets = {
            "group": pa.array(["readers"] * self.partitions),
            "topic": self.topic,
            "partition": self.number,
            "committed_offset": pa.array(end),
        }
        groups = [{"group": "readers", "coordinator": 1, "state": "Stable"}]
        return Snapshot(
            cluster_id=CLUSTER,
            taken_at=START + timedelta(seconds=seconds),
            duration_s=1.0,
            brokers=BROKERS.empty_table(),
            log_dirs=LOG_DIRS.empty_table(),
            topics=_filled(self.topics, TOPICS),
            replicas=_filled(pa.table(replicas), REPLICAS),
            groups=pa.Table.from_pylist(groups, schema=GROUPS),
            group_offsets=_filled(pa.table(offsets), GROUP_OFFSETS),
        )


def _filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with all columns of the schema, null where it has none."""
    return pa.table(
        {
            f.name: table.column(f.name)
            if f.name in table.column_names
            else pa.nulls(len(table), f.type)
            for f in schema
        },
        schema=schema,
    )


def measured(warehouse: Warehouse, options: argparse.Namespace) -> dict[str, Any]:
    """What rolling up and modelling took, and how far the p95 is from the exact one."""
    history = History(options.partitions, options.replication_factor)
    step_s = DAY_S / options.snapshots
    count = options.days * options.snapshots
    for number in range(count):
        warehouse.write_snapshot(history.snapshot(number * step_s))
    size = sum(file.stat().st_size for file in options.directory.rglob("*.parquet"))
    with spark_session("rehome-bench-load") as spark:
        spark.range(1).count()
        started = time.perf_counter()
        roll_up_all(spark, pending_days(warehouse, CLUSTER), SnapshotPace(longest_s=2 * step_s))
        rollup_s = time.perf_counter() - started
        started = time.perf_counter()
        modelled = loads(spark, warehouse, [CLUSTER], options.days)
        modelled.write.parquet(f"{warehouse.uri}/loads")
        model_s = time.perf_counter() - started
    started = time.perf_counter()
    snapshot = read_snapshot(warehouse.snapshots(CLUSTER)[-1])
    LoadHistory.read(warehouse, snapshot).with_rates(snapshot)
    plan_s = time.perf_counter() - started
    rollups = options.directory.glob("rollups/**/*.parquet")
    return {
        "days": options.days,
        "snapshots_per_day": options.snapshots,
        "partitions": options.partitions,
        "replica_rows": count * options.partitions * options.replication_factor,
        "snapshots_bytes": size,
        "rollups_bytes": sum(file.stat().st_size for file in rollups),
        "rollup_s": round(rollup_s, 1),
        "rollup_s_per_snapshot": round(rollup_s / count, 3),
        "model_s": round(model_s, 1),
        "rates_for_a_plan_s": round(plan_s, 1),
        "p95_worst_relative_error": round(_worst_error(warehouse, history, options), 4),
        "p95_stated_relative_error": round(RELATIVE_ERROR, 4),
    }


def _worst_error(warehouse: Warehouse, history: History, options: argparse.Namespace) -> float:
    """Of a thousand partitions, against the exact p95 of their intervals' rates."""
    some = np.linspace(0, options.partitions - 1, 1000).astype(int)
    step_s = DAY_S / options.snapshots
    count = options.days * options.snapshots
    records = np.stack([history.written(number * step_s)[some] for number in range(count)])
    rates = np.sort(np.diff(records, axis=0) * RECORD_BYTES / step_s, axis=0)
    exact = rates[int(np.ceil(0.95 * len(rates))) - 1]
    found = loads_of(window(warehouse, CLUSTER, options.days)).column("bytes_in_p95").to_numpy()
    known = exact >= 1
    return float(np.abs(found[some][known] / exact[known] - 1).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--snapshots", type=int, default=96, help="per day")
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where the history lies meanwhile")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.directory = Path(tempfile.mkdtemp(prefix="rehome-bench-", dir=options.directory))
    try:
        result = measured(Warehouse(options.directory.as_uri()), options)
    finally:
        shutil.rmtree(options.directory)
    result |= {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
