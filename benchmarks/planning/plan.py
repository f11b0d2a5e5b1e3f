"""How long plans take and how good they are: `make bench-plan`.

Writes benchmarks/results/plan.json, a list with one entry per case, and the table in
docs/benchmarks.md. Times are seconds of wall clock on one thread; ``cpu_s`` is what the solve took
of the processor, for shared machines. Every case is built, and then measured, in a process of its
own: its snapshot is read from Parquet, solved, and written as a plan's directory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clusters import CASES, Case, Instance, build, snapshot_of
from benchmarks.lagrangian_bound import lagrangian_bound
from benchmarks.planning.job import whole_job
from benchmarks.planning.judged import judged
from benchmarks.planning.plan_table import summary, table, write_document, write_largest
from rehome.domain.actions import Action
from rehome.domain.array_types import NONE, Floats, Ints
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.effort.optional_parts import Parts
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.effort.work import SearchWork, budget_of_work
from rehome.planning.leadership.leader_balance import LedShares
from rehome.planning.leadership.preferred_leaders import settle_leaders
from rehome.planning.model.arrays import ClusterArrays, broker_sums
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.options import PlanOptions
from rehome.planning.planner import plan_of
from rehome.planning.rebalance.copy_sources import prefer_sources
from rehome.planning.rebalance.move_reasons import balance_causes
from rehome.planning.rebalance.problem import problem_of, tolerances_of
from rehome.planning.rebalance.rebalance import lead_evenly
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.log_dir_choice import choose_log_dirs
from rehome.planning.result.lower_bounds import broker_loads, rebalance_bound
from rehome.planning.result.outcome import Outcome, tree_of
from rehome.planning.result.plan_moves import planned_moves
from rehome.planning.result.summary_figures import bytes_across_racks
from rehome.planning.search.state import Problem
from rehome.warehouse import PlanDirectory, Warehouse, read_snapshot

WHERE = Path(__file__).parents[1] / "results"
RESULTS = WHERE / "plan.json"
LARGEST_RESULTS = WHERE / "largest.json"
STRICT = {"replicas": 0.05, "leaders": 0.05, "bytes_in": 0.05, "bytes_out": 0.05}
ANYHOW = {TOPIC_SPREAD: None}
EVEN = {TOPIC_SPREAD: 0.1}
ONLY_BYTES = dict.fromkeys(STRICT) | ANYHOW
POLICIES: dict[str, dict[str, Any]] = {
    "strict": {"tolerances": STRICT | ANYHOW},
    "strict, topics": {"tolerances": STRICT | EVEN},
    "default": {"tolerances": ANYHOW},
    "default, topics": {"tolerances": EVEN},
    "default, no worse": {},
    "bytes": {"tolerances": ONLY_BYTES},
    "bytes, one-sided": {"tolerances": ONLY_BYTES, "one_sided": True},
}
"""What is asked. With topics, each of them comes to an even spread over the brokers; *no worse* is
what Rehome does where nothing is asked: no topic ends spread worse. The others let topics be.
"""
SIZES = {100_000: (33_334, 100), 1_000_000: (333_334, 1_000), 10_000_000: (3_333_334, 1_000)}
"""Replicas (of three each) → partitions and brokers."""
LARGEST_SIZES = {10_000_000: SIZES[10_000_000], 30_000_000: (10_000_000, 1_000)}
"""What one process plans by `--largest`, which asks for what is asked by default, and strictly."""

PRICED_UP_TO = 110_000
"""Replicas up to which the bound from prices is computed as well; it takes minutes beyond."""

DEAR = 1.1
"""Where a plan copies more than this, over the bytes bound, it is computed all the same, unless
topics are kept spread: the bound does not know of that.
"""

LARGEST = {10_000_000: ("expansion", "drain", "skew")}
"""Cases of a size where not all are run."""


@dataclass(frozen=True)
class Solved:
    """A finished layout and what it was made from.

    :param before: (B,) bytes held at first.
    :param led: broker and resource pairs that lead too much or too little, of what is asked.
    """

    layout: Layout
    tree: RackTree
    problem: Problem
    before: Ints
    led: int
    resources: tuple[str, ...]


def request_of(policy: str) -> ReassignmentRequest:
    return ReassignmentRequest(Action.REBALANCE, **POLICIES[policy])


def solved(instance: Instance, policy: str, parts: Parts | None = None) -> Solved:
    """Plan a rebalance whose brokers have a capacity per resource, some to be emptied, within the
    budget of work that the product has for its first plan.
    """
    arrays, hosts, request = instance.arrays, ~instance.drained, request_of(policy)
    if policy.startswith("bytes"):
        arrays = replace(arrays, bytes_in=None, bytes_out=None)
    layout, tree = Layout(arrays), tree_of(arrays, hosts, request)
    before = layout.load.copy()
    everything = np.ones(len(arrays.rows), bool)
    problem = problem_of(
        layout,
        tree,
        request,
        partitions=everything,
        brokers=np.ones(len(hosts), bool),
        capacity=instance.capacity,
    )
    parts = parts or problem.parts
    work = SearchWork(budget_of_work(arrays.rows.size, int(hosts.sum()), parts.work))
    problem = replace(problem, parts=parts, work=work)
    with work.at_most(REBALANCE.first_plan):
        rebalance(problem, instance.capacity[0])
    prefer_sources(problem)
    settle_leaders(layout)
    tolerances = tolerances_of(request, arrays)
    lead = LedShares.of(layout, instance.capacity[3:] * hosts, tolerances, request.one_sided)
    lead_evenly(problem, lead)
    return Solved(
        layout=layout,
        tree=tree,
        problem=problem,
        before=before,
        led=int(lead.outside(lead.load(layout.rows[:, 0])).sum()) if lead is not None else 0,
        resources=tuple(r.value for r, tolerance in tolerances.items() if math.isfinite(tolerance)),
    )


def prepared(case: Case, partitions: int, brokers: int, place: str, disks: bool = False) -> str:
    """Write the case's snapshot below a place; where it is."""
    instance = build(case, partitions, brokers)
    np.savez(f"{place}/asked.npz", capacity=instance.capacity, drained=instance.drained)
    return str(Warehouse(place).write_snapshot(snapshot_of(instance, disks)))


