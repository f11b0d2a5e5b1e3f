"""Limits that plans state: the gate finds the cause of each, and refuses those without one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest

from rehome.domain.plan.infeasible import (
    OF_THE_CLUSTER,
    Infeasible,
    Obstacle,
    Subject,
    SubjectKind,
)
from rehome.domain.request.request import Action, ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.errors import InvalidRequestError
from rehome.quality.facts.rack_spread import badly_placed
from rehome.quality.plan.stated_limits import StatedLimits, unproven_limits
from tests.examples import ALL
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, with_summary
from tests.quality.plan.checked_plans import claiming
from tests.quality.plan.clean import random_cluster, random_request

RACKS = ["/a"] * 4 + ["/b"] * 4 + ["/c"] * 2
UNEQUAL = cluster(RACKS, [(n % 4, 4 + n % 4, 8 + n % 2) for n in range(60)])
RANDOM_PLANS = 300 if ALL else 15


def test_unequal_racks_are_a_limit_with_a_cause() -> None:
    checked = planned(UNEQUAL.snapshot(), ReassignmentRequest(Action.REBALANCE))
    stated = {note.obstacle for note in checked.plan.summary.infeasible}
    assert {Obstacle.RACKS_FORCE_MORE, Obstacle.SHIFTED_SHARE} <= stated <= OF_THE_CLUSTER
    assert unproven_limits(checked) == []


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        (Subject(SubjectKind.RACK, "/a"), Obstacle.RACKS_FORCE_MORE),
        (Subject(SubjectKind.RACK, "/nowhere"), Obstacle.RACKS_ALLOW_NO_MORE),
        (Subject.of_broker(8), Obstacle.ONE_REPLICA_PER_BROKER),
        (Subject.of_broker(8), Obstacle.FIXED_REPLICAS),
        (Subject.of_broker(8), Obstacle.TAKES_NO_REPLICAS),
        (Subject.of_broker(8), Obstacle.DISK_FULL),
        (Subject.of_broker(8), Obstacle.LARGE_PARTITION),
    ],
)
def test_a_limit_without_a_cause_is_named(subject: Subject, why: Obstacle) -> None:
    checked = planned(UNEQUAL.snapshot(), ReassignmentRequest(Action.REBALANCE))
    note = Infeasible(subject, why, 2_200, 2_000, resource=Resource.BYTES)
    false = with_summary(checked, infeasible=(note,))
    assert len(unproven_limits(false)) == 1


@pytest.mark.slow
def test_a_share_is_shifted_by_something() -> None:
    assert unproven_limits(claiming(Subject.of_broker(2), Obstacle.SHIFTED_SHARE)) == ["broker 2"]


@pytest.mark.slow
def test_no_limit_of_a_random_plan_lacks_a_cause() -> None:
    seed = stated = 0
    while stated < RANDOM_PLANS:
        seed += 1
        rng, depth = Random(seed), seed % 4
        of = random_cluster(rng, depth)
        action = rng.choice([Action.REBALANCE, Action.EXPAND])
        request = replace(random_request(rng, of, action, depth), caps=None, broker_sets=())
        try:
            checked = planned(of.snapshot(), request)
        except InvalidRequestError:
            continue
        notes = [n for n in checked.plan.summary.infeasible if n.obstacle in OF_THE_CLUSTER]
        stated += bool(notes)
        assert unproven_limits(checked) == [], seed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_racks_can_hold_is_what_all_even_sets_hold(seed: int) -> None:
    """Brute force: every set of brokers."""
    rng = Random(seed)
    paths = [f"/{rng.choice('abc')}/{rng.choice('xy')}" for _ in range(6)]
    replicas = rng.randint(1, 4)
    of = cluster(paths, [tuple(range(replicas))])
    checked = planned(of.snapshot(), ReassignmentRequest(Action.REBALANCE))
    sets = np.array(list(combinations(range(6), replicas)), np.int32)
    bad = sum(badly_placed(checked.rack_paths, np.ones(6, bool), sets))
    even = sets[np.asarray(bad) == 0]
    limits = StatedLimits(checked)
    for node, (least, most) in zip(
        limits.levels, limits.spread_evenly(np.eye(replicas + 1)[replicas]), strict=True
    ):
        held = np.stack([(node[even] == n).sum(axis=1) for n in range(int(node.max()) + 1)])
        assert held.min(axis=1).tolist() == least.tolist()
        assert held.max(axis=1).tolist() == most.tolist()
