"""What each part of the planner and of the ETA brings, and what it costs: `make bench-ablation`.

Each case is planned with all parts, and without one part, or one group, at a time. Writes
benchmarks/results/ablation.json and a table in docs/benchmarks.md. Ratios are of one run; seconds
are of one processor.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks import document
from benchmarks.clusters import CASES, Instance, build
from benchmarks.execution import ablation_eta
from benchmarks.planning import sensitivity
from benchmarks.planning.plan import POLICIES, SIZES, solved, where_and_when
from benchmarks.small_clusters import KINDS, Kind, small
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.actions.exhaustive_search import enumerate_layouts, is_enumerable
from rehome.planning.actions.move_log_dirs import BYTES_ONLY
from rehome.planning.effort.optional_parts import FAST, THOROUGH, Parts
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities
from rehome.planning.rebalance.problem import problem_of
from rehome.planning.rebalance.rebalance import plan_rebalance
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.lower_bounds import broker_loads, rebalance_bound
from rehome.planning.result.outcome import tree_of
from rehome.planning.result.summary_figures import bytes_across_racks
from rehome.planning.search.state import Problem, Search

INCLUDE = Path(__file__).parents[2] / "include" / "rehome"
RESULTS = Path(__file__).parents[1] / "results" / "ablation.json"

LARGE: Mapping[str, Parts] = {
    "programs": replace(THOROUGH, programs_from=inf),
    "whole_replicas": replace(THOROUGH, whole_replicas=False),
    "exchange": replace(THOROUGH, exchange=False),
    "relieve_leaders": replace(THOROUGH, relieve_leaders=False),
    "near_sources": replace(THOROUGH, near_sources=False),
    "relieve_leaders, near_sources": replace(THOROUGH, relieve_leaders=False, near_sources=False),
    "all that fast leaves out": FAST,
}
SMALL: Mapping[str, Parts] = {
    "neighbourhoods": replace(THOROUGH, neighbourhoods=False),
    "other_starts": replace(THOROUGH, other_starts=0),
    "reconsidered: but the best": replace(THOROUGH, reconsidered=1),
    "reconsidered": replace(THOROUGH, reconsidered=0),
    "other_starts, reconsidered": replace(THOROUGH, other_starts=0, reconsidered=0),
    "fewest_moves": replace(THOROUGH, fewest_moves=False),
    "fixed_point": replace(THOROUGH, fixed_point=False),
    "exchange": replace(THOROUGH, exchange=False),
    "relieve_leaders, near_sources": replace(THOROUGH, relieve_leaders=False, near_sources=False),
    "all for small clusters": replace(
        THOROUGH,
        neighbourhoods=False,
        other_starts=0,
        reconsidered=0,
        fewest_moves=False,
        fixed_point=False,
    ),
    "all that fast leaves out": FAST,
}
"""What is left out together: all the other parts are in use."""

LARGEST = ("skew", "stress", "rf2")
"""Cases that are planned with a million replicas as well, by the strict policy."""

SMALL_SEEDS, LOG_DIR_SEEDS = 4, 60
LINES: Mapping[str, Sequence[str]] = {
    "programs": (
        "planning/programs/flow_lp.py",
        "planning/programs/lp_rounding.py",
    ),
    "neighbourhoods": ("planning/programs/neighbourhood_mip.py",),
    "fewest_moves": ("planning/programs/fewest_moves.py",),
    "fixed_point": ("planning/rebalance/fixed_point.py",),
    "exchange": ("planning/search/cheaper_copies.py",),
    "relieve_leaders, near_sources": (
        "planning/rebalance/copy_sources.py",
        "planning/rebalance/swap_candidates.py",
    ),
    "enumeration": ("planning/actions/exhaustive_search.py",),
    "rate_regression per broker": ("execution/estimate/rate_regression.py",),
    "reaction": ("execution/estimate/reaction.py",),
    "projection": ("execution/estimate/projection.py",),
}
"""Files that are there for a part alone."""

COLUMNS = {
    "part": "part",
    "on": "on",
    "runs": "runs",
    "bytes without / with": "bytes",
    "at most": "bytes_most",
    "busiest broker without / with": "busiest",
    "across zones or racks without / with": "across",
    "bands unmet with": "unmet_with",
    "without": "unmet_without",
    "ETA error with": "eta_error_with",
    "without ": "eta_error_without",
    "CPU s with": "cpu_s_with",
    "without  ": "cpu_s_without",
    "lines": "lines",
    "made (UTC)": "made",
}


@dataclass(frozen=True)
class Figures:
    """One plan.

    :param bytes_moved: copied; ``bound``: that any plan copies.
    :param busiest: bytes that the busiest broker sends or receives: what the makespan follows from.
    :param across: bytes copied from one rack to another.
    :param excess: how far brokers end outside of their bands, in shares.
    """

    bytes_moved: float
    bound: float
    busiest: float
    across: float
    excess: float
    cpu_s: float

    @classmethod
    def of(cls, layout: Layout, problem: Problem, cpu_s: float) -> Figures:
        """Figures of a finished layout."""
        before = layout.arrays.load(layout.origin, layout.size)
        loads = broker_loads(layout)
        return cls(
            float(layout.incoming.sum()),
            float(
                rebalance_bound(layout, problem.tree, problem.targets, problem.partitions, before)
            ),
            float(max(max(load.bytes_in, load.bytes_out) for load in loads)),
            float(bytes_across_racks(layout, problem.tree)),
            Search(problem).outside(),
            cpu_s,
        )


def large(
    policy: str, size: int, names: Sequence[str], parts: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Cases of the benchmark of plans, without each of the parts."""
    for case in CASES:
        if case.name not in names:
            continue
        instance = build(case, *SIZES[size])
        whole = _large(instance, policy, THOROUGH)
        on = {"on": f"{size:,} replicas, {policy}", "case": case.name}
        for part, without in ((part, LARGE[part]) for part in parts):
            found = _large(instance, policy, without)
            yield on | _compared(part, whole, found)


