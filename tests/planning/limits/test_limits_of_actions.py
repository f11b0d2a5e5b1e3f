"""Each action within caps and broker sets, on clusters small enough to check by eye."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.partition_counts import parse_partition_counts
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.placement.add_partitions import place
from rehome.planning.planner import make_plan
from rehome.planning.rollback import rollback_plan
from tests.planning.clusters import Cluster, cluster
from tests.planning.jbod import with_disks
from tests.planning.planned import T, infeasible, plan, problems

SET = [{"name": "fast", "topics": ["t"], "brokers": [0, 1, 2]}]
NO_RACKS = [""] * 5


def held(of: Cluster, weight: dict[TopicPartition, float], *, led: bool = False) -> list[float]:
    found = [0.0] * len(of.racks)
    for partition, row in of.replicas.items():
        for broker in row[:1] if led else row:
            found[broker] += weight[partition]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("resource", ["bytes_in", "bytes_out"])
def test_rates_stay_below_their_caps(resource: str) -> None:
    of = cluster(NO_RACKS[:3], [(0, 1)] * 6 + [(1, 0)] * 6, 100)
    rates = {p: 10.0 + n for n, p in enumerate(of.replicas)}
    of = replace(of, bytes_in=rates, bytes_out=rates)
    caps = {"brokers": {"2": {resource: 40}}}
    made = of.after(plan(of, action="rebalance", caps=caps))
    after = held(made, rates, led=resource == "bytes_out")
    assert 0 < after[2] <= 40
    free = held(of.after(plan(of, action="rebalance")), rates, led=resource == "bytes_out")
    assert free[2] > 40


def test_a_disk_is_filled_up_to_its_cap_and_no_further() -> None:
    disks = dict.fromkeys(range(3), (10_000, 9_000)) | {2: (10_000, 10_000)}
    of = cluster(NO_RACKS[:3], [(0,)] * 5 + [(1,)] * 5, 200, disks=disks)
    sizes: dict[TopicPartition, float] = dict.fromkeys(of.replicas, 200)
    after = of.after(plan(of, action="rebalance", caps={"brokers": {"2": {"disk_fraction": 0.05}}}))
    assert held(after, sizes)[2] == 400
    assert held(of.after(plan(of, action="rebalance")), sizes)[2] > 400


def test_log_dirs_are_filled_up_to_the_cap_of_their_broker() -> None:
    of = cluster(NO_RACKS[:1], [(0,)] * 4, [300, 0, 300, 0])
    snapshot = with_disks(of, {0: {"/a": (1_000, 400), "/b": (1_000, 1_000)}})
    for cap, moved in ((None, 1), (0.2, 0)):
        caps = {"default": {"disk_fraction": cap}}
        request = parse_request({"action": "move_log_dirs", "caps": caps})
        assert len(make_plan(snapshot, request, PlanOptions(plan_id="p")).moves) == moved


def test_an_offline_replica_gets_a_home_in_its_set_and_below_caps() -> None:
    of = replace(cluster(NO_RACKS, [(0, 4)], 100), dead=frozenset({4}))
    made = plan(
        of, action="fix_offline_replicas", broker_sets=SET, caps={"brokers": {"1": {"replicas": 0}}}
    )
    assert [move.target for move in made.moves] == [(0, 2)]
    none = plan(
        of, action="fix_offline_replicas", broker_sets=SET, caps={"default": {"replicas": 0}}
    )
    assert none.moves == ()
    assert [item.subject.name for item in infeasible(none) if item.subject.name] == ["t-0"]


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"broker_sets": SET}, "t-0 would get a replica on broker 3, which is not of its broker"),
        (
            {"caps": {"brokers": {"3": {"replicas": 0}}}},
            "Broker 3 would end with 1 replica; its cap",
        ),
        ({"caps": {"brokers": {"3": {"leaders": 0}}}}, "Broker 3 would end with 1 leader; its cap"),
    ],
)
def test_a_file_that_breaks_a_limit_is_refused(limits: dict[str, Any], problem: str) -> None:
    of = cluster(NO_RACKS, [(0, 1)], 100)
    entry = {"topic": "t", "partition": 0, "replicas": [3, 1]}
    asked = {"reassignment": {"version": 1, "partitions": [entry]}}
    refused = problems(of, action="reassign", **asked, **limits)
    assert problem in refused
    assert "Lift the limit for this run" in refused


def test_a_way_back_that_leaves_the_set_is_refused() -> None:
    of = cluster(NO_RACKS, [(0, 3)], 100)
    done = plan(of, action="repair_racks", broker_sets=SET)
    assert len(done.moves) == 1
    sets = parse_request({"action": "rebalance", "broker_sets": SET}).broker_sets
    with pytest.raises(InvalidRequestError, match="broker 3, which is not of its broker set"):
        rollback_plan(done, of.after(done).snapshot(), PlanOptions(plan_id="b"), broker_sets=sets)


def test_new_partitions_go_to_their_set_and_below_caps() -> None:
    of = cluster(NO_RACKS, [(0, 1), (1, 2)], 100)

    def placed(caps: dict[str, dict[str, Any]]) -> list[tuple[int, ...]]:
        new = {"o": {"partitions": 2, "replication_factor": 2}}
        params = {"partitions": {"t": 5}, "new_topics": new, "broker_sets": SET, "caps": caps}
        made = place(of.snapshot(), parse_partition_counts(params), "p")
        return [row for tp, row in sorted(made.assignments.items()) if tp.topic == "t"]

    rows = placed({"brokers": {"0": {"replicas": 2, "leaders": 1}}})
    assert {broker for row in rows for broker in row} <= {0, 1, 2}
    assert sum(0 in row for row in rows) == 1
    assert all(row[0] != 0 for row in rows)
    with pytest.raises(InvalidRequestError, match="cap"):
        placed({"default": {"replicas": 1}})


def test_a_replacement_outside_of_the_set_is_named_and_another_broker_takes_its_place() -> None:
    of = cluster(NO_RACKS, [(0, 1)], 100)
    made = plan(of, action="replace", replacements={"0": 3}, broker_sets=SET)
    assert [move.target for move in made.moves] == [(2, 1)]
    assert [item.obstacle for item in infeasible(made)] == [Obstacle.REPLACEMENT_LIMITED]


def test_a_replacement_above_its_cap_of_leaders_is_refused() -> None:
    of = cluster(NO_RACKS, [(0, 1)], 100)
    caps = {"brokers": {"3": {"leaders": 0}}}
    assert "its cap (number of leaders) is 0" in problems(
        of, action="replace", replacements={"0": 3}, caps=caps
    )


def test_a_demotion_hands_leadership_to_brokers_below_their_caps() -> None:
    of = cluster(NO_RACKS, [(0, 1, 2)] * 4, 100)
    made = plan(of, action="demote", brokers=[0], caps={"brokers": {"1": {"leaders": 1}}})
    leads = [row[0] for row in of.after(made).replicas.values()]
    assert sorted(leads) == [1, 2, 2, 2]


def test_what_leaves_an_evacuated_broker_stays_in_its_set() -> None:
    of = cluster(NO_RACKS, [(0, 1), (0, 1)], 100, disks=dict.fromkeys(range(5), (10_000, 9_000)))
    made = plan(of, action="evacuate_log_dirs", log_dirs=["0:/data/0"], broker_sets=SET)
    assert [set(move.target) for move in made.moves] == [{1, 2}, {1, 2}]


def test_a_drain_that_a_set_is_too_small_for_is_refused() -> None:
    of = cluster(NO_RACKS, [(0, 1, 2)], 100)
    problem = problems(of, action="drain", brokers=[0], broker_sets=SET)
    assert "live brokers of broker set 'fast' left: 2" in problem


def test_patterns_do_not_reach_internal_topics_and_the_first_set_wins() -> None:
    of = replace(cluster(NO_RACKS, [(3, 4)], 100), internal=frozenset({"t"}))
    for names, inside in ((["*"], False), (["t"], True)):
        sets = [
            {"name": "first", "topics": names, "brokers": [0, 1]},
            {"name": "second", "topics": ["t"], "brokers": [3, 4]},
        ]
        made = plan(of, action="repair_racks", topics=["t"], broker_sets=sets)
        assert bool(made.moves) is inside
    assert T[0] in of.replicas
