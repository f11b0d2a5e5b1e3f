"""How long one application plans many clusters, and how long single runs take: `make bench-fleet`.

Writes benchmarks/results/fleet.json and the table in docs/benchmarks.md. Both are submitted as an
operator does, with Spark's start, both gates and every file. Single runs take long, so they are
made of some of the clusters, and the same ones are planned in an application of their own: every
figure is measured, none is scaled.
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
from typing import Any

from benchmarks import document
from benchmarks.clusters import Case, build, snapshot_of
from benchmarks.planning.job import submitted
from rehome.warehouse import Warehouse

RESULTS = Path(__file__).parents[1] / "results" / "fleet.json"
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
    """The fleet in one application, and some of it in another one and by single runs."""
    case = Case("skew", skew=0.4)
    each = {"replicas": replicas // case.replicas * case.replicas}
    with tempfile.TemporaryDirectory(prefix="rehome-bench-") as directory:
        warehouse = Warehouse(Path(directory).as_uri())
        request = Path(directory) / "request.json"
        request.write_text(json.dumps(PARAMS))
        uris = []
        for number in range(clusters):
            instance = build(case, replicas // case.replicas, BROKERS, seed=number + 1)
            snapshot = replace(snapshot_of(instance, disks=True), cluster_id=f"c{number:03d}")
            uris.append(warehouse.write_snapshot(snapshot))
        rows = [
            _row("one application", *_together(uris[:count], request, directory), each)
            for count in dict.fromkeys((clusters, alone))
        ]
        runs = [
            submitted(
                *("plan.py", "--snapshot", uri, "--request", str(request)),
                *("--out", f"{directory}/alone-{number}"),
            )
            for number, uri in enumerate(uris[:alone])
        ]
        took, cpu = sum(took for took, _ in runs), sum(seen["cpu_s"] for _, seen in runs)
        return [*rows, _row("single runs, one after the other", alone, took, cpu, 1, each)]


def _together(uris: list[str], request: Path, directory: str) -> tuple[int, float, float, int]:
    """How many clusters, seconds, processor seconds, and clusters in the largest task."""
    name = f"fleet-of-{len(uris)}"
    shared = ("--request", str(request), "--out", f"{Path(directory).as_uri()}/plans")
    took, seen = submitted("fleet.py", "--snapshots", *uris, *shared, "--name", name)
    planned = json.loads((Path(directory) / "plans" / f"{name}.json").read_text())
    assert len(planned) == len(uris)
    assert all(entry["plan_hash"] for entry in planned), planned
    return len(uris), took, seen["cpu_s"], max(Counter(entry["task"] for entry in planned).values())


def _row(
    what: str, clusters: int, took: float, cpu: float, largest: int, each: dict[str, int]
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
    parser.add_argument("--alone", type=int, default=20, help="clusters that are planned alone")
    options = parser.parse_args()
    rows = measured(options.clusters, options.replicas, options.alone)
    made = f"Made {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores."
    RESULTS.write_text(json.dumps({"made": made, "rows": rows}, indent=1) + "\n")
    lines = document.table(COLUMNS, rows)
    document.put(document.DOCS / "benchmarks.md", "bench-fleet", [made, "", *lines])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
