"""Everything by which the planner refuses, on a cluster where that is bad already.

A plan that leaves it as it is, or makes it better, is made. What refuses all the same says why: it
judges no state of a cluster, or could not be carried out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rehome.planning
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.planning.options import PlanOptions
from rehome.planning.rollback import rollback_plan
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import T, plan

FEW = {"default": {"replicas": 4}}


def moved(of: Cluster, **params: object) -> Mapping[TopicPartition, tuple[int, ...]]:
    made: Plan = plan(of, **params)
    return {move.partition: move.target for move in made.moves}


def without_leader() -> Cluster:
    """Nothing is in sync."""
    return cluster([""] * 3, [(0, 1)], lagging=frozenset({(T[0], 0), (T[0], 1)}))


def to(*replicas: int) -> dict[str, object]:
    entry = {"topic": "t", "partition": 0, "replicas": list(replicas)}
    return {"action": "reassign", "reassignment": {"version": 1, "partitions": [entry]}}


def leaderless_reordered() -> None:
    """Nothing is copied."""
    assert moved(without_leader(), **to(1, 0)) == {T[0]: (1, 0)}


def leaderless_order_taken_back() -> None:
    before = cluster([""] * 3, [(1, 0), (1, 2)])
    done: Plan = plan(before, action="reassign", **_two_orders())
    now = replace(without_leader(), replicas={T[0]: (0, 1), T[1]: (2, 1)}, sizes=before.sizes)
    back = rollback_plan(done, now.snapshot(), PlanOptions(plan_id="back"))
    assert {move.partition for move in back.moves} == {T[0], T[1]}


def _two_orders() -> dict[str, object]:
    entries = [
        {"topic": "t", "partition": 0, "replicas": [0, 1]},
        {"topic": "t", "partition": 1, "replicas": [2, 1]},
    ]
    return {"reassignment": {"version": 1, "partitions": entries}}


def above_its_cap_and_not_drained() -> None:
    """Broker 0 holds more than it may, and keeps it; the others have room for what is moved."""
    of = cluster([""] * 4, [(0,)] * 11 + [(1,), (2,), (3,)])
    assert len(moved(of, action="drain", brokers=[3], caps=FEW)) == 1


def above_its_cap_and_less() -> None:
    of = cluster([""] * 3, [(0,)] * 8)
    assert moved(of, **to(1), caps=FEW) == {T[0]: (1,)}


def fewer_replicas_than_brokers_are_dead() -> None:
    """Five replicas, and three brokers are left: three replicas stay."""
    of = cluster([""] * 5, [(0, 1, 2, 3, 4)], dead=frozenset({3, 4}))
    params = {"action": "set_replication_factor", "replication_factor": 3}
    assert moved(of, **params) == {T[0]: (0, 1, 2)}


def too_full_and_gets_nothing() -> None:
    """Broker 0 is fuller than allowed; a replica leaves it."""
    of = cluster([""] * 2, [(0,)], disks={0: (1000, 10), 1: (1000, 900)})
    made: Plan = plan(of, min_free=0.2, **to(1))
    assert len(made.moves) == 1


def a_dead_follower_stays() -> None:
    of = cluster([""] * 3, [(0, 1, 2)], dead=frozenset({2}))
    assert moved(of, **to(1, 0, 2)) == {T[0]: (1, 0, 2)}


def too_few_in_sync_and_all_of_them_stay() -> None:
    """Of three replicas one is in sync; a file leaves two, that one among them."""
    of = cluster([""] * 3, [(0, 1, 2)], lagging=frozenset({(T[0], 1), (T[0], 2)}))
    assert moved(of, **to(0, 1), allow_replication_factor_change=True) == {T[0]: (0, 1)}


def in_one_rack_and_stays_in_it() -> None:
    """Both replicas are in one rack; the only destination is in it, too."""
    of = cluster(["/a", "/a", "/b", "/a"], [(0, 1)])
    assert moved(of, action="drain", brokers=[1], destinations=[3]) == {T[0]: (0, 3)}


def in_one_rack_and_the_other_is_cordoned() -> None:
    of = cluster(["/a", "/a", "/b", "/a"], [(0, 1)], cordoned=frozenset({2}))
    assert moved(of, action="drain", brokers=[1]) == {T[0]: (0, 3)}


BAD_ALREADY: Mapping[str, tuple[Callable[[], None], ...]] = {
    "actions.reassign.lay_out": (a_dead_follower_stays,),
    "actions.reassign.plan_requested": (too_few_in_sync_and_all_of_them_stay,),
    "limits.fewer_racks.refuse_fewer_racks": (
        in_one_rack_and_stays_in_it,
        in_one_rack_and_the_other_is_cordoned,
    ),
    "limits.limit_checks.refuse_broken": (above_its_cap_and_less,),
    "limits.limit_checks.refuse_impossible": (above_its_cap_and_not_drained,),
    "model.scope.check_movable": (leaderless_reordered, leaderless_order_taken_back),
    "model.scope.check_replication_factor": (fewer_replicas_than_brokers_are_dead,),
    "planner._that_fits": (too_full_and_gets_nothing,),
}
NO_PLACE = "a copy has no place: it could not be carried out"
NAMED = "the request names what there is not, or what cannot do what it is named for"
OF_NO_STATE = {
    "actions.demote.plan_demotion": "nobody is left to lead",
    "actions.drain.plan_drain": NO_PLACE,
    "actions.evacuate_log_dirs._leaving": NAMED,
    "actions.evacuate_log_dirs._off_the_broker": NO_PLACE,
    "actions.move_log_dirs._brokers": NAMED,
    "actions.replace._successors": NAMED,
    "actions.replace._elsewhere": NO_PLACE,
    "explain.explainer.__init__": NAMED,
    "explain.explainer.broker": NAMED,
    "explain.explainer.partition": NAMED,
    "limits.destinations._bound_topics": NAMED,
    "limits.destinations._refuse_too_few": NAMED,
    "limits.destinations.refuse_apart": NO_PLACE,
    "model.scope.brokers_with": NAMED,
    "model.scope.check_idle": "Kafka has one reassignment of a partition at a time",
    "model.scope.destinations_of": NAMED,
    "model.scope.partitions_named": NAMED,
    "model.scope.topics_named": NAMED,
    "placement.add_partitions.place": "of the topics that are named, as the others say",
    "placement.new_partitions._choose": NO_PLACE,
    "placement.new_partitions.create_replica_assignment": NAMED,
    "placement.replica_sets._choose_where_it_fits": NO_PLACE,
    "planner._plan": "how it is called",
    "planner.check_hidden": "what is hidden would stay, and cannot be proved to be gone",
    "rebalance.rebalance._plan": NAMED,
    "rollback.rollback_plan": "another cluster; and as planner._that_fits",
}
"""Functions that refuse by no state which a plan could leave as it is, and what they do judge."""
RAISES = ("raise_if", "InvalidRequestError")


def refusing() -> set[str]:
    """Functions of the planner that refuse, by the name of their module."""
    root = Path(rehome.planning.__path__[0])
    found = set()
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(map(_refuses, ast.walk(node))):
                found.add(f"{module}.{node.name}")
    return found - {"model.scope.raise_if"}


def _refuses(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in RAISES


@pytest.mark.slow
def test_everything_that_refuses_has_a_case_or_judges_no_state() -> None:
    assert refusing() == {*BAD_ALREADY, *OF_NO_STATE}
    assert not BAD_ALREADY.keys() & OF_NO_STATE.keys()


@pytest.mark.parametrize(
    "case", [case for cases in BAD_ALREADY.values() for case in cases], ids=lambda c: c.__name__
)
def test_what_is_bad_already_and_gets_no_worse_is_planned(case: Callable[[], None]) -> None:
    with np.errstate(all="raise"):
        case()
