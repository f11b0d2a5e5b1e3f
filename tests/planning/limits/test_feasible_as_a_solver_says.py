"""Where a mixed-integer solver finds a place for everything in its set and below caps, so does a
plan, nearly always: placement is greedy.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from rehome.errors import InvalidRequestError
from tests.planning.clusters import Cluster, cluster
from tests.planning.limits.test_caps_and_sets import may_hold, outside
from tests.planning.planned import both, plan

CLUSTERS, AT_LEAST = 60, 0.85
BROKERS = 6


def tight(rng: np.random.Generator) -> tuple[Cluster, list[dict[str, object]], int]:
    """Two topics whose sets overlap, and caps with hardly any room."""
    rows = [
        [tuple(rng.permutation(BROKERS)[:2].tolist()) for _ in range(rng.integers(4, 10))]
        for _ in range(2)
    ]
    names = ("one", "two")
    of = both(*(cluster([""] * BROKERS, r, topic=n) for r, n in zip(rows, names, strict=True)))
    sets: list[dict[str, object]] = [
        {"name": n, "topics": [n], "brokers": sorted(rng.permutation(BROKERS)[:4].tolist())}
        for n in names
    ]
    cap = -(-2 * len(of.replicas) // BROKERS) + int(rng.integers(1, 3))
    return of, sets, cap


def has_a_place(of: Cluster, sets: list[dict[str, object]], cap: int) -> bool:
    """Whether all replicas find one: two brokers of its set for each partition, and no broker
    above its cap, or what it held.
    """
    partitions = list(of.replicas)
    may = np.array([[b in may_hold(of, sets, p.topic) for b in range(BROKERS)] for p in partitions])
    held = np.bincount([b for row in of.replicas.values() for b in row], minlength=BROKERS)
    count = len(partitions)
    each = np.kron(np.eye(count), np.ones(BROKERS))
    broker = np.kron(np.ones(count), np.eye(BROKERS))
    found = milp(
        np.zeros(count * BROKERS),
        constraints=[
            LinearConstraint(each, 2, 2),
            LinearConstraint(broker, 0, np.maximum(cap, held)),
        ],
        bounds=Bounds(0, may.ravel().astype(float)),
        integrality=np.ones(count * BROKERS),
    )
    return bool(found.success)


@pytest.mark.slow
def test_a_replica_that_an_exact_solver_can_place_is_placed_by_the_plan() -> None:
    placed = []
    for seed in range(CLUSTERS):
        of, sets, cap = tight(np.random.default_rng(seed))
        if has_a_place(of, sets, cap):
            limits = {"broker_sets": sets, "caps": {"default": {"replicas": cap}}}
            try:
                made = plan(of, action="repair_racks", **limits)
            except InvalidRequestError:
                placed.append(False)
            else:
                placed.append(outside(of.after(made), sets) == 0)
    assert len(placed) > CLUSTERS / 3
    assert np.mean(placed) >= AT_LEAST, np.mean(placed)
