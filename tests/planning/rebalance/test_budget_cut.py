"""What a movement budget buys where partitions only need places: drains, more replicas, racks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.infeasible_text import subject_text
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.errors import InvalidRequestError
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.result.lower_bounds import least_copies
from rehome.planning.result.outcome import tree_of
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import infeasible, plan
from tests.planning.planner.test_plan_properties import check_hard_rules, fits
from tests.planning.planner.test_plan_properties import plan as planned
from tests.planning.strategies import clusters

THOROUGH = examples(100)

PLACING = st.sampled_from(
    [
        ReassignmentRequest(Action.DRAIN, brokers=(0,)),
        ReassignmentRequest(Action.DRAIN, brokers=(0, 1)),
        ReassignmentRequest(Action.REPAIR_RACKS),
        ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=2),
    ]
)
BUDGETS = st.one_of(
    st.builds(lambda most: {"budget_bytes": most}, st.integers(1, 200)),
    st.builds(lambda most: {"budget_moves": most}, st.integers(1, 9)),
    st.builds(
        lambda most, moves: {"budget_bytes": most, "budget_moves": moves},
        st.integers(1, 200),
        st.integers(1, 9),
    ),
)


def kept(broker: int, replicas: int) -> Infeasible:
    """That the budget leaves so many replicas on a broker that was to be emptied."""
    subject = Subject.of_broker(broker)
    return Infeasible(subject, Obstacle.BUDGET, 0, replicas, resource=Resource.REPLICAS)


def left(kind: SubjectKind, partitions: int, name: str = "") -> Infeasible:
    """That the budget leaves so many partitions as they are."""
    return Infeasible(Subject(kind, name), Obstacle.BUDGET, 0, partitions)


def moved(made: Plan) -> list[int]:
    return [move.partition.partition for move in made.moves]


def test_a_drain_empties_the_broker_with_least_first_and_takes_its_largest_replicas_first() -> None:
    """Broker 0 gives 60 bytes up, broker 1 gives 100: of the 80 left over, 70 and 10 fit."""
    of = cluster([""] * 4, [(0,), (0,), (1,), (1,), (1,)], [50, 10, 70, 20, 10])
    made = plan(of, action="drain", brokers=[0, 1], budget_bytes=140)
    assert moved(made) == [0, 1, 2, 4]
    assert infeasible(made) == (kept(1, 1),)
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes == 140


def test_a_partition_on_two_drained_brokers_leaves_both_or_none() -> None:
    of = cluster([""] * 4, [(0, 1), (0, 2), (1, 2)], [10, 10, 10])
    made = plan(of, action="drain", brokers=[0, 1], budget_moves=1)
    assert moved(made) == [1]
    assert [(subject_text(item.subject), item.nearest) for item in infeasible(made)] == [
        ("broker 0", 1),
        ("broker 1", 2),
    ]


def test_as_many_partitions_as_possible_get_more_replicas_and_fewer_cost_nothing() -> None:
    of = cluster([""] * 4, [(0,), (1,), (2,), (3, 0, 1)], [30, 10, 20, 500])
    params = {"action": "set_replication_factor", "replication_factor": 2, "budget_bytes": 35}
    made = plan(of, **params)
    assert moved(made) == [1, 2, 3]
    assert infeasible(made) == (left(SubjectKind.REPLICATION_FACTOR, 1, "2"),)


def test_a_partition_with_one_replica_in_sync_gets_more_before_smaller_ones_with_two() -> None:
    of = cluster([""] * 4, [(0, 1), (1, 2), (2,)], [10, 10, 30])
    params = {"action": "set_replication_factor", "replication_factor": 3, "budget_bytes": 60}
    assert moved(plan(of, **params)) == [2]


def test_a_partition_with_more_misplaced_replicas_is_repaired_before_a_smaller_one() -> None:
    of = cluster(["/a", "/a", "/a", "/b", "/c"], [(0, 1, 3), (0, 1, 2)], [10, 30])
    assert moved(plan(of, action="repair_racks", budget_bytes=60)) == [1]


def test_racks_are_repaired_where_a_byte_repairs_most() -> None:
    of = cluster(["/a", "/a", "/b", "/b"], [(0, 1), (0, 1), (2, 3), (0, 2)], [30, 10, 20, 5])
    made = plan(of, action="repair_racks", budget_bytes=45)
    assert moved(made) == [1, 2]
    assert infeasible(made) == (left(SubjectKind.RACK_REPAIR, 1),)
    assert (made.summary.rack_violations_before, made.summary.rack_violations_after) == (3, 1)


@pytest.mark.parametrize(
    "params",
    [
        {"action": "drain", "brokers": [0]},
        {"action": "set_replication_factor", "replication_factor": 3},
        {"action": "repair_racks"},
    ],
)
def test_a_budget_that_is_large_enough_changes_nothing(params: dict[str, Any]) -> None:
    of = cluster(["/a", "/a", "/b", "/b"], [(0, 1), (0, 2), (1, 3), (2, 3)], [30, 10, 20, 5])
    whole = plan(of, **params)
    enough = {"budget_bytes": whole.summary.bytes_to_move}
    assert plan(of, **params, **enough) == whole
    assert whole.moves


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=PLACING, budget=BUDGETS, full=st.sets(st.integers(0, 6)))
def test_where_disks_allow_no_even_spread_the_budget_holds_too(
    of: Cluster, request: ReassignmentRequest, budget: dict[str, Any], full: set[int]
) -> None:
    request = replace(request, **budget)
    assume(set(request.brokers) < set(of.racks))
    of = replace(of, disks={b: (10_000, 0 if b in full else 9_000) for b in of.racks})
    try:
        summary = planned(of, request).summary
    except InvalidRequestError:  # so full that there is no place at all
        assume(False)
    assert summary.bytes_to_move <= (request.budget_bytes or 10**9)
    assert summary.replica_moves <= (request.budget_moves or 10**9)


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=PLACING, budget=BUDGETS)
def test_a_budget_holds_and_nothing_that_it_would_pay_for_is_left(
    of: Cluster, request: ReassignmentRequest, budget: dict[str, Any]
) -> None:
    request = replace(request, **budget)
    assume(set(request.brokers) < set(of.racks) and fits(of, request))
    assume(len(of.racks) >= (request.replication_factor or 1))
    made = planned(of, request)
    check_hard_rules(of, request, made)
    left_bytes = (request.budget_bytes or 10**9) - made.summary.bytes_to_move
    left_moves = (request.budget_moves or 10**9) - made.summary.replica_moves
    assert left_bytes >= 0
    assert left_moves >= 0
    for size, copies in left_out(of, request, made):
        assert size * copies > left_bytes or copies > left_moves


def left_out(of: Cluster, request: ReassignmentRequest, made: Plan) -> list[tuple[int, int]]:
    """Size and least copies of each partition that asks for places and that the plan leaves."""
    arrays = ClusterArrays.from_snapshot(of.snapshot())
    hosts = arrays.brokers.live.copy()
    hosts[[b for b, name in enumerate(arrays.brokers.ids) if name in request.brokers]] = False
    replicas = [request.replication_factor or len(row) for _, row in sorted(of.replicas.items())]
    tree = tree_of(arrays, hosts, request, max(replicas))
    stays = set(of.replicas) - {move.partition for move in made.moves}
    asks = {
        Action.DRAIN: lambda row: not set(row).isdisjoint(request.brokers),
        Action.SET_REPLICATION_FACTOR: lambda row: len(row) != request.replication_factor,
        Action.REPAIR_RACKS: lambda row: True,
    }[request.action]
    every = np.arange(len(replicas))
    least = least_copies(tree, arrays.rows, every, np.array(replicas)).tolist()
    costs = [
        (of.size_of(name), copies)
        for name, copies in zip(sorted(of.replicas), least, strict=True)
        if name in stays and asks(of.replicas[name])
    ]
    return [(size, copies) for size, copies in costs if copies]


REPAIRS = st.sampled_from(
    [
        ReassignmentRequest(Action.REPAIR_RACKS),
        ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=4),
        ReassignmentRequest(Action.FIX_OFFLINE_REPLICAS),
    ]
)


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=REPAIRS, budget=BUDGETS)
def test_the_budget_of_a_repair_pays_first_for_partitions_with_the_fewest_replicas_in_sync(
    of: Cluster, request: ReassignmentRequest, budget: dict[str, Any]
) -> None:
    """What is left is larger than what those that are as endangered leave of the budget."""
    of = replace(of, dead=frozenset({0} if request.action is Action.FIX_OFFLINE_REPLICAS else ()))
    assume(len(of.racks) >= 5)
    whole, made = planned(of, request), planned(of, replace(request, **budget))
    paid = {move.partition: move for move in made.moves}
    safe = safety(of, request)
    most = (budget.get("budget_bytes", 10**9), budget.get("budget_moves", 10**9))
    assert sum(move.bytes_to_move for move in made.moves) <= most[0]
    assert made.summary.cut_by_budget is (len(paid) < len(whole.moves))
    for left in whole.moves:
        first = [m for p, m in paid.items() if safe[p] <= safe[left.partition]]
        needs = sum(m.bytes_to_move for m in (*first, left)), copies((*first, left))
        over = [need > limit for need, limit in zip(needs, most, strict=True)]
        assert left.partition in paid or any(over)


def copies(moves: Sequence[Move]) -> int:
    return sum(len(move.adding) for move in moves)


def safety(of: Cluster, request: ReassignmentRequest) -> dict[TopicPartition, int]:
    """How safe each partition is: by its replicas in sync, or by those that are well spread."""
    if request.action is not Action.REPAIR_RACKS:
        return {name: len(set(row) - of.dead) for name, row in of.replicas.items()}
    arrays = ClusterArrays.from_snapshot(of.snapshot())
    misplaced = tree_of(arrays, arrays.brokers.live, request).violations(arrays.rows)
    return dict(zip(sorted(of.replicas), (-misplaced).tolist(), strict=True))


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=PLACING, budget=BUDGETS)
def test_the_same_request_goes_on_day_by_day_until_everything_is_done(
    of: Cluster, request: ReassignmentRequest, budget: dict[str, Any]
) -> None:
    least = {"budget_bytes": 60 * 4, "budget_moves": 4}  # the dearest partition is paid for
    enough: dict[str, Any] = {name: max(budget[name], least[name]) for name in budget}
    request = replace(request, **enough)
    assume(set(request.brokers) < set(of.racks) and fits(of, request))
    assume(len(of.racks) >= (request.replication_factor or 1))
    for _ in of.replicas:
        made = planned(of, request)
        if not made.moves:
            break
        of = of.after(made)
    assert planned(of, request).moves == ()
    assert made.summary.infeasible == ()


def test_where_copies_are_counted_the_broker_with_the_fewest_replicas_is_emptied_first() -> None:
    of = cluster([""] * 4, [(0,)] + [(1,)] * 10, [100] + [1] * 10)
    assert moved(plan(of, action="drain", brokers=[0, 1], budget_moves=1)) == [0]
    assert moved(plan(of, action="drain", brokers=[0, 1], budget_bytes=11)) == list(range(1, 11))


@pytest.mark.slow
def test_a_plan_that_its_budget_cut_off_is_compared_with_the_bound_of_what_was_asked() -> None:
    of = cluster([""] * 2, [(0,)] * 8)
    whole, part = plan(of, action="rebalance"), plan(of, action="rebalance", budget_moves=1)
    assert whole.summary.asked_bound_bytes is None
    assert part.summary.asked_bound_bytes == whole.summary.lower_bound_bytes
    assert part.summary.ratio_to_bound == round(100 / part.summary.asked_bound_bytes, 4) < 0.3
    assert part.summary.lower_bound_bytes <= part.summary.bytes_to_move
    drained = plan(of, action="drain", brokers=[0], budget_moves=2)
    assert drained.summary.ratio_to_bound == 0.25
    lost = cluster([""] * 4, [(0, 1)] * 4, dead=frozenset({1}))
    repaired = plan(lost, action="fix_offline_replicas", budget_moves=1)
    assert repaired.summary.ratio_to_bound == 0.25
    assert plan(lost, action="fix_offline_replicas").summary.asked_bound_bytes is None
