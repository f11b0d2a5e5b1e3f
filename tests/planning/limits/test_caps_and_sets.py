"""Caps of brokers and broker sets, against a checker that knows nothing of the planner's arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.infeasible import Obstacle, SubjectKind
from rehome.domain.plan.plan import Plan
from rehome.errors import InvalidRequestError
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.placement.replica_sets import Placer
from rehome.planning.rebalance import problem
from tests.examples import property_of
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import both, plan

Caps = dict[str, dict[str, Any]]
Sets = list[dict[str, Any]]
Limited = tuple[Cluster, Caps, Sets]


def broken(before: Cluster, after: Cluster, caps: Caps, sets: Sets) -> list[str]:
    """What a cluster breaks that it did not break before."""
    found = []
    for resource in ("replicas", "leaders"):
        was, now = (_held(of, resource) for of in (before, after))
        for broker in after.racks:
            cap = {**caps.get("default", {}), **caps.get("brokers", {}).get(str(broker), {})}
            most = cap.get(resource)
            if most is not None and now[broker] > max(most, was[broker]):
                found.append(f"{broker}: {resource} {now[broker]} > {most}")
    for partition, replicas in after.replicas.items():
        allowed = may_hold(after, sets, partition.topic)
        found += [
            f"{partition} on {broker}"
            for broker in set(replicas) - set(before.replicas[partition])
            if broker not in allowed
        ]
    return found


def may_hold(of: Cluster, sets: Sets, topic: str) -> set[int]:
    for item in sets:
        if any(fnmatchcase(topic, name) for name in item["topics"]):
            return set(item["brokers"])
    shut = {b for item in sets if item.get("exclusive") for b in item["brokers"]}
    return set(of.racks) - shut


def _held(of: Cluster, resource: str) -> Counter[int]:
    rows = of.replicas.values()
    return Counter(b for row in rows for b in (row if resource == "replicas" else row[:1]))


def outside(of: Cluster, sets: Sets) -> int:
    return sum(
        broker not in may_hold(of, sets, partition.topic)
        for partition, row in of.replicas.items()
        for broker in row
    )


RACKS = ["/a", "/a", "/b", "/b", "/c", "/c"]


@st.composite
def limited_clusters(draw: st.DrawFn) -> Limited:
    """Two topics on six brokers, sets and caps of which some can be kept and some cannot."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    rows = [
        [tuple(rng.permutation(6)[:2].tolist()) for _ in range(rng.integers(4, 14))]
        for _ in range(2)
    ]
    sizes = [rng.integers(1, 2000, len(part)).tolist() for part in rows]
    of = both(
        cluster(RACKS, rows[0], sizes=sizes[0], topic="bound"),
        cluster(RACKS, rows[1], sizes=sizes[1], topic="free"),
    )
    total = sum(len(part) for part in rows)
    sets: Sets = draw(
        st.sampled_from(
            [
                [],
                [{"name": "s", "topics": ["bound"], "brokers": [0, 2, 4]}],
                [{"name": "s", "topics": ["b*"], "brokers": [0, 1, 2], "exclusive": True}],
                [
                    {"name": "s", "topics": ["bound"], "brokers": [0, 2, 4]},
                    {"name": "u", "topics": ["free"], "brokers": [1, 3, 4, 5]},
                ],
            ]
        )
    )
    replicas = draw(st.sampled_from([None, total // 3 + 1, total // 3 + 3, total]))
    leaders = draw(st.sampled_from([None, total // 6 + 1, total // 6 + 2]))
    caps = {
        "default": {
            name: value
            for name, value in (("replicas", replicas), ("leaders", leaders))
            if value is not None
        }
    }
    return of, caps, sets


ACTIONS = [
    {"action": "rebalance"},
    {"action": "rebalance", "tolerance": 0.2, "tolerances": {"leaders": 0.1}},
    {"action": "drain", "brokers": [5]},
    {"action": "expand", "brokers": [4]},
    {"action": "set_replication_factor", "replication_factor": 3},
    {"action": "set_replication_factor", "replication_factor": 1},
    {"action": "repair_racks"},
    {"action": "balance_leaders"},
    {"action": "demote", "brokers": [0]},
    {"action": "replace", "replacements": {"0": 5}},
    {"action": "evacuate_log_dirs", "log_dirs": ["1:/data/1"]},
    {"action": "rebalance", "tolerance": 0.5, "min_leaders": {"bound": 1, "f*": 2}},
    {"action": "balance_leaders", "min_leaders": {"*": 1}},
]


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(limited_clusters(), st.sampled_from(ACTIONS))
def test_no_action_breaks_a_cap_or_a_set(limited: Limited, action: dict[str, Any]) -> None:
    check_limits(*limited, action)


@pytest.mark.slow
@property_of(24)
@given(limited_clusters(), st.sampled_from(ACTIONS[:2]))
def test_what_goes_into_its_set_in_rounds_breaks_no_limit_either(
    limited: Limited, action: dict[str, Any]
) -> None:
    of, caps, sets = limited
    of_replicas = {"default": {k: v for k, v in caps["default"].items() if k == "replicas"}}
    with one_by_one_up_to(0):
        check_limits(of, of_replicas, sets, action)


def one_by_one_up_to(replicas: int) -> AbstractContextManager[object]:
    """Clusters up to this size move replicas into their sets one by one."""
    return patch.object(problem, "REBALANCE", replace(REBALANCE, middle=replicas))


def check_limits(of: Cluster, caps: Caps, sets: Sets, action: dict[str, Any]) -> None:
    try:
        made = plan(of, **action, caps=caps, broker_sets=sets)
    except InvalidRequestError:
        assert action["action"] not in ("rebalance", "expand", "balance_leaders")
        return
    after = of.after(made)
    assert broken(of, after, caps, sets) == []
    if action["action"] == "repair_racks":
        assert outside(after, sets) == 0
    named = [item for item in made.summary.infeasible if item.obstacle is Obstacle.OUTSIDE_SET]
    if action["action"] == "rebalance":
        assert (outside(after, sets) > 0) == bool(named)
    for topic, broker, lacks in few_leaders(after, sets, action.get("min_leaders", {})):
        assert (lacks > 0) == ((topic, broker) in reported(made)), (topic, broker)


def few_leaders(of: Cluster, sets: Sets, least: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """Topic, broker of its set, and the leaders that this lacks of what the topic has for it."""
    for topic in ("bound", "free"):
        asked = max((n for name, n in least.items() if fnmatchcase(topic, name)), default=0)
        leads = Counter(row[0] for p, row in of.replicas.items() if p.topic == topic)
        allowed = may_hold(of, sets, topic)
        for broker in allowed:
            fair = min(asked, leads.total() // len(allowed))
            yield topic, broker, fair - leads[broker]


def reported(made: Plan) -> set[tuple[str, int | None]]:
    subjects = [item.subject for item in made.summary.infeasible]
    return {(s.name, s.broker) for s in subjects if s.kind is SubjectKind.MIN_LEADERS}


def test_a_rebalance_leaves_outside_what_the_caps_of_its_set_have_no_room_for() -> None:
    of = cluster([""] * 6, [(3, 4), (4, 5), (5, 3)] * 4, 100)
    sets = [{"name": "s", "topics": ["t"], "brokers": [0, 1, 2]}]
    made = plan(of, action="rebalance", broker_sets=sets, caps={"default": {"leaders": 3}})
    led = _held(of.after(made), "leaders")
    assert [led[broker] for broker in (0, 1, 2)] == [3, 3, 3]
    left = {i.subject.name for i in made.summary.infeasible if i.obstacle is Obstacle.OUTSIDE_SET}
    assert len(left) == 3


def test_a_minimum_of_leaders_is_asked_of_the_brokers_of_the_set_and_copies_only_to_them() -> None:
    rows = [(0, 1), (0, 1), (1, 0), (1, 0), (0, 1), (1, 0)]
    of = cluster([""] * 6, rows, 100)
    sets = [{"name": "s", "topics": ["t"], "brokers": [0, 1, 2]}]
    free = {"tolerance": 0.9, "one_sided": True, "tolerances": {"topic_spread": None}}
    asked = {"min_leaders": {"t": 2}, "broker_sets": sets} | free
    made = plan(of, action="rebalance", **asked)
    assert [_held(of.after(made), "leaders")[b] for b in range(6)] == [2, 2, 2, 0, 0, 0]
    assert made.summary.replica_moves == 2
    assert made.summary.infeasible == ()
    full = plan(of, action="rebalance", caps={"brokers": {"2": {"replicas": 1}}}, **asked)
    assert _held(of.after(full), "replicas")[2] == 1
    assert reported(full) == {("t", 2)}


@pytest.mark.slow
def test_many_replicas_go_into_their_sets_in_rounds_and_copy_hardly_more() -> None:
    rng = np.random.default_rng(7)
    rows = [tuple(rng.permutation(12)[:3].tolist()) for _ in range(600)]
    sizes = rng.integers(1, 5_000, 600).tolist()
    of = cluster([f"/r{n % 3}" for n in range(12)], rows, sizes=sizes)
    sets = [{"name": "s", "topics": ["t"], "brokers": list(range(9))}]
    copied = []
    for most in (10**6, 0):
        with one_by_one_up_to(most):
            made = plan(of, action="rebalance", broker_sets=sets)
        assert outside(of.after(made), sets) == 0
        assert made.summary.infeasible == ()
        copied.append(made.summary.bytes_to_move)
    assert copied[0] != copied[1] <= 1.03 * copied[0]


def test_brokers_full_of_replicas_of_the_other_set_are_filled_in_rounds() -> None:
    rng = np.random.default_rng(7)
    wrong = {"odd": range(0, 12, 2), "even": range(1, 12, 2)}
    rows = {
        TopicPartition(topic, n): tuple(brokers[rack + 3 * rng.integers(2)] for rack in range(3))
        for topic, brokers in wrong.items()
        for n in range(200)
    }
    of = Cluster({n: f"/r{n // 2 % 3}" for n in range(12)}, rows, dict.fromkeys(rows, 100))
    sets = [
        {"name": topic, "topics": [topic], "brokers": [(n + 1) % 12 for n in brokers]}
        for topic, brokers in wrong.items()
    ]
    caps = {"default": {"replicas": 110}}
    one_by_one = patch.object(Placer, "complete", autospec=True, side_effect=Placer.complete)
    with (
        one_by_one_up_to(0),
        one_by_one as placed,
    ):
        after = of.after(plan(of, action="rebalance", broker_sets=sets, caps=caps))
    assert outside(after, sets) == 0
    assert placed.call_count < 20  # of 400 partitions