def measured(case: Case, policy: str, uri: str, place: str) -> dict[str, Any]:
    """Plan one case; what it took and what came of it."""
    lap = _Lap()
    snapshot = read_snapshot(uri)
    asked = np.load(f"{place}/asked.npz")
    instance = Instance(ClusterArrays.from_snapshot(snapshot), asked["capacity"], asked["drained"])
    read_s, _ = lap.time()
    result = solved(instance, policy)
    solve_s, cpu_s = lap.time()
    outcome = _outcome(result)
    moves, _ = choose_log_dirs(planned_moves(outcome), instance.arrays.brokers, name=True)
    plan = plan_of(
        snapshot,
        outcome,
        moves,
        PlanOptions(plan_id="bench"),
        action=Action.REBALANCE,
        pace=None,
    )
    PlanDirectory(f"{place}/{policy}").save(plan, request_of(policy))
    write_s, _ = lap.time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    layout, problem = result.layout, result.problem
    copies = (layout.rows != NONE) & (layout.rows[:, :, None] != layout.origin[:, None, :]).all(2)
    moved = int((copies.sum(axis=1) * layout.size).sum())
    bound = _outcome(result).lower_bound_bytes
    request = request_of(policy)
    asked = {
        resource.value: None if math.isinf(tolerance) else tolerance
        for resource, tolerance in tolerances_of(request, layout.arrays).items()
    }
    found = judged(instance, layout.rows, asked, one_sided=request.one_sided)
    return {
        "case": case.name,
        "policy": policy,
        "replicas": int((layout.rows != NONE).sum()),
        "brokers": len(instance.drained),
        "resources": list(result.resources),
        "read_s": read_s,
        "solve_s": solve_s,
        "cpu_s": cpu_s,
        "write_s": write_s,
        "total_s": round(read_s + solve_s + write_s, 2),
        "replica_moves": int(copies.sum()),
        "leader_changes": int((layout.rows[:, 0] != layout.origin[:, 0]).sum()),
        "bytes_moved": moved,
        "moved_over_bound": round(moved / bound, 4),
        "moved_over_priced_bound": _over_priced(result, moved),
        "across_racks": round(bytes_across_racks(layout, result.tree) / max(1, moved), 4),
        "sent_over_received": _sent_over_received(layout),
        "worst_deviation": dict(found.deviation),
        "outside_asked": found.outside,
        "worst_off": found.worst,
        "outside": _outside(result) + result.led,
        "infeasible": len(problem.targets.infeasible),
        "topics_outside": [problem.spread.outside(rows) for rows in (layout.origin, layout.rows)]
        if problem.spread
        else None,
        "hard_violations": found.violations,
        "search_cut": problem.work.cut,
        "peak_rss_bytes": peak,
    }


