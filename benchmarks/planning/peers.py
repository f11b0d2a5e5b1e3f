"""What other planners make of the same clusters: `make bench-peers`.

Writes benchmarks/results/peers.json, and the table in docs/benchmarks.md. Each tool runs in an
environment of its own below .cache/peers, in memory, without a cluster, for ten minutes at most
per cluster; a size that a tool does not reach is written down as such. The clusters are those of
`make bench-plan`, bytes only, and racks are the data centres: what these tools can be asked for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import document
from benchmarks.clusters import CASES, Case, Instance, build
from benchmarks.planning.plan import WHERE, solved, where_and_when
from rehome.domain.array_types import Rows
from rehome.planning.model.arrays import broker_sums

RESULTS = WHERE / "peers.json"
ROOT = Path(__file__).parents[2]
TOLERANCE = 0.02
LIMIT_S = 600
COLUMNS = {
    "case": "case",
    "replicas": "replicas",
    "planner": "planner",
    "seconds": "seconds",
    "replica moves": "replica_moves",
    "bytes / bound": "moved_over_bound",
    "highest": "highest",
    "lowest": "lowest",
    "rack violations": "rack_violations",
    "": "failed",
}


@dataclass(frozen=True)
class Peer:
    """A planner that installs from the package index.

    :param packages: name and version, and what it needs but does not ask for.
    :param driver: script that feeds it, with its arguments.
    """

    name: str
    packages: tuple[str, ...]
    driver: tuple[str, ...]


PEERS = (
    Peer("kafka-tools size + rackaware", ("kafka-tools==0.1.9", "six"), ("kafka_tools.py",)),
    Peer(
        "kafka-utils count",
        ("kafka-utils==4.1.0",),
        ("kafka_utils.py", "PartitionCountBalancer"),
    ),
    Peer("kafka-utils genetic", ("kafka-utils==4.1.0",), ("kafka_utils.py", "GeneticBalancer")),
)


def environment(packages: tuple[str, ...]) -> Path:
    """The Python of the packages' own environment, made on first use."""
    home = ROOT / ".cache" / "peers" / packages[0]
    python = home / "bin" / "python"
    uv = Path(sys.executable).parent / "uv"
    if not (home / "ready").exists():
        subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, home], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", python, *packages], check=True)
        (home / "ready").touch()
    return python


def answer(peer: Peer, instance: Instance, limit_s: float) -> dict[str, Any]:
    """The tool's rows and seconds, or what went wrong."""
    arrays = instance.arrays
    given = {
        "racks": [path[0] for path in arrays.brokers.rack_paths],
        "rows": arrays.rows.tolist(),
        "sizes": arrays.size_bytes.tolist(),
    }
    script = Path(__file__).parent / "drivers" / peer.driver[0]
    try:
        done = subprocess.run(
            [environment(peer.packages), "-I", script, *peer.driver[1:]],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done within {limit_s:.0f} s"}
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def judged(instance: Instance, rows: Rows) -> dict[str, Any]:
    """Bytes, balance and racks of a placement."""
    arrays, live = instance.arrays, ~instance.drained
    home, size = arrays.rows, arrays.size_bytes
    is_new = (rows[:, :, None] != home[:, None, :]).all(axis=2)
    load = broker_sums(rows, size, len(live))
    mean = load[live].mean()
    before = broker_sums(home, size, len(live))
    centre = np.array([path[0] for path in arrays.brokers.rack_paths])[rows]
    over = np.maximum(before - (1 + TOLERANCE) * mean, 0).sum()
    under = np.maximum((1 - TOLERANCE) * mean - before, 0).sum()
    return {
        "replica_moves": int(is_new.sum()),
        "bytes_moved": int((is_new * size[:, None]).sum()),
        "moved_over_bound": round(float((is_new * size[:, None]).sum() / max(over, under)), 4),
        "highest": round(float(load[live].max() / mean), 4),
        "lowest": round(float(load[live].min() / mean), 4),
        "rack_violations": int(sum(len(set(row)) < len(row) for row in centre.tolist())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[3_334, 33_334, 333_334])
    parser.add_argument("--brokers", type=int, nargs="+", default=[30, 100, 1_000])
    parser.add_argument("--cases", nargs="+", default=["expansion", "skew"])
    parser.add_argument("--limit-s", type=float, default=LIMIT_S)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    stopped: set[tuple[str, str]] = set()
    for partitions, brokers in zip(options.partitions, options.brokers, strict=True):
        for case in (case for case in CASES if case.name in options.cases):
            for result in _compared(case, partitions, brokers, options.limit_s, stopped):
                results.append(result)
                print(json.dumps(result), flush=True)
                options.out.write_text(json.dumps(results, indent=1) + "\n")
    if options.out == RESULTS:
        made = f"Made {results[0]['date'][:10]}. Highest and lowest: brokers' bytes over the mean."
        lines = [made, "", *document.table(COLUMNS, results)]
        document.put(document.DOCS / "benchmarks.md", "bench-peers", lines)


def _compared(
    case: Case, partitions: int, brokers: int, limit_s: float, stopped: set[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Rehome and each peer on one cluster; a peer that ran out of time gets no larger one."""
    instance = build(case, partitions, brokers)
    row = where_and_when() | {"case": case.name, "replicas": int((instance.arrays.rows >= 0).sum())}
    row["brokers"] = brokers
    started = time.perf_counter()
    ours = solved(instance, "bytes").layout.rows
    took = time.perf_counter() - started
    found = [row | {"planner": "rehome", "seconds": round(took, 2)} | judged(instance, ours)]
    for peer in PEERS:
        if (peer.name, case.name) in stopped:
            continue
        answered = answer(peer, instance, limit_s)
        if "failed" in answered:
            stopped.add((peer.name, case.name))
            found.append(row | {"planner": peer.name} | answered)
            continue
        rows = np.array(answered["rows"], np.int32)
        seconds = {"seconds": round(answered["seconds"], 2)}
        found.append(row | {"planner": peer.name} | seconds | judged(instance, rows))
    return found


if __name__ == "__main__":
    main()
