"""Bytes copied against a mixed-integer solver, on random small clusters in two resources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from benchmarks.clusters import clipped
from include.planning.arrays import UNLIMITED, BrokerArrays, ClusterArrays, broker_sums
from include.planning.rebalance import plan_rebalance
from include.planning.request import Action, ReassignmentRequest

RACKS = 3
TOLERANCE = {"bytes": 0.05, "bytes_in": 0.1}
SOLVER_S = 15

QUICK = (11, 30, 35, 36)
"""Seeds of clusters that the solver is done with in a few seconds."""


@dataclass(frozen=True)
class Compared:
    """Bytes that the planner and the solver copy; infinite where it finds no way."""

    planned: float
    exact: float
    within: bool


def small(seed: int) -> ClusterArrays:
    """Up to 18 brokers in three racks and 240 partitions: new brokers, skew, two or three
    replicas, rates near the sizes or apart from them.
    """
    rng = np.random.default_rng(seed)
    brokers, partitions = RACKS * int(rng.integers(2, 7)), int(rng.integers(80, 240))
    replicas, rack = int(rng.integers(2, 4)), np.arange(brokers) % RACKS
    pull = np.exp(rng.choice([0.1, 0.3]) * rng.standard_normal(brokers))
    if rng.random() < 0.5 and brokers > RACKS:
        pull[-RACKS:] = 0
    rows = np.empty((partitions, replicas), np.int32)
    for row in rows:
        for place, number in enumerate(rng.permutation(RACKS)[:replicas]):
            among = np.flatnonzero(rack == number)
            row[place] = rng.choice(among, p=pull[among] / pull[among].sum())
    size = clipped(np.exp(1.5 * rng.standard_normal(partitions)), 0.5 * replicas / brokers)
    heat = np.exp(rng.choice([0.3, 0.8]) * rng.standard_normal(partitions))
    rate = clipped(size * heat, 0.5 * replicas / brokers)
    everyone = np.ones(brokers, bool)
    return ClusterArrays(
        brokers=BrokerArrays(
            ids=np.arange(brokers),
            live=everyone,
            takes=everyone,
            rack_paths=tuple((f"r{number}",) for number in rack),
            capacity_bytes=np.zeros(brokers, np.int64),
            room_bytes=np.full(brokers, UNLIMITED),
        ),
        topics=("t",),
        internal=np.zeros(1, bool),
        topic_of=np.zeros(partitions, np.int64),
        partition_of=np.arange(partitions),
        rows=rows,
        log_dirs=np.full(rows.shape, -1, np.int32),
        log_dir_names=(),
        size_bytes=np.rint(size * 1e6).astype(np.int64),
        leader=rows[:, 0].copy(),
        in_flight=np.zeros(partitions, bool),
        bytes_in=np.rint(rate * 1e6),
    )


def fewest_bytes(of: ClusterArrays) -> float:
    """The least that any plan copies which puts every broker into both boxes (mixed-integer)."""
    (count, replicas), brokers = of.rows.shape, len(of.brokers.ids)
    held = np.zeros((count, brokers))
    held[np.arange(count)[:, None], of.rows] = 1
    variable = np.arange(count * brokers).reshape(count, brokers)
    rows, low, high = [], [], []
    for weight, tolerance in zip((of.size_bytes, of.bytes_in), TOLERANCE.values(), strict=True):
        share = float(weight.sum()) * replicas / brokers
        rows += [(variable[:, b], weight / share) for b in range(brokers)]
        low += [1 - tolerance] * brokers
        high += [1 + tolerance] * brokers
    for p in range(count):
        rows.append((variable[p], np.ones(brokers)))
        low.append(replicas)
        high.append(replicas)
        for rack in range(RACKS):
            mine = variable[p, rack::RACKS]
            rows.append((mine, np.ones(len(mine))))
            low.append(1 if replicas == RACKS else 0)
            high.append(1)
    columns = np.concatenate([columns for columns, _ in rows])
    data = np.concatenate([np.asarray(values, float) for _, values in rows])
    starts = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    mean_size = float(of.size_bytes.mean())
    solved = milp(
        (of.size_bytes[:, None] / mean_size * (1 - held)).ravel(),
        constraints=LinearConstraint(
            csr_array((data, columns, starts), shape=(len(rows), variable.size)), low, high
        ),
        integrality=np.ones(variable.size),
        bounds=Bounds(0, 1),
        options={"time_limit": SOLVER_S, "mip_rel_gap": 0.002},
    )
    return float("inf") if solved.fun is None else float(solved.fun) * mean_size


def compared(seed: int) -> Compared:
    of = small(seed)
    request = ReassignmentRequest(
        Action.REBALANCE,
        tolerance=TOLERANCE["bytes"],
        tolerances={"bytes_in": TOLERANCE["bytes_in"], "bytes_out": None},
        move_overhead_bytes=0,
    )
    outcome = plan_rebalance(of, request)
    layout = outcome.layout
    assert not outcome.tree_after.violations(layout.rows).any()
    copies = (layout.rows[:, :, None] != layout.home[:, None, :]).all(axis=2).sum(axis=1)
    planned = float((copies * of.size_bytes).sum())
    loads = [
        (broker_sums(layout.rows, weight, len(of.brokers.ids)), tolerance)
        for weight, tolerance in zip((of.size_bytes, of.bytes_in), TOLERANCE.values(), strict=True)
    ]
    within = all(
        bool((np.abs(load / load.mean() - 1) <= tolerance + 1e-4).all())
        for load, tolerance in loads
    )
    assert within or outcome.infeasible
    exact = fewest_bytes(of)
    if np.isfinite(exact) and within:
        assert outcome.lower_bound_bytes <= exact * 1.003 + 1
    return Compared(planned, exact, within)


def check(seeds: Iterable[int], mean: float) -> None:
    """Met wherever the solver finds a way; hardly more bytes on average, 10 % at worst."""
    found = {seed: compared(seed) for seed in seeds}
    ratios = {s: c.planned / c.exact for s, c in found.items() if c.exact > 0 and c.within}
    print({seed: round(ratio, 3) for seed, ratio in ratios.items()})
    missed = [s for s, c in found.items() if not c.within and np.isfinite(c.exact)]
    assert len(missed) <= len(found) // 20, missed
    assert np.mean(list(ratios.values())) <= mean
    assert max(ratios.values()) <= 1.10


def test_a_rebalance_in_two_resources_copies_hardly_more_than_an_exact_solver():
    check(QUICK, mean=1.01)


@pytest.mark.long
@pytest.mark.timeout(5_000)
def test_the_same_on_two_hundred_clusters():
    check(range(200), mean=1.03)