def _large(instance: Instance, policy: str, parts: Parts) -> Figures:
    began = time.process_time()
    result = solved(instance, policy, parts)
    return Figures.of(result.layout, result.problem, time.process_time() - began)


def small_clusters(kinds: Sequence[Kind], seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Random clusters of up to 16 brokers."""
    for kind in kinds:
        for seed in seeds:
            of = small(seed, kind)
            request = ReassignmentRequest(
                Action.REBALANCE,
                tolerance=0.05,
                tolerances={"bytes_in": 0.1, "bytes_out": None},
                weights=of.weights,
                move_overhead_bytes=0,
            )
            whole = _small(of.arrays, request, THOROUGH)
            on = {"on": "small clusters", "case": f"{kind.name} {seed}"}
            for part, without in SMALL.items():
                found = _small(of.arrays, request, without)
                yield on | _compared(part, whole, found)


def _small(arrays: ClusterArrays, request: ReassignmentRequest, parts: Parts) -> Figures:
    began = time.process_time()
    outcome = plan_rebalance(arrays, request, parts)
    cpu_s = time.process_time() - began
    problem = _posed(arrays, request)
    problem.layout.lay_out(outcome.layout.rows)
    return Figures.of(problem.layout, problem, cpu_s)


def _posed(arrays: ClusterArrays, request: ReassignmentRequest, whole: bool = True) -> Problem:
    hosts = np.ones(len(arrays.brokers.ids), bool)
    return problem_of(
        Layout(arrays),
        tree_of(arrays, hosts, request),
        request,
        partitions=np.ones(len(arrays.rows), bool),
        brokers=hosts,
        capacity=capacities(arrays, hosts, request.weights),
        whole=whole,
    )


def log_dirs(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The log dirs of a broker with few replicas: all ways tried, and the search instead."""
    request = ReassignmentRequest(Action.MOVE_LOG_DIRS, tolerances=BYTES_ONLY)
    plain = small(0).arrays
    for seed in seeds:
        random = np.random.default_rng(seed)
        dirs, replicas = int(random.integers(2, 5)), int(random.integers(4, 12))
        rows = random.integers(0, dirs, (replicas, 1)).astype(np.int32)
        arrays = replace(
            plain,
            brokers=replace(
                plain.brokers,
                ids=np.arange(dirs),
                live=np.ones(dirs, bool),
                takes=np.ones(dirs, bool),
                rack_paths=((),) * dirs,
                capacity_bytes=np.zeros(dirs, np.int64),
                headroom_bytes=plain.brokers.headroom_bytes[:dirs],
            ),
            topic_of=np.zeros(replicas, np.int64),
            partition_of=np.arange(replicas),
            rows=rows,
            log_dirs=np.full(rows.shape, -1, np.int32),
            size_bytes=(np.exp(random.standard_normal(replicas)) * 1e9).astype(np.int64),
            leader=rows[:, 0],
            in_flight=np.zeros(replicas, bool),
            bytes_in=None,
        )
        if not is_enumerable(_posed(arrays, request, whole=False)):
            continue
        found = []
        for enumerated in (True, False):
            problem = _posed(arrays, request, whole=False)
            began = time.process_time()
            if enumerated:
                enumerate_layouts(problem)
            else:
                rebalance(problem, np.ones(dirs), part_of_a_cluster=True)
            found.append(Figures.of(problem.layout, problem, time.process_time() - began))
        yield {"on": "log dirs", "case": str(seed)} | _compared("enumeration", *found)


def _compared(part: str, whole: Figures, without: Figures) -> dict[str, Any]:
    return {
        "part": part,
        "over_bound_with": _ratio(whole.bytes_moved, whole.bound),
        "over_bound_without": _ratio(without.bytes_moved, without.bound),
        "bytes": _ratio(without.bytes_moved, whole.bytes_moved),
        "busiest": _ratio(without.busiest, whole.busiest),
        "across": _ratio(without.across, whole.across),
        "excess_with": round(whole.excess, 6),
        "excess_without": round(without.excess, 6),
        "cpu_s_with": round(whole.cpu_s, 3),
        "cpu_s_without": round(without.cpu_s, 3),
    }


def _ratio(value: float, of: float) -> float | None:
    return round(value / of, 4) if of else None


def table_rows(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per part and kind of case.

    Bytes are compared where both plans meet the bands as well: to miss them is cheaper.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["part"], result["on"]), []).append(result)
    rows = []
    for (part, on), found in groups.items():
        row: dict[str, Any] = {"part": part, "on": on, "runs": len(found), "lines": lines_of(part)}
        row["made"] = min(result["date"] for result in found)[:16].replace("T", " ")
        if "eta_error_with" in found[0]:
            rows.append(row | dict(found[0]))
            continue
        alike = [r for r in found if abs(r["excess_with"] - r["excess_without"]) < 1e-6]
        for key in ("bytes", "busiest", "across"):
            known = [r[key] for r in alike if r[key] is not None]
            row[key] = round(mean(known), 4) if known else None
            row[f"{key}_most"] = max(known, default=None)
        for which in ("with", "without"):
            row[f"unmet_{which}"] = sum(r[f"excess_{which}"] > 0 for r in found)
            row[f"cpu_s_{which}"] = round(mean(r[f"cpu_s_{which}"] for r in found), 2)
        rows.append(row)
    return sorted(rows, key=lambda row: row["on"] in {c.name for c in ablation_eta.COURSES})


