"""What keeping topics spread costs: `make bench-topics`.

Each case is planned with the target `topic_spread` and without it, in turn, several times in one
process; of each the least processor time counts, which other work on the machine disturbs least.
Writes benchmarks/results/topics.json and a table in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import document
from benchmarks.clusters import CASES, Case, Instance, build
from benchmarks.planning.judged import Rows
from benchmarks.planning.plan import SIZES, solved, where_and_when

RESULTS = Path(__file__).parents[1] / "results" / "topics.json"
PLACED = [case.name for case in CASES if case.name.startswith(("expansion", "drain"))]
TOLERANCE = 0.1
"""How far from its share of a topic a broker may be, and by one replica at least."""

COLUMNS = {
    "case": "case",
    "policy": "policy",
    "CPU s without": "without_cpu_s",
    "with": "with_cpu_s",
    "with / without": "time_ratio",
    "bytes, with / without": "bytes_ratio",
    "replica moves without": "without_replica_moves",
    "with ": "with_replica_moves",
    "uneven before": "uneven_before",
    "without ": "without_uneven",
    "with  ": "with_uneven",
}


@dataclass(frozen=True)
class Planned:
    """One plan: processor seconds, bytes and replicas copied, replicas that are not spread."""

    cpu_s: float
    bytes_moved: int
    replica_moves: int
    uneven: int


def planned(instance: Instance, policy: str) -> Planned:
    """Plan a case once."""
    began = time.process_time()
    layout = solved(instance, policy).layout
    cpu_s = time.process_time() - began
    new = (layout.rows[:, :, None] != layout.origin[:, None, :]).all(axis=2)
    copied = int((new.sum(axis=1) * layout.size).sum())
    return Planned(cpu_s, copied, int(new.sum()), uneven(instance, layout.rows))


def uneven(instance: Instance, rows: Rows) -> int:
    """Replicas that brokers hold beyond their bands of topics, or lack: of topics with a replica
    for each broker that stays.

    Brokers of one data centre are compared with each other: each holds a copy of everything.
    """
    live, arrays = ~instance.drained, instance.arrays
    centre = np.unique([path[0] for path in arrays.brokers.rack_paths], return_inverse=True)[1]
    of_topic = np.bincount(arrays.topic_of, minlength=len(arrays.topics)) * rows.shape[1]
    found = 0
    for topic in np.flatnonzero(of_topic >= live.sum()).tolist():
        held = np.bincount(rows[arrays.topic_of == topic].ravel(), minlength=len(live))
        for number in np.unique(centre):
            here = held[live & (centre == number)]
            share = held[centre == number].sum() / len(here)
            slack = max(1.0, TOLERANCE * share)
            high, low = np.ceil(share + slack), np.floor(share - slack)
            found += int(np.maximum(np.maximum(here - high, low - here), 0).sum())
    return found


def compared(case: Case, size: int, policy: str, rounds: int) -> dict[str, Any]:
    """A case, planned in turn without the target and with it."""
    instance = build(case, *SIZES[size])
    found: dict[str, list[Planned]] = {policy: [], f"{policy}, topics": []}
    for turn in range(rounds):
        for name in list(found)[:: -1 if turn % 2 else 1]:
            found[name].append(planned(instance, name))
    without, spread = (min(plans, key=lambda plan: plan.cpu_s) for plans in found.values())
    return {
        "size": size,
        "case": case.name,
        "policy": policy,
        "rounds": rounds,
        "without_cpu_s": round(without.cpu_s, 2),
        "with_cpu_s": round(spread.cpu_s, 2),
        "time_ratio": round(spread.cpu_s / without.cpu_s, 2),
        "bytes_ratio": round(spread.bytes_moved / without.bytes_moved, 4),
        "without_replica_moves": without.replica_moves,
        "with_replica_moves": spread.replica_moves,
        "uneven_before": uneven(instance, instance.arrays.rows),
        "without_uneven": without.uneven,
        "with_uneven": spread.uneven,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, choices=SIZES, default=1_000_000)
    parser.add_argument("--cases", nargs="+", choices=PLACED, default=PLACED)
    parser.add_argument("--policies", nargs="+", default=["strict", "default"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for case in (case for case in CASES if case.name in options.cases):
        for policy in options.policies:
            asked = case, options.replicas, policy, options.rounds
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                results.append(where_and_when() | pool.submit(compared, *asked).result())
            print(json.dumps(results[-1]), flush=True)
            options.out.write_text(json.dumps(results, indent=1) + "\n")
    ratios = [result["time_ratio"] for result in results]
    summary = f"Time with over without: {median(ratios):.2f} in the median, {max(ratios)} at most."
    lines = [*document.table(COLUMNS, results), "", summary]
    print(*lines, sep="\n")
    if options.out == RESULTS:
        made = results[0]
        where = (
            f"Made {made['date'][:10]} on {made['cores']} cores shared with other work; least of"
        )
        lines = [f"{where} {made['rounds']} runs in turn.", "", *lines]
        document.put(document.DOCS / "benchmarks.md", "bench-topics", lines)


if __name__ == "__main__":
    main()
