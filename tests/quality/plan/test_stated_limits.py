"""Limits that plans state: the gate finds the cause of each, and refuses those without one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random

import numpy as np
import pytest

from rehome.domain.actions import Action
from rehome.domain.array_types import Floats, Mask
from rehome.domain.plan.infeasible import (
    OF_THE_CLUSTER,
    Infeasible,
    Obstacle,
    Subject,
    SubjectKind,
)
from rehome.domain.request.limits import BrokerCaps, BrokerLimits, BrokerSet
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.errors import InvalidRequestError
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.rack_spread import badly_placed
from rehome.quality.plan.stated_limits import JUDGED, StatedLimits, unproven_limits
from tests.examples import ALL
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, with_summary
from tests.quality.plan.checked_plans import claiming
from tests.quality.plan.clean import limited, random_cluster, random_request, troubled

RACKS = ["/a"] * 4 + ["/b"] * 4 + ["/c"] * 2
UNEQUAL = cluster(RACKS, [(n % 4, 4 + n % 4, 8 + n % 2) for n in range(60)])
RANDOM_PLANS = 300 if ALL else 15
"""Random plans that state limits, without caps and broker sets; and as many with them."""


def test_unequal_racks_are_a_limit_with_a_cause() -> None:
    checked = planned(UNEQUAL.snapshot(), ReassignmentRequest(Action.REBALANCE))
    stated = {note.obstacle for note in checked.plan.summary.infeasible}
    assert {Obstacle.RACKS_FORCE_MORE, Obstacle.SHIFTED_SHARE} <= stated <= OF_THE_CLUSTER
    assert unproven_limits(checked) == []


@pytest.mark.parametrize(("wanted", "proven"), [(20, True), (8, False)])
def test_a_cap_is_a_limit_if_it_is_below_what_was_wanted(wanted: float, *, proven: bool) -> None:
    caps = BrokerCaps(default=BrokerLimits(), brokers={8: BrokerLimits(replicas=15)})
    request = ReassignmentRequest(Action.REBALANCE, tolerances={"replicas": 0.1}, caps=caps)
    checked = planned(UNEQUAL.snapshot(), request)
    note = Infeasible(Subject.of_broker(8), Obstacle.CAP, wanted, 8, resource=Resource.REPLICAS)
    of_leaders = replace(note, resource=Resource.BYTES)
    assert (unproven_limits(with_summary(checked, infeasible=(note,))) == []) is proven
    assert unproven_limits(with_summary(checked, infeasible=(of_leaders,))) == ["broker 8"]


def test_a_broker_set_alone_is_no_limit_of_a_broker_that_can_hold_more() -> None:
    sets = (BrokerSet(name="s", topics=("t",), brokers=tuple(range(8))),)
    request = ReassignmentRequest(Action.REBALANCE, broker_sets=sets)
    checked = planned(UNEQUAL.snapshot(), request)
    note = Infeasible(
        Subject.of_broker(3), Obstacle.ONE_REPLICA_PER_BROKER, 2_000, 1_900, resource=Resource.BYTES
    )
    assert unproven_limits(with_summary(checked, infeasible=(note,))) == ["broker 3"]
    outside = replace(note, subject=Subject.of_broker(9), wanted=100)
    assert unproven_limits(with_summary(checked, infeasible=(outside,))) == []


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
        (Subject.of_broker(8), Obstacle.CAP),
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
@pytest.mark.parametrize("within_limits", [False, True])
def test_no_limit_of_a_random_plan_lacks_a_cause(*, within_limits: bool) -> None:
    """With every random case (`make test-thorough`) it prints how many limits were judged."""
    seed = made = 0
    stated: Counter[Obstacle] = Counter()
    while made < RANDOM_PLANS:
        seed += 1
        rng, depth = Random(seed), seed % 4
        of = random_cluster(rng, depth)
        action = rng.choice([Action.REBALANCE, Action.EXPAND])
        request = random_request(rng, of, action, depth)
        if within_limits:
            request = limited(rng, of, request)
        of = troubled(rng, of, request) if seed % 3 == 0 else of
        try:
            checked = planned(of.snapshot(), request)
        except InvalidRequestError:
            continue
        notes = [n for n in checked.plan.summary.infeasible if n.obstacle in JUDGED]
        stated.update(note.obstacle for note in notes)
        made += bool(notes)
        assert unproven_limits(checked) == [], seed
    print(f"\n{seed} random clusters, {made} plans state {stated.total()} limits: {dict(stated)}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_racks_can_hold_is_what_all_even_sets_hold(seed: int) -> None:
    """Brute force: every set of brokers."""
    rng = Random(seed)
    paths = [f"/{rng.choice('abc')}/{rng.choice('xy')}" for _ in range(6)]
    replicas = rng.randint(1, 4)
    of = cluster(paths, [tuple(range(replicas))])
    chosen = tuple(sorted(rng.sample(range(6), rng.randint(replicas, 6))))
    request = ReassignmentRequest(
        Action.REBALANCE, broker_sets=(BrokerSet(name="s", topics=("t",), brokers=chosen),)
    )
    checked = planned(of.snapshot(), request)
    limits, one = StatedLimits(checked), np.eye(replicas + 1)[replicas]
    may = np.isin(np.arange(6), chosen)
    _compare(checked, limits, may, replicas, limits.spread_evenly(one, 0))
    _compare(checked, limits, np.ones(6, bool), replicas, limits.spread_evenly(one))


def _compare(
    checked: Checked,
    limits: StatedLimits,
    may: Mask,
    replicas: int,
    found: list[tuple[Floats, Floats]],
) -> None:
    sets = np.array(list(combinations(np.flatnonzero(may).tolist(), replicas)), np.int32)
    bad = sum(badly_placed(checked.rack_paths, may, sets))
    even = sets[np.asarray(bad) == 0]
    for node, (least, most) in zip(limits.levels, found, strict=True):
        held = np.stack([(node[even] == n).sum(axis=1) for n in range(int(node.max()) + 1)])
        assert held.min(axis=1).tolist() == least.tolist()
        assert held.max(axis=1).tolist() == most.tolist()
