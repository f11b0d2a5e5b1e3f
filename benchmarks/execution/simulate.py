"""`decide` over 100,000 moves on 1,000 modelled brokers: `make bench-simulate`.

Writes benchmarks/results/simulator.json, and the table in docs/benchmarks.md: makespan over bound,
and milliseconds of processor time per call of `decide`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import document
from benchmarks.simulation.cluster import ModelledCluster
from benchmarks.simulation.simulator import Simulation
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import Decision
from rehome.execution.admission.backlog import Backlog
from rehome.execution.decide import decide
from rehome.execution.policy_from_request import MOST_SMALL_IN_FLIGHT
from rehome.settings import Settings
from world.plan_of_moves import plan_of_moves

RESULTS = Path(__file__).parents[1] / "results" / "simulator.json"
COLUMNS = {
    "admission": "admission",
    "moves": "moves",
    "makespan s": "makespan_s",
    "makespan / bound": "makespan_over_bound",
    "most in flight": "max_in_flight",
    "first call ms": "decide_first_cpu_ms",
    "median ms": "decide_median_cpu_ms",
    "p99 ms": "decide_p99_cpu_ms",
    "μs per move in flight": "decide_median_cpu_us_per_move_in_flight",
    "index ms, once": "index_once_cpu_ms",
}
START = datetime(2030, 1, 1, tzinfo=UTC)
MEDIAN_BYTES = 250_000_000
EMPTY = "empty partitions"
RATE_BYTES_PER_S = 50_000_000
REPLICATION_FACTOR = 3
_LIMIT = Settings().max_partitions_in_flight
RESOLUTION_S = 0.25
"""Copies that end within this time are taken together: what they leave unused of it is lost."""


def random_plan(
    brokers: int, count: int, sigma: float, seed: int, median_bytes: int = MEDIAN_BYTES
) -> Plan:
    """One replica of each partition moves to a broker without one; sizes are log-normal.

    :param median_bytes: of the sizes; 0 = all are empty.
    """
    random = np.random.default_rng(seed)
    sizes = (random.lognormal(0.0, sigma, count) * median_bytes).astype(int).tolist()
    moves = []
    for number, size in enumerate(sizes):
        drawn: list[int] = []
        while len(drawn) <= REPLICATION_FACTOR:
            drawn = list(dict.fromkeys(random.integers(0, brokers, 8).tolist()))
        kept, old, new = drawn[:2], drawn[2], drawn[3]
        partition = TopicPartition(f"t{number // 100}", number % 100)
        moves.append(Move(partition, (*kept, old), (*kept, new), size, MoveReason.BALANCE))
    return plan_of_moves("p", "sim", moves, RATE_BYTES_PER_S)


def bound_s(plan: Plan, rate_bytes_per_s: float) -> float:
    """Bytes in, or out as leader, of the most loaded broker over the rate: none is faster."""
    load: Counter[tuple[str, int]] = Counter()
    for move in plan.moves:
        load["out", move.current[0]] += move.bytes_to_move
        for broker in move.adding:
            load["in", broker] += move.size_bytes
    return max(load.values()) / rate_bytes_per_s


class Timed:
    """`decide`, with the moves in flight and the seconds (of processor time) of each call.

    The garbage collector waits meanwhile: what it goes through is the model, not the call.
    """

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
    ) -> list[Decision]:
        gc.disable()
        began = time.thread_time()
        actions = decide(plan, view, seen, now, policy, backlog)
        self.calls.append((len(backlog.admitted), time.thread_time() - began))
        gc.enable()
        return actions

    def figures(self) -> dict[str, float]:
        """Processor time of the first call, which admits most, and of all."""
        ms = np.array([1000 * seconds for _, seconds in self.calls])
        per_move = [1000 * s / n for n, s in self.calls if n > 100]
        return {
            "decide_first_cpu_ms": round(float(ms[0]), 1),
            "decide_median_cpu_ms": round(float(np.median(ms)), 1),
            "decide_p99_cpu_ms": round(float(np.percentile(ms, 99)), 1),
            "decide_max_cpu_ms": round(float(ms.max()), 1),
            "decide_median_cpu_us_per_move_in_flight": round(1000 * median(per_move), 1),
        }


def simulated(brokers: int, moves: int, policy: Policy, sigma: float, seed: int) -> dict[str, Any]:
    """The figures of one run."""
    plan = random_plan(brokers, moves, sigma, seed, 0 if policy.small_bytes else MEDIAN_BYTES)
    timed = Timed()
    began = time.process_time()
    cluster = ModelledCluster(range(brokers), plan.moves)
    simulation = Simulation(
        plan, cluster, policy, START, resolution_s=RESOLUTION_S, decide_by=timed
    )
    state = simulation.run()
    if state is not PlanState.DONE:
        raise RuntimeError(f"the plan ended {state}: {simulation.cause}")
    ran_s = time.process_time() - began
    bound = bound_s(plan, RATE_BYTES_PER_S * policy.throttle_efficiency)
    return {
        "brokers": brokers,
        "moves": moves,
        "sigma": sigma,
        "max_moves_per_broker": policy.max_moves_per_broker,
        "poll_interval_s": policy.poll_interval_s,
        "reaction_s": policy.reaction_s,
        "makespan_s": round(simulation.elapsed_s, 1),
        "bound_s": round(bound, 1),
        "makespan_over_bound": round(simulation.elapsed_s / bound, 4) if bound else None,
        "polls": simulation.polls,
        "max_in_flight": max(in_flight for in_flight, _ in timed.calls),
        **timed.figures(),
        "index_once_cpu_ms": round(1000 * _index_once_s(plan, brokers), 1),
        "simulated_in_cpu_s": round(ran_s, 1),
    }


def _index_once_s(plan: Plan, brokers: int) -> float:
    """What a process without a backlog pays before its first decision."""
    states = dict.fromkeys((move.partition for move in plan.moves), MoveState.PENDING)
    view = LedgerView(PlanState.RUNNING, states)
    seen = ModelledCluster(range(brokers), plan.moves).observe(START)
    began = time.thread_time()
    Backlog.of(plan, view, seen)
    return time.thread_time() - began


def policies(slots: int, brokers: int) -> dict[str, Policy]:
    """Ways to admit: at each poll, at each wake of Airflow, few at once, whole slots only."""
    often = Policy(
        RATE_BYTES_PER_S,
        max_moves_per_broker=slots,
        max_partitions_in_flight=10 * slots * brokers,
        poll_interval_s=5.0,
        reaction_s=5.0,
    )
    seldom = replace(often, poll_interval_s=15.0, reaction_s=15.0)
    return {
        "every 5 s": often,
        "every 15 s": seldom,
        "every 15 s, two for each broker": replace(seldom, max_partitions_in_flight=2 * brokers),
        "every 15 s, whole slots": replace(seldom, reaction_s=0.0),
        EMPTY: replace(
            seldom,
            max_partitions_in_flight=_LIMIT,
            small_bytes=1_000_000,
            max_small_in_flight=MOST_SMALL_IN_FLIGHT,
        ),
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
    runs = []
    for name, policy in policies(options.slots, options.brokers).items():
        counts = (options.moves // 4, options.moves) if name == "every 5 s" else (options.moves,)
        for moves in counts:
            run = simulated(options.brokers, moves, policy, options.sigma, options.seed)
            runs.append({"admission": name, **run})
            print(json.dumps(runs[-1]), flush=True)
    result = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "runs": runs,
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.out == RESULTS:
        write_document(result)


def write_document(result: dict[str, Any]) -> None:
    """Put the table into the document, between its marks."""
    made = f"Made {result['date'][:10]} on {result['cores']} cores."
    lines = [made, "", *document.table(COLUMNS, result["runs"])]
    document.put(document.DOCS / "benchmarks.md", "bench-simulate", lines)


if __name__ == "__main__":
    main()
