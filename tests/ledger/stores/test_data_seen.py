"""High watermarks in the ledger, and what is lost: told once, and never called done."""

from __future__ import annotations

import pytest

from rehome.domain.kafka import HighWatermark, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.ledger_view import DataSeen
from rehome.domain.run.states import MoveState
from rehome.ledger.store import Ledger
from rehome.ledger.stores import data_seen
from tests.ledger.small_plans import make_plan
from tests.ledger.stores.test_moves import seen

TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)
WHOLE, EMPTY = HighWatermark(12_000, 3), HighWatermark(0, 5)


@pytest.fixture
def plan(ledger: Ledger) -> Plan:
    plan = make_plan("p1")
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.claim("p1")
    ledger.admit("p1", plan.moves, seen(plan), 1000)
    return plan


def told(ledger: Ledger) -> list[str]:
    return [event.detail for event in ledger.events("p1") if event.kind is EventKind.DATA_LOST]


def test_what_a_poll_has_seen_is_there_for_the_next_one(ledger: Ledger, plan: Plan) -> None:
    assert set(ledger.view("p1").data.values()) == {DataSeen()}
    ledger.record_data_seen("p1", {TP0: DataSeen(WHOLE)})
    assert ledger.view("p1").data == {TP0: DataSeen(WHOLE), TP1: DataSeen()}
    assert ledger.data_seen("p1") == {TP0: DataSeen(WHOLE), TP1: DataSeen()}
    assert ledger.lost_data("p1") == {}


def test_a_loss_is_told_once_and_its_move_is_neither_done_nor_tried_again(
    ledger: Ledger, plan: Plan
) -> None:
    lost = DataSeen(WHOLE).then(EMPTY)
    for _ in range(2):  # the trigger and the worker poll both
        ledger.record_data_seen("p1", {TP0: lost, TP1: DataSeen(WHOLE)})
    assert told(ledger) == [f"t-0: {lost.lost_text}"]
    assert "offsets 0 to 11999" in lost.lost_text
    ledger.settle("p1", TP0, MoveState.DONE)
    ledger.settle("p1", TP1, MoveState.DONE)
    states = {p: (each.state, each.detail) for p, each in ledger.moves("p1").items()}
    assert states == {TP0: (MoveState.FAILED, lost.lost_text), TP1: (MoveState.DONE, "")}
    assert ledger.lost_data("p1") == {TP0: lost}


def test_what_is_lost_and_taken_back_does_not_start_again(ledger: Ledger, plan: Plan) -> None:
    ledger.record_data_seen("p1", {TP0: DataSeen(WHOLE).then(EMPTY)})
    ledger.settle("p1", TP0, MoveState.PENDING, "the window has ended")
    assert ledger.view("p1").moves[TP0] is MoveState.FAILED


def test_a_second_loss_is_told_as_well(ledger: Ledger, plan: Plan) -> None:
    first = DataSeen(WHOLE).then(HighWatermark(11_000, 4))
    second = first.then(HighWatermark(11_500, 4)).then(HighWatermark(10_000, 6))
    ledger.record_data_seen("p1", {TP0: first})
    ledger.record_data_seen("p1", {TP0: second})
    assert second.lost == range(10_000, 12_000)
    assert len(told(ledger)) == 2
    assert data_seen.DataSeenStore.lost_data(ledger, "p1") == {TP0: second}
