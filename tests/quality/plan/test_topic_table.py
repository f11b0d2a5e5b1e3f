"""Which brokers the gate finds off their share of a topic."""

from __future__ import annotations

import pytest

from rehome.domain.actions import Action
from rehome.domain.plan.infeasible import Infeasible, SubjectKind
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.gate_input import Checked
from rehome.quality.plan.topic_table import topics_after
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, rules_broken_by, with_moves
from tests.quality.plan.checked_plans import move

Tolerances = dict[str, float | None]
EVEN: Tolerances = {"topic_spread": 0.1}


def off(
    brokers: int,
    rows: list[tuple[int, int]],
    targets: dict[int, tuple[int, int]],
    tolerances: Tolerances,
) -> list[int]:
    """Brokers that are off after these partitions went to these targets, by the gate."""
    of = cluster([""] * brokers, rows, topic="payments")
    request = ReassignmentRequest(Action.REBALANCE, tolerance=0.9, tolerances=tolerances)
    made = planned(of.snapshot(), request)
    moves = [move(number, rows[number], target) for number, target in targets.items()]
    (row,) = topics_after(with_moves(made, moves)).to_pylist()
    return row["off_brokers"] or []


SMALL = [(0, 1), (2, 3), (4, 5), (6, 7)]
LARGE = [(0, 1), (2, 3)] * 4


@pytest.mark.parametrize("tolerances", [{}, EVEN])
def test_two_replicas_of_a_small_topic_may_share_a_broker_and_three_may_not(
    tolerances: Tolerances,
) -> None:
    assert off(10, SMALL, {1: (0, 3)}, tolerances) == []
    assert off(10, SMALL, {1: (0, 3), 2: (0, 5)}, tolerances) == [0]


@pytest.mark.slow
@pytest.mark.parametrize("tolerances", [{}, EVEN])
def test_a_broker_may_keep_what_it_had_of_a_small_topic(
    tolerances: Tolerances,
) -> None:
    crowded = [(0, 1), (0, 3), (0, 5), (6, 7)]
    assert off(10, crowded, {3: (8, 9)}, tolerances) == []
    assert off(10, crowded, {3: (0, 9)}, tolerances) == [0]


@pytest.mark.slow
def test_a_topic_may_stay_uneven_unless_it_is_to_be_evened_out() -> None:
    uneven = [(0, 1)] * 4 + [(2, 3)] * 2
    assert off(4, uneven, {0: (1, 0)}, {}) == []
    assert off(4, [(0, 1)] * 6, {0: (1, 0)}, EVEN) == [0, 1, 2, 3]


def test_no_broker_may_end_further_off_than_it_was() -> None:
    assert off(4, LARGE, {1: (0, 3)}, {}) == []
    assert off(4, LARGE, {1: (0, 3), 3: (0, 3)}, {}) == [0, 2]


def test_a_topic_that_nothing_can_move_needs_no_note() -> None:
    """All its partitions have a replica on a dead broker."""
    of = cluster([""] * 3, [(0, 1)] * 3, dead=frozenset({0}))
    request = ReassignmentRequest(Action.EXPAND, brokers=(2,), tolerances=EVEN)
    made = planned(of.snapshot(), request)
    assert {note.subject.kind for note in made.plan.summary.infeasible} >= {
        SubjectKind.OFFLINE_REPLICAS
    }
    assert rules_broken_by(made) == set()


def test_a_topic_to_be_evened_out_is_named_if_two_replicas_stay_on_a_small_broker() -> None:
    request = ReassignmentRequest(
        Action.REBALANCE,
        tolerance=0.9,
        tolerances=EVEN,
        weights={0: 0.5},
        exclude_brokers=(1, 2),
    )
    made = planned(cluster([""] * 3, [(0,), (0,), (1,)]).snapshot(), request)
    replicas, leaders = topics_off(made)
    assert (replicas.brokers, replicas.wanted, replicas.nearest) == ((0,), 0.6, 2.0)
    assert (leaders.brokers, leaders.wanted, leaders.nearest) == ((0,), 0.6, 2.0)
    assert rules_broken_by(made) == set()


def topics_off(made: Checked) -> list[Infeasible]:
    return [n for n in made.plan.summary.infeasible if n.subject.kind is SubjectKind.TOPIC]
