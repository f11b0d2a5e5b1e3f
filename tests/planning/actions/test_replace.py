"""Brokers in the place of others, checked by rules of plain Python and by a solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.infeasible_text import infeasible_text
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.placement.evenness import is_even
from tests.planning.planned import T, infeasible, plan, problems
from tests.planning.planner.test_plan_properties import paths
from tests.planning.strategies import clusters


def targets(made: Plan) -> dict[TopicPartition, tuple[int, ...]]:
    return {move.partition: move.target for move in made.moves}


def test_every_replica_goes_to_the_replacement_in_the_same_place() -> None:
    of = cluster(["/a", "/b", "/c", "/a"], [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2)])
    made = plan(of, action="replace", replacements={"0": 3})
    assert targets(made) == {T[0]: (3, 1, 2), T[1]: (1, 3, 2), T[2]: (2, 1, 3)}
    assert {move.reason for move in made.moves} == {MoveReason.REPLACE}
    assert made.summary.bytes_to_move == made.summary.lower_bound_bytes == 300
    assert infeasible(made) == ()
    assert why_text(made.moves[0]) == "Broker 0 is replaced by broker 3, which takes its place."


def test_several_pairs_are_replaced_at_once_also_in_one_partition() -> None:
    of = cluster([""] * 4, [(0, 1), (1, 0)])
    made = plan(of, action="replace", replacements="0=2, 1=3")
    assert targets(made) == {T[0]: (2, 3), T[1]: (3, 2)}


def test_two_replacements_in_one_rack_are_not_both_taken() -> None:
    """Each alone would leave the partition even; the one in the rack of its broker comes first."""
    of = cluster(["/a", "/c", "/c", "/c", "/b"], [(0, 1)])
    made = plan(of, action="replace", replacements={"0": 2, "1": 3})
    assert targets(made) == {T[0]: (4, 3)}
    (note,) = infeasible(made)
    assert (note.obstacle, note.brokers) == (Obstacle.REPLACEMENT_RACKS, (4,))


def test_of_places_as_uneven_the_emptier_rack_is_taken() -> None:
    """The replacement has a replica: of one broker in rack a and one in b, b holds none yet."""
    racks = ["/c", "/c", "/a", "/b", "/c", "/a", "/b"]
    of = cluster(racks, [(0, 1, 2, 3, 4)], sizes=[1])
    made = plan(of, action="replace", replacements={"3": 0})
    assert targets(made) == {T[0]: (0, 1, 2, 6, 4)}


def test_a_replacement_that_takes_the_place_after_all_is_not_named() -> None:
    """The racks refuse it first, while the other replacement has not taken its place."""
    of = cluster(["/a/a", "/a/a", "/b/a", "/a/a", "/c/a", "/b/a"], [(0, 2, 3, 4)])
    made = plan(of, action="replace", replacements="3=5, 2=1")
    assert targets(made) == {T[0]: (0, 1, 5, 4)}
    assert infeasible(made) == ()
    assert "which takes its place" in why_text(made.moves[0])
    assert "instead" not in why_text(made.moves[0])
    assert "less evenly" not in why_text(made.moves[0])


def test_a_replacement_that_holds_the_partition_already_leaves_the_place_to_another() -> None:
    of = cluster([""] * 4, [(0, 1, 3)])
    made = plan(of, action="replace", replacements={"0": 3})
    assert targets(made) == {T[0]: (2, 1, 3)}
    assert [infeasible_text(item) for item in infeasible(made)] == [
        "t-0: broker 3 has a replica of it already: broker 2 takes the place instead "
        "(wanted 1, nearest 0)"
    ]
    assert why_text(made.moves[0]) == (
        "Broker 0 is replaced by broker 3, which holds a replica already; broker 2 takes its place."
    )


def test_racks_are_kept_where_the_replacement_is_in_another_one() -> None:
    of = cluster(["/a", "/b", "/a", "/b"], [(0, 1), (0,)])
    made = plan(of, action="replace", replacements={"0": 3})
    assert targets(made) == {T[0]: (2, 1), T[1]: (3,)}
    assert "less evenly over the racks" in infeasible_text(infeasible(made)[0])
    blind = plan(of, action="replace", replacements={"0": 3}, ignore_racks=True)
    assert targets(blind) == {T[0]: (3, 1), T[1]: (3,)}


def test_a_rack_that_goes_with_the_broker_keeps_nothing_off_the_replacement() -> None:
    of = cluster(["/a", "/a", "/b", "/b", "/c"], [(4, 0, 2, 3)])
    made = plan(of, action="replace", replacements={"4": 1})
    assert (targets(made), infeasible(made)) == ({T[0]: (1, 0, 2, 3)}, ())


def test_what_the_replacement_cannot_take_is_spread_by_racks_first_and_halls_second() -> None:
    """Broker 5 holds one already. In /b every hall but one is taken; /a has one replica only."""
    of = cluster(["/b/x", "/b/x", "/b/y", "/a/x", "/a/x", "/a/x", "/c/x"], [(6, 0, 1, 5)], 100)
    made = plan(of, action="replace", replacements={"6": 5})
    assert set(targets(made)[T[0]]) & {3, 4}


def test_replicas_without_space_there_go_elsewhere_largest_first() -> None:
    disks = {0: (1_000, 500), 1: (1_000, 500), 2: (1_000, 500), 3: (1_000, 100)}
    of = cluster([""] * 4, [(0,), (0,)], [90, 40], disks=disks)
    made = plan(of, action="replace", replacements={"0": 3})
    assert targets(made)[T[0]] == (3,)
    assert targets(made)[T[1]][0] in (1, 2)
    assert "broker 3 has no room for it" in infeasible_text(infeasible(made)[0])


def test_a_dead_broker_is_replaced_and_other_dead_ones_are_left_as_well() -> None:
    of = cluster([""] * 5, [(0, 1, 2)], dead=frozenset({0, 2}))
    made = plan(of, action="replace", replacements={"0": 3})
    assert targets(made) == {T[0]: (3, 1, 4)}
    assert "broker 2 is not live; broker 4 takes its place" in why_text(made.moves[0])


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ({"0": 9}, "Unknown broker 9"),
        ({"0": 2}, "Broker 2 is not live and can replace none"),
        ({"0": 3}, "Broker 3 takes no new replicas"),
        ({}, "needs replacements"),
    ],
)
def test_what_cannot_replace_is_refused(pairs: dict[str, int], problem: str) -> None:
    of = cluster([""] * 4, [(0, 1)], dead=frozenset({2}), cordoned=frozenset({3}))
    assert problem in problems(of, action="replace", replacements=pairs)


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        ("3", "replacements='3' is not a list"),
        ("3=x", "replacements of '3': "),
        ({"3": 3}, "replacements=.* names a broker more than once"),
        ({"1": 2, "2": 3}, "replacements=.* names a broker more than once"),
        ({"1": 3, "2": 3}, "replacements=.* names a broker more than once"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(pairs: dict[str, int] | str, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        parse_request({"action": "replace", "replacements": pairs})


@pytest.mark.slow
@examples(200)
@given(of=clusters(), pick=st.permutations(range(7)), two=st.booleans(), dead=st.booleans())
def test_replaced_brokers_end_empty_and_all_else_stays_in_its_place(
    of: Cluster, pick: list[int], two: bool, dead: bool
) -> None:
    ids = [broker for broker in pick if broker in of.racks]
    pairs = {ids[0]: ids[1]} | ({ids[2]: ids[3]} if two and len(ids) > 3 else {})
    left = set(of.racks) - set(pairs)
    assume(max(len(row) for row in of.replicas.values()) <= len(left))
    of = replace(of, dead=frozenset([ids[0]])) if dead else of
    assume(all(set(row) - of.dead for row in of.replicas.values()))
    made = plan(of, action="replace", replacements={str(a): b for a, b in pairs.items()})
    named = {item.subject.name for item in infeasible(made)}
    for partition, row in of.replicas.items():
        target = targets(made).get(partition, tuple(row))
        assert len(set(target)) == len(row)
        assert not set(target) & set(pairs)
        assert all(a == b for a, b in zip(row, target, strict=True) if a not in pairs)
        straight = tuple(pairs.get(broker, broker) for broker in row)
        assert (target == straight) == (str(partition) not in named)
        if target != straight and len(set(straight)) == len(row) and not two:
            assert not is_even(straight, paths(of), left), "the replacement could have had it"
        if is_even(row, paths(of), set(of.racks)) and target == straight and not two:
            assert is_even(target, paths(of), left)


def most_bytes(sizes: list[int], room: int) -> float:
    """What a replacement with so much room can take at most, by a mixed-integer solver."""
    found = milp(
        -np.array(sizes, float),
        constraints=LinearConstraint(np.array([sizes], float), -np.inf, room),
        integrality=np.ones(len(sizes)),
        bounds=Bounds(0, 1),
    )
    return -float(found.fun)


@examples(60)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=10), room=st.integers(0, 300))
def test_a_replacement_with_little_room_takes_at_least_half_of_what_it_could(
    sizes: list[int], room: int
) -> None:
    disks = {0: (10_000, 5_000), 1: (10_000, 5_000), 2: (10_000, room)}
    of = cluster([""] * 3, [(0,)] * len(sizes), sizes, disks=disks)
    made = plan(of, action="replace", replacements={"0": 2})
    taken = sum(sizes[m.partition.partition] for m in made.moves if m.target == (2,))
    assert taken <= most_bytes(sizes, room) <= 2 * taken + 1e-6


def test_a_cluster_carried_out_is_planned_no_further() -> None:
    of: Cluster = cluster(["/a", "/b", "/a"], [(0, 1), (1, 0)])
    after = of.after(plan(of, action="replace", replacements={"0": 2}))
    assert plan(after, action="replace", replacements={"0": 2}).moves == ()
