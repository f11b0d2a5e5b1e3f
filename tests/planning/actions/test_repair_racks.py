"""A repair of racks names what it leaves, and why; the gate accepts what is rightly named."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.gate_input import Checked
from rehome.quality.plan.tables import plan_tables
from tests.examples import ALL
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import plan
from tests.quality.plan.cases import planned, with_summary

RACKS = ["/a", "/a", "/b", "/b"]
FULL = (1_000, 0)
ROOMY = (1_000, 900)
REPAIR = ReassignmentRequest(Action.REPAIR_RACKS)


def notes(made: Plan) -> dict[str, Obstacle]:
    return {note.subject.name: note.obstacle for note in made.summary.infeasible}


def left_out(checked: Checked) -> int:
    return int(plan_tables(checked)["plan"].column("left_out")[0].as_py())


def test_what_disks_keep_uneven_is_named_and_accepted() -> None:
    of = cluster(RACKS, [(0, 1), (1, 0)], disks={0: ROOMY, 1: ROOMY, 2: FULL, 3: FULL})
    checked = planned(of.snapshot(), REPAIR)
    assert not checked.plan.moves
    assert notes(checked.plan) == dict.fromkeys(("t-0", "t-1"), Obstacle.DISKS_KEEP_UNEVEN)
    assert left_out(checked) == 0


def test_what_exclusions_keep_uneven_is_named_and_accepted() -> None:
    of = cluster(RACKS, [(0, 1)], cordoned=frozenset({3}))
    checked = planned(of.snapshot(), replace(REPAIR, exclude_brokers=(2,)))
    assert notes(checked.plan) == {"t-0": Obstacle.CLOSED_KEEP_UNEVEN}
    assert left_out(checked) == 0


def test_what_has_room_goes_and_only_the_rest_is_named() -> None:
    of = cluster(
        RACKS, [(0, 1), (1, 0), (0, 1)], disks={0: ROOMY, 1: ROOMY, 2: (1_000, 150), 3: FULL}
    )
    made = plan(of, action="repair_racks")
    assert len(made.moves) == 1
    assert len(notes(made)) == 2


def test_a_rest_that_could_be_repaired_is_not_accepted() -> None:
    of = cluster(RACKS, [(0, 1)], disks=dict.fromkeys(range(4), ROOMY))
    checked = planned(of.snapshot(), replace(REPAIR, exclude_topics=("t",)))
    claim = Infeasible(
        Subject.of_partition(TopicPartition("t", 0)), Obstacle.DISKS_KEEP_UNEVEN, 1, 0
    )
    claims = with_summary(replace(checked, request=REPAIR), infeasible=(claim,))
    assert left_out(claims) == 1


def random_cluster(rng: Random) -> Cluster:
    """Up to seven brokers in up to three racks, many of them nearly full or cordoned."""
    brokers = range(rng.randint(3, 7))
    rows = [rng.sample(brokers, rng.randint(1, 3)) for _ in range(rng.randint(1, 8))]
    return cluster(
        [f"/{rng.choice('abc')}" for _ in brokers],
        rows,
        [rng.choice([0, 10, 100, 300]) for _ in rows],
        disks={b: (1_000, rng.choice([0, 0, 60, 120, 400])) for b in brokers},
        cordoned=frozenset(b for b in brokers if rng.random() < 0.1),
    )


@pytest.mark.slow
def test_no_repair_leaves_what_the_gate_does_not_accept() -> None:
    rng = Random(36)
    for _ in range(2_000 if ALL else 150):
        assert left_out(planned(random_cluster(rng).snapshot(), REPAIR)) == 0