def lines_of(part: str) -> int | None:
    """Lines of the files that are there for a part alone."""
    files = [INCLUDE / name for name in LINES.get(part, ())]
    counts = [len(file.read_text().splitlines()) for file in files if file.exists()]
    return sum(counts) or None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    chosen = ("large", "largest", "small", "log_dirs", "eta")
    parser.add_argument("--only", nargs="+", choices=chosen, default=chosen)
    parser.add_argument(
        "--policies", nargs="+", choices=POLICIES, default=["strict", "default, topics"]
    )
    parser.add_argument("--cases", nargs="+", default=[case.name for case in CASES])
    parser.add_argument("--parts", nargs="+", choices=LARGE, default=list(LARGE))
    parser.add_argument("--seeds", type=int, default=SMALL_SEEDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--numbers", action="store_true", help="halve and double each number")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    options = parser.parse_args()
    if options.numbers:
        sensitivity.write()
        return
    results = json.loads(options.out.read_text()) if options.out.exists() else []
    for result in () if options.table else _rows(options):
        print(json.dumps(result), flush=True)
        results = kept(results, where_and_when() | result)
        options.out.write_text("[\n" + ",\n".join(map(json.dumps, results)) + "\n]\n")
    lines = document.table(COLUMNS, table_rows(results))
    print(*lines, sep="\n")
    if options.out == RESULTS:
        made = f"Made on {results[0]['cores']} cores shared with other work, group by group."
        document.put(document.DOCS / "benchmarks.md", "bench-ablation", [made, "", *lines])


def kept(results: Sequence[Mapping[str, Any]], new: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Results with a new one, in place of that of the same part and case."""

    def key(result: Mapping[str, Any]) -> tuple[Any, ...]:
        return result["part"], result["on"], result.get("case")

    keys = [key(result) for result in results]
    if key(new) not in keys:
        return [*results, new]
    return [new if key(result) == key(new) else result for result in results]


def _rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if "log_dirs" in options.only:
        yield from log_dirs(range(LOG_DIR_SEEDS))
    if "small" in options.only:
        yield from small_clusters(list(KINDS.values()), range(options.seeds))
    if "eta" in options.only:
        yield from ablation_eta.rows()
    for policy in options.policies if "large" in options.only else ():
        yield from large(policy, 100_000, options.cases, options.parts)
    if "largest" in options.only:
        yield from large("strict", 1_000_000, LARGEST, options.parts)


if __name__ == "__main__":
    main()
