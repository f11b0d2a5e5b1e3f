"""How long the gates take on a million replicas: `make bench-gates`.

Writes benchmarks/results/gates.json: one entry per gate, with the rows and expectations of each
of its tables. Spark runs, its first query is done, and Great Expectations is imported before the
clock starts: the job imports it while its JVM starts. Times are seconds of wall clock; ``cpu_s`` is
what Python and the JVM took of the processors, for shared machines.
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

from benchmarks import document
from benchmarks.clusters import Case, build, snapshot_of
from rehome.domain.actions import Action
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.request.request import ReassignmentRequest
from rehome.packaging import local_spark
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.quality.engine.context import prepare
from rehome.quality.engine.results import GateResult, refusal
from rehome.quality.gates import check_plan, check_snapshot
from rehome.warehouse import Warehouse
from spark_jobs.session import fit_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parents[1] / "results" / "gates.json"
COLUMNS = {
    "gate": "gate",
    "replicas": "replicas",
    "rules": "expectations",
    "rows × rules": "checks",
    "s, first": "first_s",
    "s, median": "median_s",
    "processor s": "cpu_s",
}


def measured(spark: SparkSession, replicas: int, brokers: int, runs: int) -> list[dict[str, Any]]:
    """Both gates on one cluster, of which a twentieth of the brokers is drained; in the order of a
    plan job: the snapshot is judged before there is a plan.
    """
    case = Case("drain", drained=0.05)
    instance = build(case, -(-replicas // case.replicas), brokers)
    snapshot = snapshot_of(instance, disks=True)
    request = ReassignmentRequest(
        Action.DRAIN, brokers=tuple(np.flatnonzero(instance.drained).tolist())
    )
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    sizes = {
        "brokers": brokers,
        "log_dirs": brokers,
        "topics": len(snapshot.topics),
        "replicas": len(snapshot.replicas),
        "partitions": len(snapshot.replicas) // case.replicas,
    }
    with tempfile.TemporaryDirectory(prefix="rehome-bench-") as directory:
        uri = Warehouse(Path(directory).as_uri()).write_snapshot(snapshot)

        def gate_snapshot() -> GateResult:
            return check_snapshot(spark, uri, snapshot, snapshot.taken_at, max_age_s=3600)

        found = [_timed(gate_snapshot, sizes, runs, jvm)]
    plan = make_plan(snapshot, request, PlanOptions(plan_id="bench"))
    sent, back = reassignment_json(plan.moves), rollback_json(plan.moves)
    sizes = {
        "moves": len(plan.moves),
        "brokers_after": brokers,
        "log_dirs_after": brokers,
        "topics_after": len(snapshot.topics),
        "files": 2 * len(plan.moves),
    }

    def gate_plan() -> GateResult:
        return check_plan(spark, snapshot, plan, request, reassignment=sent, rollback=back)

    return [*found, _timed(gate_plan, sizes, runs, jvm)]


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
            raise SystemExit(f"The gate on what is sound did not pass:\n{refusal(result)}")
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
    settings = local_spark() | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
    }
    spark = builder.config(map=settings).getOrCreate()
    fit_to(spark, options.replicas)
    spark.range(1000).selectExpr("sum(id)").collect()
    prepare()
    machine: dict[str, Any] = {
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
    made = f"Made {machine['date'][:10]} on {machine['cores']} cores."
    lines = [made, "", *document.table(COLUMNS, entries)]
    document.put(document.DOCS / "benchmarks.md", "bench-gates", lines)
    for entry in entries:
        print(
            f"{entry['gate']}: {entry['expectations']} expectations, {entry['checks']:,} checks: "
            f"{entry['median_s']} s (first {entry['first_s']} s), {entry['cpu_s']} CPU s"
        )


if __name__ == "__main__":
    main()
