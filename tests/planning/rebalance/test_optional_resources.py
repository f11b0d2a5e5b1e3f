"""Targets that count only where they are asked for, against shares that are worked out here."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import SubjectKind
from rehome.domain.plan.plan import Plan
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import plan
from tests.planning.strategies import clusters

POTENTIAL, INTO_LEADERS = "potential_bytes_out", "leader_bytes_in"
BOTH = (POTENTIAL, INTO_LEADERS)
FREE = {"bytes_in": None, "bytes_out": None, "topic_spread": None}


def held(of: Cluster, resource: str) -> Counter[int]:
    """Per broker, what it would send if it led every replica, or what producers write to it."""
    total: Counter[int] = Counter(dict.fromkeys(of.racks, 0))
    for partition, brokers in of.replicas.items():
        rates = of.bytes_out if resource == POTENTIAL else of.bytes_in
        assert rates is not None
        for broker in brokers if resource == POTENTIAL else brokers[:1]:
            total[broker] += round(rates[partition])
    return total


def stated(made: Plan) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    return {item.resource: (item.before, item.after) for item in made.summary.resources}


def hot() -> Cluster:
    """32 partitions of four brokers; those led by broker 0 have all of the traffic."""
    rows = [(n % 4, (n + 1) % 4) for n in range(32)]
    of = cluster([""] * 4, rows)
    rates = {p: 100.0 if p.partition % 4 == 0 else 2.0 for p in of.replicas}
    return replace(of, bytes_in=rates, bytes_out={p: 3 * rate for p, rate in rates.items()})


@pytest.mark.slow
@examples(60)
@given(
    of=clusters(),
    rates=st.lists(st.integers(0, 40), min_size=14, max_size=14),
    tolerance=st.sampled_from([0.0, 0.05, 0.3]),
    one_sided=st.booleans(),
)
def test_every_broker_has_its_share_or_is_named(
    of: Cluster, rates: list[int], tolerance: float, one_sided: bool
) -> None:
    traffic = dict(zip(of.replicas, rates, strict=False))
    of = replace(of, bytes_in=traffic, bytes_out={p: 2 * r for p, r in traffic.items()})
    asked = FREE | dict.fromkeys(BOTH, tolerance)
    params = {"action": "rebalance", "tolerances": asked, "one_sided": one_sided}
    made = plan(of, **params)
    after, live = of.after(made), set(of.racks) - of.dead
    loads, brokers = stated(made), [load.broker for load in made.summary.brokers]
    named = {
        (item.subject.broker, item.resource)
        for item in made.summary.infeasible
        if item.subject.kind is SubjectKind.BROKER
    }
    for resource in BOTH:
        before, now = held(of, resource), held(after, resource)
        assert loads[resource] == tuple(tuple(side[b] for b in brokers) for side in (before, now))
        shared = before if resource == INTO_LEADERS else {b: before[b] for b in live}
        share = sum(shared.values()) / len(live)
        for broker in live:
            off = now[broker] - share
            off = off if one_sided else abs(off)
            assert off <= tolerance * share + 2 or (broker, resource) in named


@pytest.mark.slow
def test_they_count_where_they_are_asked_for_and_nowhere_else() -> None:
    of = hot()
    free = plan(of, action="rebalance", tolerances=FREE)
    assert free.moves == ()
    assert stated(free).keys().isdisjoint(BOTH)
    potential = plan(of, action="rebalance", tolerances=FREE | {POTENTIAL: 0.1})
    found = held(of.after(potential), POTENTIAL)
    assert max(found.values()) <= 1.1 * sum(found.values()) / 4 + 1
    assert potential.summary.bytes_to_move > 0
    led = plan(of, action="rebalance", tolerances=FREE | {INTO_LEADERS: 0.1})
    found, was = held(of.after(led), INTO_LEADERS), held(of, INTO_LEADERS)
    assert max(found.values()) < 0.6 * max(was.values()), "two brokers hold the traffic"
    assert led.summary.bytes_to_move == 0
    assert {item.resource for item in led.summary.infeasible} == {INTO_LEADERS}
    asked = FREE | dict.fromkeys(BOTH, 0.1)
    both = plan(of, action="rebalance", tolerances=asked, dry_run=True)
    for resource in BOTH:
        found = held(of.after(both), resource)
        assert max(found.values()) <= 1.1 * sum(found.values()) / 4 + 1
    assert both.summary.infeasible == ()
    assert "potential bytes out per second and bytes into leaders" in both.summary.planned_by
    assert "to send if every replica on it led" in " ".join(why_text(move) for move in both.moves)
    assert {price.resource: price.method for price in both.summary.prices} == {
        "bytes": "solved",
        POTENTIAL: "solved",
        INTO_LEADERS: "free",
    }


@pytest.mark.parametrize("resource", BOTH)
def test_traffic_that_is_not_known_is_named_and_the_plan_is_made_without_it(resource: str) -> None:
    of = replace(hot(), bytes_in=None, bytes_out=None)
    made = plan(of, action="rebalance", tolerances=FREE | {resource: 0.1})
    name = {POTENTIAL: "potential bytes out", INTO_LEADERS: "bytes into leaders"}[resource]
    assert made.summary.planned_by.startswith("bytes only; ")
    assert f"{name} per second not known: no history" in made.summary.planned_by
    assert made.moves == ()
    found = {item.resource: item.known for item in made.summary.resources}
    assert found[resource] is False
