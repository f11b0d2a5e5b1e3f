"""How long plans of up to 10,000 replicas take: `make bench-slow`.

Random clusters as people have them, each with every request that places replicas. Times are seconds
of the processor from arrays to a plan's layout, without the prices of a dry run; a loop of Python
says how fast the machine is. Writes benchmarks/results/slow_plans.json and a table in
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import document
from benchmarks.people.judged_plans import planned
from benchmarks.people_clusters import People
from benchmarks.planning.plan import where_and_when
from rehome.domain.actions import Action
from rehome.errors import InvalidRequestError

RESULTS = Path(__file__).parents[1] / "results" / "slow_plans.json"
LARGEST = 10_000
"""Replicas of a cluster, at most."""

GOAL_S = 2.0
SHOWN = 10
"""Slowest plans that the table names."""

ADDITIONS = 5_000_000
"""Of the loop that says how fast the machine is."""

STRICT = dict.fromkeys(("replicas", "leaders", "bytes_in", "bytes_out"), 0.05)
REQUESTS: dict[str, tuple[Action, dict[str, Any]]] = {
    "rebalance": (Action.REBALANCE, {}),
    "rebalance, five resources": (Action.REBALANCE, {"tolerances": STRICT}),
    "rebalance, five resources and topics": (
        Action.REBALANCE,
        {"tolerances": STRICT | {"topic_spread": 0.1}},
    ),
    "rebalance, tolerance 0": (Action.REBALANCE, {"tolerance": 0.0}),
    "expand": (Action.EXPAND, {}),
    "drain": (Action.DRAIN, {}),
    "set_replication_factor": (Action.SET_REPLICATION_FACTOR, {}),
    "balance_leaders": (Action.BALANCE_LEADERS, {}),
}
COLUMNS = {
    "request": "request",
    "cluster": "cluster",
    "brokers": "brokers",
    "racks": "racks",
    "replicas": "replicas",
    "CPU s": "cpu_s",
}


def random_cluster(seed: int) -> People:
    """3 to 120 brokers in up to six racks or none, 300 to 10,000 replicas, sizes and traffic of
    any kind, a broker or more of them new, larger ones, some disks nearly full.
    """
    rng = np.random.default_rng(seed)
    brokers = round(float(np.exp(rng.uniform(np.log(3), np.log(120)))))
    factor = int(rng.integers(1, min(5, brokers - 1), endpoint=True))
    replicas = float(np.exp(rng.uniform(np.log(300), np.log(LARGEST))))
    in_racks = rng.random() < 0.6
    racks = _racks(rng, brokers) if in_racks else ()
    return People(
        str(seed),
        0 if in_racks else brokers,
        racks,
        _topics(rng, int(replicas) // factor),
        factor,
        new=int(rng.integers(0, max(1, (brokers - factor) // 4), endpoint=True)),
        skew=float(rng.choice([0.05, 0.3, 0.8])),
        sigma=float(rng.choice([0.0, 0.5, 1.0, 2.0])),
        empty=float(rng.choice([0.0, 0.0, 0.5, 0.9])),
        giant=float(rng.choice([0.0, 0.0, 0.0, 0.7, 1.2])),
        large=int(rng.choice([0, 0, 0, 4])),
        free=float(rng.choice([0.0, 0.0, 0.2, 1.0])),
        rates=bool(rng.random() < 0.5),
    )


def _racks(rng: np.random.Generator, brokers: int) -> tuple[int, ...]:
    count = int(rng.integers(2, min(6, brokers), endpoint=True))
    if rng.random() < 0.5:
        return tuple(len(part) for part in np.array_split(np.arange(brokers), count))
    cuts = np.sort(rng.choice(np.arange(1, brokers), count - 1, replace=False))
    return tuple(np.diff(np.r_[0, cuts, brokers]).tolist())


def _topics(rng: np.random.Generator, partitions: int) -> tuple[int, ...]:
    """Partitions of each topic: few large topics and many small ones."""
    topics: list[int] = []
    while (left := partitions - sum(topics)) > 0:
        topics.append(min(left, int(rng.choice([1, 3, 6, 12, 24, 60, 200]))))
    return tuple(topics)


def requests(cluster: People) -> Iterator[tuple[str, People]]:
    """The cluster with each request that it can have, and the request's name."""
    for name, (action, params) in REQUESTS.items():
        if action is Action.EXPAND and not cluster.new:
            continue
        if action is Action.DRAIN:
            params = {"brokers": (0,)}
        if action is Action.SET_REPLICATION_FACTOR:
            params = {"replication_factor": cluster.replicas + 1}
        yield name, replace(cluster, action=action, params=params)


def rows(seeds: range) -> Iterator[dict[str, Any]]:
    """One row for each plan. A request that the cluster cannot carry out has none."""
    for seed in seeds:
        cluster = random_cluster(seed)
        for name, case in requests(cluster):
            try:
                made = planned(case)
            except InvalidRequestError:
                continue
            yield {
                "request": name,
                "cluster": seed,
                "brokers": cluster.count,
                "racks": len(cluster.racks),
                "replicas": made.arrays.rows.size,
                "cpu_s": round(made.cpu_s, 2),
            }


def machine_s() -> float:
    """Seconds of the processor for a loop of additions."""
    began, total = time.process_time(), 0
    for number in range(ADDITIONS):
        total += number
    return round(time.process_time() - began, 2)


def summary(plans: list[dict[str, Any]], loop_s: float) -> str:
    """How many plans there are, and how many take longer than the goal."""
    seconds = np.array([one["cpu_s"] for one in plans])
    return (
        f"{len(plans):,} plans of {len({one['cluster'] for one in plans})} clusters: "
        f"{np.quantile(seconds, 0.5):.2f} s in the median, "
        f"{np.quantile(seconds, 0.99):.2f} s for 99 of 100, {seconds.max():.2f} s at most; "
        f"{int((seconds > GOAL_S).sum())} take more than {GOAL_S:g} s. "
        f"A loop of {ADDITIONS:,} additions took {loop_s:g} s."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first cluster")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    plans = list(rows(range(options.first, options.first + options.clusters)))
    plans.sort(key=lambda one: -float(one["cpu_s"]))
    result = {**where_and_when(), "loop_s": machine_s(), "plans": plans}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    lines = [summary(plans, result["loop_s"]), "", *document.table(COLUMNS, plans[:SHOWN])]
    print(*lines, sep="\n")
    if options.out == RESULTS:
        document.put(document.DOCS / "benchmarks.md", "bench-slow", lines)


if __name__ == "__main__":
    main()
