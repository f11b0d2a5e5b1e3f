"""What holds for every plan, on random small clusters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import Infeasible
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.examples import examples
from tests.planning.clusters import Cluster
from tests.planning.placement.evenness import even_sets, is_even
from tests.planning.strategies import clusters

THOROUGH = examples(100)

REQUESTS = st.one_of(
    st.just(ReassignmentRequest(Action.REBALANCE)),
    st.builds(
        lambda tolerance: ReassignmentRequest(Action.REBALANCE, tolerance=tolerance),
        st.sampled_from([0.0, 0.1, 0.5]),
    ),
    st.just(ReassignmentRequest(Action.REPAIR_RACKS)),
    st.just(ReassignmentRequest(Action.BALANCE_LEADERS)),
    st.builds(
        lambda count: ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=count),
        st.integers(1, 2),
    ),
    st.just(ReassignmentRequest(Action.DRAIN, brokers=(0,))),
)


def plan(of: Cluster, request: ReassignmentRequest, shuffle: int | None = None) -> Plan:
    return make_plan(of.snapshot(shuffle), request, PlanOptions(plan_id="p", rate_bytes_per_s=10))


def paths(of: Cluster) -> dict[int, tuple[str, ...]]:
    return {b: tuple(part for part in rack.split("/") if part) for b, rack in of.racks.items()}


def fits(of: Cluster, request: ReassignmentRequest) -> bool:
    """Whether the brokers left are enough for the replication factors."""
    left = len(of.racks) - len(request.brokers)
    return max(len(row) for row in of.replicas.values()) <= left


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=REQUESTS)
def test_hard_rules_hold_whatever_is_asked(of: Cluster, request: ReassignmentRequest) -> None:
    assume(fits(of, request))
    check_hard_rules(of, request, plan(of, request))


def check_hard_rules(of: Cluster, request: ReassignmentRequest, made: Plan) -> None:
    hosts = set(of.racks) - set(request.brokers)
    for move in made.moves:
        assert len(set(move.target)) == len(move.target)
        assert set(move.target) <= set(of.racks)
        if request.action is Action.DRAIN:
            assert set(move.target) <= hosts
        if request.action is not Action.SET_REPLICATION_FACTOR:
            assert len(move.target) == len(move.current)
            assert not made.allow_replication_factor_change
        copies = bool(move.adding)
        even_before = is_even(move.current, paths(of), hosts)
        assert not (copies or even_before) or is_even(move.target, paths(of), hosts)
        assert why_text(move)
    assert made.summary.bytes_to_move >= made.summary.lower_bound_bytes
    before, after = made.summary.rack_violations_before, made.summary.rack_violations_after
    assert before is not None
    assert after is not None
    assert after <= before or request.action in (Action.DRAIN, Action.SET_REPLICATION_FACTOR)


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=REQUESTS)
def test_planning_again_on_the_result_plans_nothing(
    of: Cluster, request: ReassignmentRequest
) -> None:
    assume(fits(of, request))
    assert plan(of.after(plan(of, request)), request).moves == ()


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=REQUESTS, shuffle=st.integers(0, 5), seed=st.integers(0, 3))
def test_the_order_of_rows_does_not_show_and_the_same_seed_gives_the_same_plan(
    of: Cluster, request: ReassignmentRequest, shuffle: int, seed: int
) -> None:
    assume(fits(of, request))
    request = replace(request, seed=seed)
    assert plan(of, request, shuffle) == plan(of, request)


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), request=REQUESTS)
def test_other_ids_and_names_in_the_same_order_give_the_same_moves(
    of: Cluster, request: ReassignmentRequest
) -> None:
    assume(fits(of, request))

    def renamed(brokers: Sequence[int]) -> tuple[int, ...]:
        return tuple(10 * broker + 3 for broker in brokers)

    def moved(partition: TopicPartition) -> TopicPartition:
        return TopicPartition("another", partition.partition + 5)

    other = replace(
        of,
        racks={10 * broker + 3: rack for broker, rack in of.racks.items()},
        replicas={moved(p): renamed(row) for p, row in of.replicas.items()},
        sizes={moved(p): size for p, size in of.sizes.items()},
    )
    expected = [(moved(move.partition), renamed(move.target)) for move in plan(of, request).moves]
    found = plan(other, replace(request, brokers=renamed(request.brokers)))
    assert [(move.partition, move.target) for move in found.moves] == expected


@THOROUGH
@given(of=clusters(), drained=st.sets(st.integers(0, 6), min_size=1, max_size=3))
def test_a_drain_empties_its_brokers_copies_the_fewest_bytes_and_touches_nothing_else(
    of: Cluster, drained: set[int]
) -> None:
    request = ReassignmentRequest(Action.DRAIN, brokers=tuple(sorted(drained & set(of.racks))))
    assume(request.brokers)
    assume(fits(of, request))
    check_drain(of, request, plan(of, request))


def check_drain(of: Cluster, request: ReassignmentRequest, made: Plan) -> None:
    after = of.after(made)
    assert not any(set(row) & set(request.brokers) for row in after.replicas.values())
    for partition, row in of.replicas.items():
        assert (partition in made.by_partition) is bool(set(row) & set(request.brokers))
    hosts = set(of.racks) - set(request.brokers)
    for move in made.moves:
        best = even_sets(paths(of), hosts, len(move.current))
        assert len(move.adding) == min(len(one - set(move.current)) for one in best)
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes


@THOROUGH
@given(of=clusters())
def test_a_repair_copies_the_fewest_replicas_that_make_each_partition_even(of: Cluster) -> None:
    check_repair(of, plan(of, ReassignmentRequest(Action.REPAIR_RACKS)))


def check_repair(of: Cluster, made: Plan) -> None:
    after = of.after(made)
    for partition, row in of.replicas.items():
        best = even_sets(paths(of), set(of.racks), len(row))
        assert set(after.replicas[partition]) in best
        copies = len(set(after.replicas[partition]) - set(row))
        assert copies == min(len(one - set(row)) for one in best)


@THOROUGH
@given(of=clusters(), replicas=st.integers(1, 4))
def test_a_larger_replication_factor_is_even_and_a_smaller_one_copies_nothing(
    of: Cluster, replicas: int
) -> None:
    assume(replicas <= len(of.racks))
    request = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=replicas)
    check_replication_factor(of, replicas, plan(of, request))


def check_replication_factor(of: Cluster, replicas: int, made: Plan) -> None:
    after = of.after(made)
    assert {len(row) for row in after.replicas.values()} == {replicas}
    for move in made.moves:
        if len(move.current) > replicas:
            assert set(move.target) < set(move.current)
            best = [
                kept
                for kept in itertools.combinations(move.current, replicas)
                if is_even(kept, paths(of), set(of.racks))
            ]
            leads = [kept for kept in best if move.current[0] in kept]
            assert not best or set(move.target) in map(set, leads or best)
        else:
            assert is_even(move.target, paths(of), set(of.racks))
    assert made.allow_replication_factor_change is bool(made.moves)


def clips(made: Plan) -> list[Infeasible]:
    """Targets that were out of reach before the search began."""
    return [
        item for item in made.summary.infeasible if "no move or swap" not in obstacle_text(item)
    ]


@pytest.mark.slow
@THOROUGH
@given(of=clusters(), tolerance=st.sampled_from([0.02, 0.1, 0.3]))
def test_a_rebalance_is_within_tolerance_or_names_every_broker_that_is_not(
    of: Cluster, tolerance: float
) -> None:
    request = ReassignmentRequest(Action.REBALANCE, tolerance=tolerance)
    check_tolerance(of, tolerance, plan(of, request))


def check_tolerance(of: Cluster, tolerance: float, made: Plan) -> None:
    total = sum(len(row) * of.size_of(p) for p, row in of.replicas.items())
    share = total / len(of.racks)
    named = {subject_text(item.subject) for item in made.summary.infeasible}
    forced = any(
        "allow no more" in obstacle_text(i) or "force more" in obstacle_text(i) for i in clips(made)
    )
    for load in made.summary.brokers:
        off = abs(load.size_bytes_after - share) > tolerance * share + 2
        if off and not forced:
            assert f"broker {load.broker}" in named


# Its balance moves a replica away, and later another of the same partition to that broker.
LEAVES_AND_COMES_BACK = Cluster(
    racks=dict.fromkeys(range(6), "/a") | {6: "/b"},
    replicas={
        TopicPartition("t", number): row
        for number, row in enumerate([[0], [0, 1, 3, 4], [0], [0], [0, 1, 2], [0, 4]])
    },
    sizes={TopicPartition("t", number): size for number, size in enumerate([0, 4, 0, 0, 4, 5])},
)


@pytest.mark.slow
@THOROUGH
@given(of=clusters())
@example(of=LEAVES_AND_COMES_BACK)
def test_the_old_preferred_leader_stays_where_it_keeps_its_replica_and_order_is_kept(
    of: Cluster,
) -> None:
    for request in (
        ReassignmentRequest(Action.REBALANCE),
        ReassignmentRequest(Action.REPAIR_RACKS),
    ):
        for move in plan(of, request).moves:
            if move.current[0] in move.target:
                assert move.target[0] == move.current[0]
                stays = [b for b in move.current if b in move.target]
                assert [b for b in move.target if b in move.current] == stays


@THOROUGH
@given(of=clusters())
def test_leaders_are_evened_out_by_order_alone(of: Cluster) -> None:
    made = plan(of, ReassignmentRequest(Action.BALANCE_LEADERS))
    assert made.summary.bytes_to_move == 0
    after = of.after(made)
    count = dict.fromkeys(of.racks, 0)
    for row in after.replicas.values():
        count[row[0]] += 1
    for partition, row in after.replicas.items():
        assert set(row) == set(of.replicas[partition])
        assert count[row[0]] - min(count[b] for b in row) <= 1
