"""How long it takes to judge a snapshot of a million replicas: `make bench-watch`.

Writes benchmarks/results/watch.json. One run reads the snapshot from Parquet, judges it by every
rule, and brings the findings in an SQLite ledger up to date, as `watch_clusters` does for each
snapshot; there is no history to forecast disks from. A broker of the cluster is dead, and the
others are out of balance. Times are seconds of wall clock; ``cpu_s`` is of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks import document
from benchmarks.clusters import Case, build, snapshot_of
from rehome.cluster.snapshot.model import Snapshot
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.store import Ledger
from rehome.warehouse import Warehouse, read_snapshot
from rehome.watching.judging.judge import ClusterFacts, judge
from rehome.watching.open_and_close import after_snapshot

RESULTS = Path(__file__).parents[1] / "results" / "watch.json"
DEAD = 7
RULES = WatchRules(
    snapshots_to_open=1,
    grace_s=0,
    replication_factors={"*": 2},
)
COLUMNS = {
    "replicas": "replicas",
    "brokers": "brokers",
    "findings": "findings",
    "read s": "read_s",
    "judge s": "judge_s",
    "ledger s": "ledger_s",
    "total s, worst": "total_s",
    "processor s": "cpu_s",
}


def measured(replicas: int, brokers: int, runs: int) -> dict[str, Any]:
    """Several runs on one cluster; the worst total, medians of its parts."""
    case = Case("skew", skew=0.5)
    snapshot = with_dead(snapshot_of(build(case, -(-replicas // case.replicas), brokers), True))
    read, judged, written, total, cpu = [], [], [], [], []
    with tempfile.TemporaryDirectory(prefix="rehome-bench-") as directory:
        uri = Warehouse(Path(directory).as_uri()).write_snapshot(snapshot)
        with Ledger.open(f"sqlite:///{directory}/ledger.db") as ledger:
            for number in range(runs):
                begun, used = time.perf_counter(), time.process_time()
                found = read_snapshot(uri)
                have = time.perf_counter()
                shown = judge(found, RULES, ClusterFacts())
                known = time.perf_counter()
                taken_at = snapshot.taken_at + timedelta(minutes=10 * number)
                followed = ledger.follow_findings(
                    snapshot.cluster_id,
                    taken_at,
                    after_snapshot(
                        shown.sightings, RULES, shown.unknown, longest_gap=timedelta(minutes=30)
                    ),
                )
                done = time.perf_counter()
                read.append(have - begun)
                judged.append(known - have)
                written.append(done - known)
                total.append(done - begun)
                cpu.append(time.process_time() - used)
    if FindingKind.DEAD_BROKER not in {each.kind for each in followed.open}:
        raise SystemExit("The dead broker was not found.")
    return {
        "replicas": len(snapshot.replicas),
        "brokers": brokers,
        "findings": len(followed.open),
        "kinds": sorted({each.kind.value for each in followed.open}),
        "read_s": round(median(read), 2),
        "judge_s": round(median(judged), 2),
        "ledger_s": round(median(written), 2),
        "total_s": round(max(total), 2),
        "cpu_s": round(median(cpu), 2),
        "runs": runs,
    }


def with_dead(snapshot: Snapshot) -> Snapshot:
    """The same cluster with a broker that is not alive."""
    rows = snapshot.brokers.to_pylist()
    for row in rows:
        row["live"] = row["broker"] != DEAD
    return replace(snapshot, brokers=pa.Table.from_pylist(rows, snapshot.brokers.schema))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    machine: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }
    entry = machine | measured(args.replicas, args.brokers, args.runs)
    RESULTS.write_text(json.dumps([entry], indent=1) + "\n")
    made = f"Made {machine['date'][:10]} on {machine['cores']} cores shared with other work."
    lines = [made, "", *document.table(COLUMNS, [entry])]
    document.put(document.DOCS / "benchmarks.md", "bench-watch", lines)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
