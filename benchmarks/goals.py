"""Cruise Control's goals, measured before and after a plan: `make bench-goals`.

Each measure is worked out from the rows alone, by code that shares nothing with the planner. Writes
benchmarks/results/goals.json and a table in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import document
from benchmarks.clusters import CASES, Case, Instance, build
from benchmarks.judged import Rows, judged
from benchmarks.plan import SIZES, solved, where_and_when
from benchmarks.topics import uneven

RESULTS = Path(__file__).parent / "results" / "goals.json"
POLICIES = ("default", "strict")
GOALS = {
    "DiskUsageDistributionGoal": "bytes",
    "ReplicaDistributionGoal": "replicas",
    "NetworkInboundUsageDistributionGoal": "bytes_in",
    "LeaderReplicaDistributionGoal": "leaders",
    "NetworkOutboundUsageDistributionGoal": "bytes_out",
}
"""Cruise Control's goal → the resource whose share it is about."""

COLUMNS = {"case": "case", "goal": "goal", "before": "before"} | {name: name for name in POLICIES}


def measured(instance: Instance, rows: Rows) -> dict[str, float | None]:
    """Goal → how far the furthest broker is from its share, as a part of it; or how many
    partitions or replicas break it. None where the instance knows no traffic.
    """
    found = judged(instance, rows, {})
    deviation = {goal: found.deviation.get(name) for goal, name in GOALS.items()}
    potential, into_leaders = _network(instance, rows)
    return {
        "RackAwareDistributionGoal": found.violations,
        **deviation,
        "TopicReplicaDistributionGoal": uneven(instance, rows),
        "PotentialNwOutGoal": _furthest(instance, potential),
        "LeaderBytesInDistributionGoal": _furthest(instance, into_leaders),
    }


def _network(
    instance: Instance, rows: Rows
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(B,) bytes out per second if all replicas of a broker led, and (B,) bytes into leaders."""
    arrays, brokers = instance.arrays, len(instance.drained)
    partition, place = np.nonzero(rows >= 0)
    nothing = np.zeros(len(rows))
    out = nothing if arrays.bytes_out is None else arrays.bytes_out
    into = nothing if arrays.bytes_in is None else arrays.bytes_in
    return (
        np.bincount(rows[partition, place], out[partition], brokers).astype(float),
        np.bincount(rows[:, 0], into, brokers).astype(float),
    )


def _furthest(instance: Instance, load: npt.NDArray[np.float64]) -> float | None:
    """How far the furthest broker is from its share of the traffic, as a part of it."""
    if not load.any():
        return None
    live, size = ~instance.drained, instance.capacity[2]
    share = load.sum() * size[live] / size[live].sum()
    return round(float(np.abs(load[live] / share - 1).max()), 4)


def compared(case: Case, size: int) -> list[dict[str, Any]]:
    """A row per goal: before, and after each policy's plan."""
    instance = build(case, *SIZES[size])
    sides = {"before": measured(instance, instance.arrays.rows)}
    for policy in POLICIES:
        sides[policy] = measured(instance, solved(instance, policy).layout.rows)
    return [
        {"size": size, "case": case.name, "goal": goal}
        | {name: side[goal] for name, side in sides.items()}
        for goal in sides["before"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, choices=SIZES, default=min(SIZES))
    parser.add_argument("--cases", nargs="+", default=["expansion", "drain", "skew", "rates"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = [
        where_and_when() | row
        for case in CASES
        if case.name in options.cases
        for row in compared(case, options.replicas)
    ]
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    lines = document.table(COLUMNS, results)
    print(*lines, sep="\n")
    if options.out == RESULTS:
        made = f"Made {results[0]['date'][:10]}, {options.replicas:,} replicas."
        document.put(document.DOCS / "benchmarks.md", "bench-goals", [made, "", *lines])


if __name__ == "__main__":
    main()
