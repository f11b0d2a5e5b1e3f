"""How long the gates take on a million replicas: `make bench-gates`.

Writes benchmarks/results/gates.json: one entry per gate, with the rows and expectations of each
of its tables. Spark runs and its first query is done before the clock starts. Times are seconds of
wall clock; ``cpu_s`` is what Python and the JVM took of the processors, for shared machines.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from include.cluster.snapshot import BROKERS, LOG_DIRS, REPLICAS, TOPICS, Snapshot
from include.planning.kafka_json import reassignment_json, rollback_json
from include.planning.planner import make_plan
from include.planning.request import Action, ReassignmentRequest
from include.quality.gates import check_plan, check_snapshot
from include.quality.results import GateResult
from include.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "gates.json"
DATA_CENTRES, RACKS, PER_TOPIC = 3, 30, 100
TERABYTE = 10**12


def snapshot_of(replicas: int, brokers: int, now: datetime) -> Snapshot:
    """A sound cluster: one replica of each partition in each of three data centres."""
    rng = np.random.default_rng(1)
    partitions = -(-replicas // DATA_CENTRES)
    size = np.rint(np.exp(2 * rng.standard_normal(partitions)) * 1e8).astype(np.int64)
    per_centre = brokers // DATA_CENTRES
    chosen = rng.integers(0, per_centre, (partitions, DATA_CENTRES)) * DATA_CENTRES
    rows = chosen + rng.permuted(np.tile(np.arange(DATA_CENTRES), (partitions, 1)), axis=1)
    return Snapshot(
        cluster_id="bench",
        taken_at=now,
        duration_s=0.0,
        brokers=_brokers(per_centre * DATA_CENTRES),
        log_dirs=_log_dirs(per_centre * DATA_CENTRES),
        topics=_topics(partitions),
        replicas=_replicas(rows, size),
    )


def _brokers(count: int) -> pa.Table:
    racks = [(f"dc{b % DATA_CENTRES}", f"r{b % RACKS}") for b in range(count)]
    rows = [
        {
            "broker": broker,
            "host": f"b{broker}",
            "port": 9092,
            "rack": f"/{centre}/{rack}",
            "rack_path": [centre, rack],
            "live": True,
            "answered": True,
        }
        for broker, (centre, rack) in enumerate(racks)
    ]
    return pa.Table.from_pylist(rows, schema=BROKERS)


def _log_dirs(brokers: int) -> pa.Table:
    rows = [
        {
            "broker": broker,
            "log_dir": "/data/0",
            "total_bytes": 16 * TERABYTE,
            "usable_bytes": 12 * TERABYTE,
            "offline": False,
            "cordoned": False,
            "stray_replicas": 0,
        }
        for broker in range(brokers)
    ]
    return pa.Table.from_pylist(rows, schema=LOG_DIRS)


def _topics(partitions: int) -> pa.Table:
    rows = [
        {
            "topic": f"t{first // PER_TOPIC:07d}",
            "topic_id": str(first),
            "internal": False,
            "visible": True,
            "partitions": min(PER_TOPIC, partitions - first),
            "replication_factor": DATA_CENTRES,
            "min_insync_replicas": 2,
            "leader_throttled_replicas": "",
            "follower_throttled_replicas": "",
        }
        for first in range(0, partitions, PER_TOPIC)
    ]
    return pa.Table.from_pylist(rows, schema=TOPICS)


def _replicas(rows: np.ndarray, size: np.ndarray) -> pa.Table:
    partitions, width = rows.shape
    number = np.repeat(np.arange(partitions), width)
    position = np.tile(np.arange(width, dtype=np.int32), partitions)
    topics = pa.array([f"t{n:07d}" for n in range(number[-1] // PER_TOPIC + 1)])
    yes, no = np.ones(len(number), bool), np.zeros(len(number), bool)
    columns = {
        "topic": topics.take(pa.array(number // PER_TOPIC)),
        "partition": pa.array((number % PER_TOPIC).astype(np.int32)),
        "broker": pa.array(rows.ravel().astype(np.int32)),
        "position": pa.array(position),
        "is_leader": pa.array(position == 0),
        "in_isr": pa.array(yes),
        "adding": pa.array(no),
        "removing": pa.array(no),
        "log_dir": pa.array(["/data/0"]).take(pa.array(np.zeros(len(number), np.int64))),
        "size_bytes": pa.array(np.repeat(size, width)),
        "log_end_offset": pa.array(np.repeat(size // 1000, width)),
        "future_log_dir": pa.nulls(len(number), pa.string()),
        "future_size_bytes": pa.nulls(len(number), pa.int64()),
    }
    return pa.table(columns, schema=REPLICAS)


def measured(spark: SparkSession, replicas: int, brokers: int, runs: int) -> list[dict[str, Any]]:
    """Both gates on one cluster, and what they took."""
    now = datetime.now(UTC)
    snapshot = snapshot_of(replicas, brokers, now)
    request = ReassignmentRequest(Action.DRAIN, brokers=tuple(range(0, brokers, 20)))
    plan = make_plan(snapshot, request, plan_id="bench")
    sent, back = reassignment_json(plan.moves), rollback_json(plan.moves)
    sizes = {
        "brokers": brokers,
        "log_dirs": brokers,
        "topics": len(snapshot.topics),
        "replicas": len(snapshot.replicas),
        "partitions": len(snapshot.replicas) // DATA_CENTRES,
        "moves": len(plan.moves),
        "brokers_after": brokers,
        "log_dirs_after": brokers,
        "files": 2 * len(plan.moves),
    }
    with tempfile.TemporaryDirectory(prefix="rehome-bench-") as directory:
        uri = Warehouse(Path(directory).as_uri()).write_snapshot(snapshot)

        def gate_snapshot() -> GateResult:
            return check_snapshot(spark, uri, snapshot, now, max_age_s=3600)

        def gate_plan() -> GateResult:
            return check_plan(spark, snapshot, plan, request, reassignment=sent, rollback=back)

        jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
        return [_timed(gate, sizes, runs, jvm) for gate in (gate_snapshot, gate_plan)]


def _cpu_s(jvm: int) -> float:
    """Processor time that this process and the JVM have taken so far."""
    fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])  # utime, stime: proc(5)
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _timed(gate: Any, sizes: dict[str, int], runs: int, jvm: int) -> dict[str, Any]:
    seconds, cpu_seconds = [], []
    for _ in range(runs):
        started, cpu = time.perf_counter(), _cpu_s(jvm)
        result = gate()
        seconds.append(round(time.perf_counter() - started, 2))
        cpu_seconds.append(round(_cpu_s(jvm) - cpu, 2))
        if not result.passed:
            raise SystemExit(f"The gate on the {result.gate} refuses what is sound: {result}")
    expectations = Counter(outcome.table for outcome in result.outcomes)
    return {
        "gate": result.gate,
        "expectations": len(result.outcomes),
        "checks": sum(sizes.get(table, 1) * count for table, count in expectations.items()),
        "tables": {
            table: {"rows": sizes.get(table, 1), "expectations": count}
            for table, count in expectations.items()
        },
        "first_s": seconds[0],
        "median_s": median(seconds),
        "worst_s": max(seconds),
        "cpu_s": median(cpu_seconds),
        "runs": runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=999)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("rehome-bench-gates")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
    }
    spark = builder.config(map=settings).getOrCreate()
    spark.range(1000).selectExpr("sum(id)").collect()
    machine = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }
    try:
        gates = measured(spark, options.replicas, options.brokers, options.runs)
    finally:
        spark.stop()
    entries = [machine | {"replicas": options.replicas} | gate for gate in gates]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(entries, indent=1) + "\n")
    for entry in entries:
        print(
            f"{entry['gate']}: {entry['expectations']} expectations, {entry['checks']:,} checks: "
            f"{entry['median_s']} s (first {entry['first_s']} s), {entry['cpu_s']} CPU s"
        )


if __name__ == "__main__":
    main()
