"""Clusters for `make bench-ablation ARGS=--numbers`.

People's clusters, and what these do not have: up to 1,000,000 replicas, 150 to 1,000 brokers,
resources that conflict, further resources, caps, sets, a budget, log dirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.clusters import CASES, build
from benchmarks.people.judged_plans import planned
from benchmarks.people_clusters import People, cases, people
from benchmarks.planning.limits import LIMITS, caps_of, sets_of
from benchmarks.planning.plan import solved
from benchmarks.small_clusters import KINDS, small
from rehome.domain.actions import Action
from rehome.domain.array_types import Rows
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.actions.move_log_dirs import BYTES_ONLY
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.layout import Layout
from rehome.planning.rebalance.problem import problem_of
from rehome.planning.rebalance.rebalance import plan_rebalance
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.outcome import Outcome, tree_of
from rehome.planning.result.resource_bands import loads
from rehome.planning.search.state import Search

FURTHER = ReassignmentRequest(
    Action.REBALANCE, tolerances={"leader_bytes_in": 0.05, "potential_bytes_out": 0.05}
)
PEOPLE = (
    "4 + 1",
    "5 + 1, rf 2",
    "6 + 3",
    "racks 2 2 1",
    "racks 2 5 6 3",
    "capacity 1:4, new",
    "giant 0.6",
    "nearly full",
    "traffic known",
    "tolerance 0",
    "one-sided",
    "40 brokers",
    "many small topics, racks",
    "60 brokers",
    "racks of 7",
    "tolerance 0, racks",
    "3 racks + 3",
    "60 brokers, rates",
    "60 brokers, strict",
)
"""Those of people's cases that differ most from each other."""

LARGE = (
    ("stress", "strict", 2_000, 24),
    ("stress", "strict, topics", 2_000, 24),
    ("stress", "strict", 12_000, 150),
    ("skew", "strict", 4_000, 24),
    ("rates", "strict", 6_000, 150),
    ("expansion", "default, no worse", 7_500, 150),
    ("drain", "strict, topics", 7_500, 150),
    ("uneven", "bytes, one-sided", 6_000, 150),
    ("expansion", "strict, topics", 70_000, 150),
    ("skew", "bytes", 110_000, 150),
    ("stress", "strict, topics", 110_000, 150),
    ("expansion", "bytes", 333_334, 1_000),
)
"""Case, what is asked, partitions (of three replicas each) and brokers."""

RANDOM = ("mixed_rf", "giant", "weights", "caps")

Prepared = tuple[ClusterArrays, Callable[[], tuple[Rows, float]]]
"""A cluster, and what plans it: rows, and how far brokers end outside of their bands."""


@dataclass(frozen=True)
class Made:
    """One plan.

    :ivar excess: how far brokers end outside of their bands, in shares.
    """

    rows: Rows
    bytes_copied: float
    moves: int
    excess: float
    cpu_s: float


@dataclass(frozen=True)
class NumberCase:
    """A cluster and what is asked.

    :ivar kind: cases of one kind are alike; a number is tried on some of each.
    """

    name: str
    kind: str
    make: Callable[[], Prepared]

    def made(self) -> Made:
        """Plan it; building the cluster takes no time."""
        arrays, plan = self.make()
        before, began = arrays.rows.copy(), time.process_time()
        rows, excess = plan()
        cpu_s = time.process_time() - began
        copies = is_new(rows, before).sum(axis=1)
        copied = float((copies * arrays.size_bytes).sum())
        return Made(rows.copy(), copied, int(copies.sum()), excess, cpu_s)


