"""How long plans take and how good they are: `make bench-plan`.

Writes benchmarks/results/plan.json: a list with one entry per case. Times are seconds of wall
clock on one thread; ``cpu_s`` is what the solve took of the processor, for shared machines.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.clusters import CASES, Case, Instance, build
from include.planning.arrays import broker_sums
from include.planning.balance import rebalance
from include.planning.bounds import rebalance_bound
from include.planning.handover import LedShares, hand_over
from include.planning.layout import Layout
from include.planning.leaders import settle_leaders
from include.planning.outcome import tree_of
from include.planning.rebalance import problem_of, tolerances_of
from include.planning.request import Action, ReassignmentRequest
from include.planning.resources import Resource

RESULTS = Path(__file__).parent / "results" / "plan.json"
STRICT = {"replicas": 0.05, "leaders": 0.05, "bytes_in": 0.05, "bytes_out": 0.05}
ONLY_BYTES = dict.fromkeys(STRICT)
POLICIES: dict[str, dict[str, float | None]] = {
    "strict": STRICT,
    "default": {},
    "bytes": ONLY_BYTES,
}


def measured(case: Case, partitions: int, brokers: int, policy: str) -> dict[str, Any]:
    """Plan one case; what it took and what came of it."""
    instance = build(case, partitions, brokers)
    request = ReassignmentRequest(Action.REBALANCE, tolerances=POLICIES[policy])
    arrays, hosts = instance.arrays, ~instance.drained
    if policy == "bytes":
        arrays = replace(arrays, bytes_in=None, bytes_out=None)
    started, cpu = time.perf_counter(), time.process_time()
    layout = Layout(arrays)
    before = layout.load.copy()
    tree = tree_of(arrays, hosts, request)
    everything = np.ones(partitions, bool)
    problem = problem_of(
        layout,
        tree,
        request,
        partitions=everything,
        brokers=np.ones(brokers, bool),
        capacity=instance.capacity,
    )
    stranded = rebalance(problem, instance.capacity[0])
    settle_leaders(layout)
    tolerances = tolerances_of(request, arrays)
    lead = LedShares.of(layout, instance.capacity[3:] * hosts, tolerances)
    if lead is not None:
        hand_over(layout, lead, everything, hosts)
    solve_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    copies = (layout.rows[:, :, None] != layout.home[:, None, :]).all(axis=2)
    bound = rebalance_bound(layout, tree, problem.targets, everything, before)
    outside = _outside(layout, problem.targets.low, problem.targets.high, problem.weights)
    led = int(lead.outside(layout.rows[:, 0]).sum()) if lead is not None else 0
    return {
        "case": case.name,
        "policy": policy,
        "replicas": int((layout.rows >= 0).sum()),
        "brokers": brokers,
        "resources": [r.value for r, tolerance in tolerances.items() if math.isfinite(tolerance)],
        "solve_s": round(solve_s, 2),
        "cpu_s": round(cpu_s, 2),
        "replica_moves": int(copies.sum()),
        "leader_changes": int((layout.rows[:, 0] != layout.home[:, 0]).sum()),
        "bytes_moved": int((copies * arrays.size_bytes[:, None]).sum()),
        "moved_over_bound": round(float((copies.sum(axis=1) * arrays.size_bytes).sum()) / bound, 4),
        "worst_deviation": _deviations(instance, layout),
        "outside": outside + led,
        "infeasible": len(problem.targets.infeasible),
        "hard_violations": int((tree.violations(layout.rows) > 0).sum()) + len(stranded),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _outside(layout: Layout, low: Any, high: Any, weights: Any) -> int:
    loads = [broker_sums(layout.rows, weight, len(low[0])) for weight in weights]
    return int(((np.stack(loads) > high) | (np.stack(loads) < low)).sum())


def _deviations(instance: Instance, layout: Layout) -> dict[str, float]:
    """Per resource, the furthest that a broker is from its part of the whole."""
    arrays, brokers = instance.arrays, len(instance.drained)
    leads = layout.rows[:, 0]
    loads = {
        Resource.BYTES: broker_sums(layout.rows, arrays.size_bytes, brokers),
        Resource.REPLICAS: broker_sums(layout.rows, np.ones(len(leads)), brokers),
        Resource.BYTES_IN: broker_sums(layout.rows, arrays.bytes_in, brokers),
        Resource.LEADERS: np.bincount(leads, minlength=brokers),
        Resource.BYTES_OUT: np.bincount(leads, arrays.bytes_out, brokers),
    }
    live, found = ~instance.drained, {}
    for (name, load), size in zip(loads.items(), instance.capacity, strict=True):
        share = load[live].sum() * size[live] / size[live].sum()
        found[name.value] = round(float(np.abs(load[live] / share - 1).max()), 4)
    return found


def table(results: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [
        "| case | policy | replicas | solve s (CPU) | moves | moved / bound | outside "
        "| violations |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        lines.append(
            "| {case} | {policy} | {replicas:,} | {solve_s} ({cpu_s}) | {replica_moves:,} | "
            "{moved_over_bound} | {outside} | {hard_violations} |".format(**result)
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[33_334, 333_334])
    parser.add_argument("--brokers", type=int, nargs="+", default=[100, 1_000])
    parser.add_argument("--cases", nargs="+", default=[case.name for case in CASES])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    options.out.parent.mkdir(exist_ok=True)
    for partitions, brokers in zip(options.partitions, options.brokers, strict=True):
        for case in CASES:
            if case.name not in options.cases:
                continue
            for policy in POLICIES if case.name == "expansion" else ("strict",):
                results.append(_where_and_when() | measured(case, partitions, brokers, policy))
                print(json.dumps(results[-1]), flush=True)
                options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    strict = [r for r in results if r["policy"] == "strict"]
    print(f"median {median(r['solve_s'] for r in strict)} s, ", end="")
    print(f"mean moved over bound {mean(r['moved_over_bound'] for r in strict):.4f}")
    _print_growth(strict)


def _where_and_when() -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _print_growth(results: list[dict[str, Any]]) -> None:
    sizes = sorted({r["replicas"] for r in results if r["case"] == "expansion"})
    if len(sizes) < 2:
        return
    times = [
        next(r["cpu_s"] for r in results if r["case"] == "expansion" and r["replicas"] == size)
        for size in (sizes[0], sizes[-1])
    ]
    exponent = math.log(times[1] / times[0]) / math.log(sizes[-1] / sizes[0])
    print(f"processor time grows as size to the power of {exponent:.2f}")


if __name__ == "__main__":
    main()
