"""What could be cancelled of a plan, and what could not, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.domain.run.states import PlanState
from rehome.execution.control.words.cancel_words import (
    cancelled_cause,
    found_ended,
    left_in_flight,
    not_as_wanted,
    owed_until_back,
    taken_back_text,
    with_unread,
)
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
NO = BrokerError(39, "INVALID_REPLICA_ASSIGNMENT")
LEFT = {B: NO, A: NO}
NAMED = "t-0: INVALID_REPLICA_ASSIGNMENT (39), t-1: INVALID_REPLICA_ASSIGNMENT (39)"


@pytest.fixture
def record(ledger: Ledger) -> PlanRecord:
    ledger.create_plan(make_plan("p1"), {}, "file:///p1", "run-1", "test", dag_id="dag")
    return ledger.plan("p1")


def test_a_cause_names_what_goes_on_what_is_owed_and_what_was_not_read(record: PlanRecord) -> None:
    assert left_in_flight("enough", record, {}) == "enough"
    assert left_in_flight("enough", record, LEFT) == (
        f"enough; what of the plan could not be cancelled goes on, throttled: {NAMED}"
    )
    assert owed_until_back("enough", {}) == "enough"
    assert owed_until_back("enough", LEFT) == (
        f"enough; is taken back by a sweep, when that is possible again: {NAMED}"
    )
    assert with_unread("enough", {}) == "enough"
    assert with_unread("enough", LEFT) == (
        "enough; nothing is in flight of the following partitions, but their replicas could not be "
        "read: " + NAMED
    )
    assert found_ended("enough") == "found when cancelling: enough"
    assert not_as_wanted((1, 2)) == "nothing is in flight, but its replicas read [1, 2]"


def test_one_move_and_several_are_taken_back() -> None:
    assert taken_back_text(1) == "1 move in flight was taken back"
    assert taken_back_text(2) == "2 moves in flight were taken back"


def test_a_person_cancels_a_plan_in_its_state_and_one_whose_run_is_silent(
    record: PlanRecord,
) -> None:
    assert cancelled_cause(record) == "cancelled while it was planned"
    runs = replace(record, state=PlanState.RUNNING)
    assert cancelled_cause(runs) == (
        "cancelled while it was running, for its run dag/run-1 sent no heartbeat"
    )
