"""Many small moves on real brokers: started by hundreds, one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution import rolling
from rehome.execution.throttle.set_up import clear_throttle
from rehome.ledger.store import Ledger
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import FAST, replicas_of
from tests.ledger.small_plans import move

MakePlan = Callable[..., Plan]
MANY = 300
SMALL = replace(FAST, small_bytes=1_000_000, max_partitions_in_flight=50, max_small_in_flight=200)


@pytest.fixture
def many(approved: MakePlan, topics: Any, throttled: Callable[..., None]) -> Plan:
    """A throttled plan of as many empty partitions of one topic."""
    topic = topics.create([[1, 2]] * MANY)
    plan = approved(*(move(topic, n, (1, 2), (3, 2)) for n in range(MANY)))
    throttled(plan, FAST.rate_bytes_per_s)
    return plan


def test_small_moves_follow_each_other_without_a_poll_between_them(
    gateway: OwnGateway, ledger: Ledger, many: Plan
) -> None:
    steps = list(rolling.steps(many, ledger, gateway, SMALL))
    assert steps[-1].finished is PlanState.DONE
    assert sum(len(step.admitted) for step in steps) == MANY
    assert {replicas_of(gateway, *each.partition) for each in many.moves} == {(3, 2)}
    assert len(ledger.planned_moves(many.plan_id, MoveState.DONE)) == MANY
    assert not clear_throttle(many.plan_id, ledger, gateway).owed


def test_a_request_to_pause_acts_within_one_step(
    gateway: OwnGateway, ledger: Ledger, many: Plan
) -> None:
    few = replace(SMALL, max_small_in_flight=50)
    steps = []
    for step in rolling.steps(many, ledger, gateway, few):
        steps.append(step)
        if len(steps) == 2:
            ledger.request_pause(many.plan_id, "ann")
    assert ledger.plan(many.plan_id).state is PlanState.PAUSED
    assert sum(len(step.admitted) for step in steps[2:]) == 0
    assert not clear_throttle(many.plan_id, ledger, gateway).owed
