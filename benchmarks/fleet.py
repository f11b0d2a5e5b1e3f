"""How long one application plans many clusters, and how long single ones would: `make bench-fleet`.

Writes benchmarks/results/fleet.json and the table in docs/benchmarks.md. Both are submitted as an
operator does, with Spark's start, both gates and every file. Some of the clusters are planned
alone; what all of them would take alone is estimated from these.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import document
from benchmarks.clusters import Case, build, snapshot_of
from benchmarks.job import submitted
from include.warehouse import Warehouse

RESULTS = Path(__file__).parent / "results" / "fleet.json"
BROKERS = 12
PARAMS = {"action": "rebalance", "tolerance": 0.05, "throttle": 50_000_000}
COLUMNS = {
    "what": "what",
    "clusters": "clusters",
    "replicas of each": "replicas",
    "s": "total_s",
    "s for each": "each_s",
    "processor s": "cpu_s",
    "clusters in the largest task": "largest_task",
}


def measured(clusters: int, replicas: int, alone: int) -> list[dict[str, Any]]:
    """The fleet in one application, some of it alone, and what all of it would take alone."""
    case = Case("skew", skew=0.4)
    with tempfile.TemporaryDirectory(prefix="rehome-bench-") as directory:
        warehouse = Warehouse(Path(directory).as_uri())
        request = Path(directory) / "request.json"
        request.write_text(json.dumps(PARAMS))
        uris = []
        for number in range(clusters):
            instance = build(case, replicas // case.replicas, BROKERS, seed=number + 1)
            snapshot = replace(snapshot_of(instance, disks=True), cluster_id=f"c{number:03d}")
            uris.append(warehouse.write_snapshot(snapshot))
        shared = ("--request", str(request), "--out", f"{warehouse.uri}/plans")
        took, seen = submitted("fleet.py", "--snapshots", *uris, *shared)
        told = json.loads((Path(directory) / "plans" / "fleet.json").read_text())
        assert all(entry["plan_hash"] for entry in told), told
        largest = max(Counter(entry["task"] for entry in told).values())
        each = {"replicas": replicas // case.replicas * case.replicas}
        rows = [_row("one application", clusters, took, seen["cpu_s"], each, largest)]
        singles = [
            submitted(
                *("plan.py", "--snapshot", uri, "--request", str(request)),
                *("--out", f"{directory}/alone-{number}"),
            )
            for number, uri in enumerate(uris[:alone])
        ]
        seconds = [took for took, _ in singles]
        cpu = [seen["cpu_s"] for _, seen in singles]
        rows.append(_row("alone, measured", len(singles), sum(seconds), sum(cpu), each))
        rows.append(
            _row("alone, estimated", clusters, clusters * mean(seconds), clusters * mean(cpu), each)
        )
        return rows


def _row(
    what: str, clusters: int, took: float, cpu: float, each: dict[str, int], largest: int = 1
) -> dict[str, Any]:
    return {
        "what": what,
        "clusters": clusters,
        **each,
        "total_s": round(took, 1),
        "each_s": round(took / clusters, 2),
        "cpu_s": round(cpu, 1),
        "largest_task": largest,
    }


def main() -> None:
    """Measure and write down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=2000, help="of each cluster")
    parser.add_argument("--alone", type=int, default=6, help="clusters that are planned alone")
    options = parser.parse_args()
    rows = measured(options.clusters, options.replicas, options.alone)
    made = f"Made {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores."
    RESULTS.write_text(json.dumps({"made": made, "rows": rows}, indent=1) + "\n")
    lines = document.table(COLUMNS, rows)
    document.put(document.DOCS / "benchmarks.md", "bench-fleet", [made, "", *lines])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
