"""Which brokers and zones copies are read from, where a plan has a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.actions import Action
from rehome.domain.array_types import Floats
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import ClusterArrays, broker_sums
from rehome.planning.model.layout import copies, sources
from rehome.planning.rebalance.copy_sources import COPY_SOURCES, prefer_sources
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.summary_figures import bytes_across_racks
from rehome.planning.search.state import Problem
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import plan
from tests.planning.posed import PLAIN, posed

ZONES = ["/a", "/a", "/b", "/b"]


class Figures(NamedTuple):
    """What a layout copies, and what its brokers hold."""

    bytes_copied: int
    copies: int
    across: int
    sent: Floats
    received: Floats
    load: Floats
    violations: int


def figures(problem: Problem) -> Figures:
    layout, brokers = problem.layout, len(problem.gives)
    partition, target = copies(layout)
    size = layout.size[partition].astype(float)
    return Figures(
        int(size.sum()),
        len(partition),
        bytes_across_racks(layout, problem.tree),
        np.bincount(sources(layout)[partition], size, brokers).astype(float),
        np.bincount(target, size, brokers).astype(float),
        np.stack([broker_sums(layout.rows, weight, brokers) for weight in problem.weights]),
        int(problem.tree.violations(layout.rows).sum()),
    )


def balanced(of: Cluster, tolerances: dict[str, float | None]) -> Problem:
    """The problem of a rebalance, its layout as one search leaves it."""
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.05, tolerances=tolerances)
    arrays = ClusterArrays.from_snapshot(of.snapshot())
    problem = replace(posed(arrays, request), parts=PLAIN)
    rebalance(problem, np.ones(len(of.racks)))
    return problem


def skewed(seed: int, replicas: int = 3) -> Cluster:
    """Twelve brokers in three zones, the last ones emptier; leaders on the first ones."""
    rng = np.random.default_rng(seed)
    count = 150
    rows = [
        [int(z + 3 * min(rng.integers(0, 4, 2))) for z in rng.permutation(3)[:replicas]]
        for _ in range(count)
    ]
    rows = [sorted(row) if rng.random() < 0.5 else row for row in rows]
    sizes = rng.lognormal(8, 1, count).astype(int).clip(1, 10_000).tolist()
    of = cluster([f"/z{broker % 3}" for broker in range(12)], rows, sizes)
    heat = rng.lognormal(0, 0.5, count)
    return replace(
        of, bytes_in={p: s * h for (p, s), h in zip(of.sizes.items(), heat, strict=True)}
    )


@pytest.mark.parametrize("near", [(0, 1), (2, 3)])
def test_of_replicas_that_are_alike_those_are_copied_whose_leader_is_in_the_same_zone(
    near: tuple[int, int],
) -> None:
    rows = [[0, 2 + number % 2] if number in near else [2 + number % 2, 0] for number in range(4)]
    made = plan(cluster(ZONES, rows), action="rebalance")
    assert {move.partition.partition for move in made.moves} == set(near)
    assert made.summary.bytes_to_move == 200
    assert made.summary.bytes_across_racks == 0


@pytest.mark.parametrize("hot", [2, 3])
def test_a_leader_that_would_send_more_than_anyone_receives_is_relieved(hot: int) -> None:
    other = 5 - hot
    rows = [[leader, giver] for leader in (hot, other) for giver in (0, 0, 1, 1)]
    made = plan(cluster([""] * 6, rows), action="rebalance", brokers=[0, 1, 4, 5])
    assert made.summary.bytes_to_move == 400
    assert [load.bytes_in for load in made.summary.brokers] == [0, 0, 0, 0, 200, 200]
    assert [load.bytes_out for load in made.summary.brokers] == [0, 0, 200, 200, 0, 0]


@pytest.mark.slow
@examples(15)
@given(seed=st.integers(0, 10_000), replicas=st.sampled_from([2, 3]), rates=st.booleans())
def test_sources_improve_at_no_cost(seed: int, replicas: int, rates: bool) -> None:
    tolerances: dict[str, float | None] = {"bytes_in": None}
    if rates:
        tolerances = {"bytes_in": 0.1, "replicas": 0.2}
    problem = balanced(skewed(seed, replicas), tolerances)
    origin, rows, before = (
        problem.layout.origin.copy(),
        problem.layout.rows.copy(),
        figures(problem),
    )
    prefer_sources(problem)
    after = figures(problem)
    assert after.bytes_copied <= before.bytes_copied
    assert after.copies <= before.copies
    assert after.violations <= before.violations
    low, high = (
        side(edge, before.load)
        for side, edge in ((np.minimum, problem.targets.low), (np.maximum, problem.targets.high))
    )
    assert (low <= after.load).all()
    assert (after.load <= high).all()
    most = (1 + COPY_SOURCES.slack) * before.received.max()
    over, over_before = (np.maximum(f.sent - most, 0) for f in (after, before))
    assert (over <= over_before).all()
    assert over.sum() < over_before.sum() or after.across <= before.across
    assert (problem.layout.origin == origin).all()

    first = problem.layout.rows.copy()
    problem.layout.rows[:] = rows
    problem.layout.refresh()
    prefer_sources(problem)
    assert (problem.layout.rows == first).all()


def test_no_other_replica_is_copied_to_a_broker_that_receives_none() -> None:
    """A repair of racks may have brought copies there."""
    problem = balanced(skewed(1), {"bytes_in": None})
    rows = problem.layout.rows.copy()
    for broker in np.unique(copies(problem.layout)[1]).tolist():
        problem.layout.lay_out(rows)
        before = copied_to(problem, broker)
        closed = np.arange(len(problem.takes)) == broker
        prefer_sources(replace(problem, takes=problem.takes & ~closed))
        assert copied_to(problem, broker) <= before


def copied_to(problem: Problem, broker: int) -> set[int]:
    partition, target = copies(problem.layout)
    return set(partition[target == broker].tolist())


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [2, 3])
def test_where_sizes_differ_less_crosses_zones_over_several_clusters(replicas: int) -> None:
    pairs = []
    for seed in range(3):
        problem = balanced(skewed(seed, replicas), {"bytes_in": None})
        before = figures(problem)
        prefer_sources(problem)
        pairs.append((before, figures(problem)))
    across_before, across = (
        sum(figure.across for figure in side) for side in zip(*pairs, strict=True)
    )
    assert across < across_before


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(0, marks=pytest.mark.long), 1, pytest.param(2, marks=pytest.mark.long)]
)
def test_planning_again_plans_nothing(seed: int) -> None:
    of = skewed(seed)
    made = plan(of, action="rebalance", tolerance=0.05)
    assert made.moves
    assert plan(of.after(made), action="rebalance", tolerance=0.05).moves == ()