def _sent_over_received(layout: Layout) -> float:
    """Bytes that the busiest leader sends, over those that the busiest broker receives."""
    loads = broker_loads(layout)
    received = max(load.bytes_in for load in loads)
    return round(max(load.bytes_out for load in loads) / max(1, received), 3)


class _Lap:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def time(self) -> tuple[float, float]:
        """Seconds of wall clock and of the processor since the last call."""
        wall, cpu = time.perf_counter(), time.process_time()
        took = round(wall - self._wall, 2), round(cpu - self._cpu, 2)
        self._wall, self._cpu = wall, cpu
        return took


def _outcome(of: Solved) -> Outcome:
    everything = np.ones(len(of.layout.rows), bool)
    targets = of.problem.targets
    return Outcome(
        layout=of.layout,
        tree_before=of.tree,
        tree_after=of.tree,
        lower_bound_bytes=rebalance_bound(of.layout, of.tree, targets, everything, of.before),
        reason=MoveReason.BALANCE,
        causes=balance_causes(of.problem, {}),
        infeasible=targets.infeasible,
    )


def _loads(of: Solved) -> Floats:
    brokers = len(of.before)
    return np.stack([broker_sums(of.layout.rows, w, brokers) for w in of.problem.weights])


def _over_priced(of: Solved, moved: int) -> float | None:
    bound = _outcome(of).lower_bound_bytes
    clear = moved <= DEAR * bound or of.problem.spread is not None
    if len(of.resources) == 1 or (of.layout.rows.size > PRICED_UP_TO and clear):
        return None
    return round(moved / max(lagrangian_bound(of.problem, _loads(of), moved), bound), 4)


def _outside(of: Solved) -> int:
    load, targets = _loads(of), of.problem.targets
    return int(((load > targets.high) | (load < targets.low)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--cases", nargs="+", default=[case.name for case in CASES])
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--job", type=int, nargs="*", choices=SIZES, default=[1_000_000])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--largest", action="store_true", help="the largest clusters alone")
    options = parser.parse_args()
    if options.largest:
        _largest()
        return
    results: list[dict[str, Any]] = []
    options.out.parent.mkdir(exist_ok=True)
    for result in _rows(options):
        results.append(where_and_when() | result)
        print(json.dumps(results[-1]), flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    print(*table(results), *summary(results), sep="\n")
    if options.out == RESULTS:
        write_document(results)


def _largest() -> None:
    results = []
    for size, shape in LARGEST_SIZES.items():
        with tempfile.TemporaryDirectory() as place:
            uri = _alone(prepared, CASES[0], *shape, place)
            for policy in ("default, no worse", "strict"):
                found = {"size": size} | _alone(measured, CASES[0], policy, uri, place)
                results.append(where_and_when() | found)
                print(json.dumps(results[-1]), flush=True)
                LARGEST_RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    write_largest(results)


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for size in options.replicas:
        partitions, brokers = SIZES[size]
        for case in CASES:
            policies = (
                options.policies if case.name == "expansion" else ["strict", "strict, topics"]
            )
            if case.name not in options.cases or case.name not in LARGEST.get(size, (case.name,)):
                continue
            with tempfile.TemporaryDirectory() as place:
                uri = _alone(prepared, case, partitions, brokers, place)
                for policy in policies:
                    yield {"size": size} | _alone(measured, case, policy, uri, place)
    for size in options.job:
        with tempfile.TemporaryDirectory() as place:
            uri = _alone(prepared, CASES[0], *SIZES[size], place, disks=True)
            params = {"action": "rebalance", **POLICIES["strict"]}
            yield {"size": size, "case": CASES[0].name} | whole_job(uri, params, place)


def _alone(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function in a process of its own: memory is counted by process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **named).result()


def where_and_when() -> dict[str, Any]:
    """Date, machine, and the commit that is measured: None where there is no history."""
    head = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(head, capture_output=True, text=True, check=False)
    return {
        "commit": found.stdout.strip() or None,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
