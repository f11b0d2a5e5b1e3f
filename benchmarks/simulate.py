"""`decide` over 100,000 moves on 1,000 modelled brokers: `make bench-execute-simulator`.

Writes benchmarks/results/simulator.json: makespan over bound, and seconds per call of `decide`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from include.cluster.model import TopicPartition
from include.execution.backlog import Backlog
from include.execution.decide import decide
from include.execution.model import Action, LedgerView, Observation, PlanState, Policy
from include.execution.simulation.cluster import ModelledCluster
from include.execution.simulation.simulator import Simulation
from include.planning.plan import Move, MoveReason, Plan, PlanSummary

RESULTS = Path(__file__).parent / "results" / "simulator.json"
START = datetime(2030, 1, 1, tzinfo=UTC)
MEDIAN_BYTES = 250_000_000
RATE_BYTES_PER_S = 50_000_000
REPLICATION_FACTOR = 3


def random_plan(brokers: int, count: int, sigma: float, seed: int) -> Plan:
    """One replica of each partition moves to a broker without one; sizes are log-normal."""
    random = np.random.default_rng(seed)
    sizes = random.lognormal(np.log(MEDIAN_BYTES), sigma, count).astype(int).tolist()
    moves = []
    for number, size in enumerate(sizes):
        drawn: list[int] = []
        while len(drawn) <= REPLICATION_FACTOR:
            drawn = list(dict.fromkeys(random.integers(0, brokers, 8).tolist()))
        kept, old, new = drawn[:2], drawn[2], drawn[3]
        partition = TopicPartition(f"t{number // 100}", number % 100)
        moves.append(Move(partition, (*kept, old), (*kept, new), size, MoveReason.BALANCE))
    moved = sum(move.bytes_to_move for move in moves)
    summary = PlanSummary(
        "p", "", "sim", "rebalance", "", count, count, 0, moved, 0, RATE_BYTES_PER_S, None, 0, 0, ()
    )
    return Plan("p", "sim", "rebalance", tuple(moves), summary)


def bound_s(plan: Plan, rate_bytes_per_s: float) -> float:
    """Bytes in, or out as leader, of the most loaded broker over the rate: none is faster."""
    load: Counter[tuple[str, int]] = Counter()
    for move in plan.moves:
        load["out", move.current[0]] += move.bytes_to_move
        for broker in move.adding:
            load["in", broker] += move.size_bytes
    return max(load.values()) / rate_bytes_per_s


class Timed:
    """`decide`, with the moves in flight and the seconds (of processor time) of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, float]] = []

    def __call__(
        self,
        plan: Plan,
        view: LedgerView,
        seen: Observation,
        now: datetime,
        policy: Policy,
        backlog: Backlog,
    ) -> list[Action]:
        began = time.thread_time()
        actions = decide(plan, view, seen, now, policy, backlog)
        self.calls.append((len(backlog.admitted), time.thread_time() - began))
        return actions


def simulated(brokers: int, moves: int, sigma: float, slots: int, seed: int) -> dict[str, Any]:
    """The figures of one run."""
    plan = random_plan(brokers, moves, sigma, seed)
    policy = Policy(
        RATE_BYTES_PER_S, max_moves_per_broker=slots, max_partitions_in_flight=2 * slots * brokers
    )
    timed = Timed()
    began = time.perf_counter()
    cluster = ModelledCluster(range(brokers), plan.moves)
    simulation = Simulation(plan, cluster, policy, START, resolution_s=1.0, decide_by=timed)
    state = simulation.run()
    if state is not PlanState.DONE:
        raise RuntimeError(f"the plan ended {state}: {simulation.cause}")
    bound = bound_s(plan, RATE_BYTES_PER_S * policy.throttle_efficiency)
    ran_s = time.perf_counter() - began
    calls = timed.calls
    began = time.perf_counter()
    view = LedgerView(PlanState.RUNNING, {})
    Backlog.of(plan, view, ModelledCluster(range(brokers), plan.moves).observe(START))
    return {
        "brokers": brokers,
        "moves": moves,
        "sigma": sigma,
        "max_moves_per_broker": slots,
        "makespan_s": round(simulation.elapsed_s, 1),
        "bound_s": round(bound, 1),
        "makespan_over_bound": round(simulation.elapsed_s / bound, 4),
        "polls": simulation.polls,
        "max_in_flight": max(in_flight for in_flight, _ in calls),
        "decide_first_cpu_ms": round(1000 * calls[0][1], 1),
        "decide_median_cpu_ms": round(1000 * median(seconds for _, seconds in calls), 1),
        "decide_p99_cpu_ms": round(1000 * float(np.percentile([s for _, s in calls], 99)), 1),
        "decide_max_cpu_ms": round(1000 * max(seconds for _, seconds in calls), 1),
        "index_once_cpu_ms": round(1000 * (time.perf_counter() - began), 1),
        "simulated_in_s": round(ran_s, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--moves", type=int, default=100_000)
    parser.add_argument("--sigma", type=float, default=1.0, help="of the sizes' logarithm")
    parser.add_argument("--slots", type=int, default=Policy(1).max_moves_per_broker)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    gc.freeze()
    runs = []
    for moves in (options.moves // 4, options.moves):
        run = simulated(options.brokers, moves, options.sigma, options.slots, options.seed)
        print(json.dumps(run), flush=True)
        runs.append(run)
    result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "runs": runs,
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