def number_cases() -> Iterator[NumberCase]:
    """All of them."""
    for case in cases():
        if case.name in PEOPLE:
            kind = "people, small" if sum(case.topics) * case.replicas <= 2_000 else "people, large"
            yield NumberCase(case.name, kind, partial(_people, case))
    for name in RANDOM:
        yield NumberCase(f"random, {name}", "random", partial(_random, name, 1))
    for name, policy, partitions, brokers in LARGE:
        size = "large" if partitions < 60_000 else "largest"
        yield NumberCase(
            f"{name}, {policy}, {3 * partitions:,}",
            f"{size}, {name}" if name == "stress" else size,
            partial(_large, name, policy, partitions, brokers),
        )
    for name in ("further", "targets", "caps that some exceed", "caps and sets", "budget"):
        yield NumberCase(name, "asked", partial(_asked, name, 2_500, 60))
    for name in ("further", "budget"):
        yield NumberCase(f"{name}, small", "asked, small", partial(_asked, name, 300, 12))
    for dirs, replicas in ((3, 60), (8, 2_500)):
        name = f"{dirs} log dirs, {replicas} replicas"
        yield NumberCase(name, "log dirs", partial(_log_dirs, dirs, replicas))


def _people(case: People) -> Prepared:
    return people(case), lambda: _result(planned(case).outcome)


def _random(kind: str, seed: int) -> Prepared:
    of = small(seed, KINDS[kind])
    request = ReassignmentRequest(
        Action.REBALANCE,
        tolerance=0.05,
        tolerances={"bytes_in": 0.1, "bytes_out": None},
        weights=of.weights,
        move_overhead_bytes=0,
    )
    return of.arrays, partial(_rebalanced, of.arrays, request)


def _large(name: str, policy: str, partitions: int, brokers: int) -> Prepared:
    instance = build(next(case for case in CASES if case.name == name), partitions, brokers)

    def plan() -> tuple[Rows, float]:
        result = solved(instance, policy)
        return result.layout.rows, Search(result.problem).outside()

    return instance.arrays, plan


def _asked(name: str, partitions: int, brokers: int) -> Prepared:
    instance = build(CASES[0], partitions, brokers)
    arrays, request = instance.arrays, FURTHER
    if name == "budget":
        size = int(arrays.size_bytes.sum()) // brokers
        request = ReassignmentRequest(Action.REBALANCE, budget_bytes=size)
    elif name != "further":
        room, sets, request = LIMITS[name]
        caps = caps_of(instance, room) if room else None
        arrays = apply_limits(arrays, caps, sets_of(instance) if sets else None)
    return arrays, partial(_rebalanced, arrays, request)


def _log_dirs(dirs: int, replicas: int) -> Prepared:
    """The log dirs of a broker, as a cluster of so many brokers with one replica each."""
    arrays = people(People("log dirs", dirs, topics=(replicas,), replicas=1, skew=0.5))
    request = ReassignmentRequest(Action.MOVE_LOG_DIRS, tolerances=BYTES_ONLY)

    def plan() -> tuple[Rows, float]:
        hosts = np.ones(dirs, bool)
        problem = problem_of(
            Layout(arrays),
            tree_of(arrays, hosts, request),
            request,
            partitions=np.ones(replicas, bool),
            brokers=hosts,
            capacity=np.ones(dirs),
            whole=False,
        )
        rebalance(problem, np.ones(dirs), part_of_a_cluster=True)
        return problem.layout.rows, Search(problem).outside()

    return arrays, plan


def _rebalanced(arrays: ClusterArrays, request: ReassignmentRequest) -> tuple[Rows, float]:
    return _result(plan_rebalance(arrays, request))


def _result(outcome: Outcome) -> tuple[Rows, float]:
    """Rows, and how far brokers end outside of their bands, in shares."""
    bands, excess = outcome.bands, 0.0
    if bands is not None:
        for resource, share in bands.share.items():
            load = loads(outcome.layout, outcome.layout.rows, resource)
            beyond = np.maximum(load - bands.high[resource], bands.low[resource] - load)
            excess += float((np.maximum(beyond, 0) / np.maximum(share, 1.0)).sum())
    return outcome.layout.rows, excess
