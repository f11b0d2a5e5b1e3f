"""What had not ended well, and needs no moving any more when the plan ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from rehome.domain.kafka import HighWatermark, PartitionState
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import DataSeen
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import Advance, advance
from rehome.execution.observation.needless_moves import needless
from rehome.execution.observation.words.fate_words import RECREATED
from rehome.ledger.store import Ledger
from tests.execution.observed import ONE, TP, flying, seen
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import move

MOVE = ONE.moves[0]
ARRIVED = PartitionState(3, (3, 2), frozenset({3, 2}))


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"partitions": {}, "topics_missing": frozenset({"t"})}, MoveState.GONE),
        ({"partitions": {}}, MoveState.GONE),
        ({"partitions": {TP[0]: ARRIVED}}, MoveState.DONE),
        ({}, None),
        ({"ongoing": {TP[0]: flying(MOVE)}}, None),
        ({"partitions": {}, "unreadable": {"t": "refused"}}, None),
    ],
)
def test_only_what_is_gone_or_in_place_needs_no_moving(
    changes: dict[str, Any], state: MoveState | None
) -> None:
    assert [each.state for each in needless([MOVE], seen(ONE, **changes))] == (
        [] if state is None else [state]
    )


def test_a_topic_that_was_created_again_is_another_one() -> None:
    ours = replace(MOVE, topic_id="old")
    found = list(needless([ours], seen(ONE, topic_ids={"t": "new"})))
    assert found == [Settle(TP[0], MoveState.GONE, RECREATED)]


class Others:
    """Two moves of two topics; others cancel the first one, which ends as cancelled."""

    def __init__(self, plan: Plan, ledger: Ledger) -> None:
        self.plan, self.ledger = plan, ledger
        self.cluster = SimulatedCluster([1, 2, 3, 4], plan.moves)
        self.step()
        first = plan.moves[0].partition
        del self.cluster.targets[first]
        self.step()
        assert self.states == [MoveState.CANCELLED, MoveState.ADMITTED]

    def step(self) -> Advance:
        policy = Policy(1000, metadata_grace_s=0)
        return advance(self.plan, self.ledger, cast(OwnCluster, self.cluster), policy)

    @property
    def states(self) -> list[MoveState]:
        states = self.ledger.view(self.plan.plan_id).moves
        return [states[each.partition] for each in self.plan.moves]


@pytest.fixture
def others(approved: Callable[..., Plan], ledger: Ledger) -> Others:
    moves = move("t", 0, (1, 2), (3, 2), 5), move("u", 0, (1, 2), (4, 2), 5)
    return Others(approved(*moves, cluster_id="sim"), ledger)


def test_a_plan_of_which_nothing_is_left_to_be_moved_is_done(others: Others) -> None:
    del others.cluster.replicas[others.plan.moves[0].partition]
    others.cluster.step(5)
    done = others.step()
    assert (done.finished, done.cause) == (
        PlanState.DONE,
        "every move is done that is left to make: 1 partition is gone",
    )
    assert others.states == [MoveState.GONE, MoveState.DONE]
    outcomes = [each.outcome for each in others.ledger.reassignments(others.plan.plan_id)]
    assert outcomes == [MoveState.CANCELLED, MoveState.DONE], "what became of each stays"


def test_what_others_bring_in_place_in_the_end_is_done(others: Others) -> None:
    first = others.plan.moves[0]
    others.cluster.replicas[first.partition] = first.target
    others.cluster.step(5)
    assert others.step().finished is PlanState.DONE
    assert others.states == [MoveState.DONE, MoveState.DONE]


def test_what_is_left_to_be_moved_fails_the_plan(others: Others) -> None:
    others.cluster.step(5)
    done = others.step()
    assert (done.finished, done.cause) == (
        PlanState.FAILED,
        "not every move is done: 1 cancelled",
    )


def test_a_move_whose_messages_are_lost_stays_failed(
    approved: Callable[..., Plan], ledger: Ledger
) -> None:
    moves = move("t", 0, (1, 2), (3, 2), 5), move("u", 0, (1, 2), (4, 2), 5)
    plan = approved(*moves, cluster_id="sim")
    ledger.claim(plan.plan_id)
    ledger.admit(plan.plan_id, plan.moves, seen(plan), 1000)
    lost = {moves[0].partition: DataSeen(HighWatermark(3, 1), range(3, 9))}
    ledger.record_data_seen(plan.plan_id, lost)
    ledger.settle(plan.plan_id, moves[0].partition, MoveState.DONE)
    cluster = SimulatedCluster([1, 2, 3, 4], plan.moves)
    cluster.replicas = {each.partition: each.target for each in moves}
    del cluster.replicas[moves[0].partition]
    done = advance(plan, ledger, cast(OwnCluster, cluster), Policy(1000, metadata_grace_s=0))
    assert (done.finished, done.cause) == (PlanState.FAILED, "not every move is done: 1 failed")
