"""A window that closes on a copy, on real brokers. The test sets the clock and does not wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from local.process.waiting import wait_until
from rehome.domain.clock import utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import OnWindowEnd
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.execution.control.resume import check_continuable
from rehome.execution.observation.drift import DriftError
from rehome.execution.throttle.set_up import clear_throttle
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.dags.clusters import state_of
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import FAST, SLOW, replicas_of, run
from tests.ledger.small_plans import move


@pytest.mark.parametrize("choice", list(OnWindowEnd))
def test_a_copy_that_outlasts_its_window_is_taken_back_and_the_next_window_goes_on(
    choice: OnWindowEnd,
    gateway: OwnGateway,
    ledger: Ledger,
    approved: Callable[..., Plan],
    topics: Topics,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    before = state_of(gateway, [topic])
    flying, waiting = (TopicPartition(topic, number) for number in (0, 1))
    # Far smaller when planned than they are now: with FINISH, too, the first seems to fit.
    plan = approved(*(move(topic, number, (1, 2), (4, 2), 1000) for number in (0, 1)))
    throttled(plan, 100_000)
    closes = utc_now() + timedelta(minutes=10)
    tonight = replace(SLOW, window_end=closes, on_window_end=choice, max_moves_per_broker=1)
    assert advance(plan, ledger, gateway, tonight).admitted == [flying]

    def copied() -> bool:
        step = advance(plan, ledger, gateway, tonight)
        assert step.finished is None
        return step.progress is not None and step.progress.sample.bytes_done > 0

    wait_until(copied, "the copy to begin", 240)
    step = advance(plan, ledger, gateway, tonight, lambda: closes)
    assert (step.finished, step.cancelled) == (PlanState.PAUSED, [flying])
    assert ledger.plan(plan.plan_id).cause == "the window has ended"
    assert set(ledger.view(plan.plan_id).moves.values()) == {MoveState.PENDING}
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    wait_until(lambda: state_of(gateway, [topic]) == before, "the cluster as it was")

    def refusal() -> str:
        """A broker shows a change some milliseconds after the controller has committed it."""
        try:
            check_continuable(plan, ledger, gateway, "run-2")
        except DriftError as error:
            return str(error)
        return ""

    gateway.alter_reassignments({waiting: [2, 1]})
    wait_until(lambda: replicas_of(gateway, topic, 1) == (2, 1), "another client's change")
    wait_until(lambda: "has replicas [2, 1], not [1, 2]" in refusal(), "the drift to be refused")
    gateway.alter_reassignments({waiting: [1, 2]})
    # By the check itself: another broker than the one that answered last may still show the change.
    wait_until(lambda: refusal() == "", "it to be taken back")
    ledger.take_up(plan.plan_id, "dag", "run-2", {}, "ann", lease_s=60)
    throttled(plan, 50_000_000)
    assert run(plan, ledger, gateway, FAST).finished is PlanState.DONE
    assert [replicas_of(gateway, topic, number) for number in (0, 1)] == [(4, 2), (4, 2)]
    outcomes = [(start.partition, start.outcome) for start in ledger.reassignments(plan.plan_id)]
    assert sorted(outcomes) == [
        (flying, MoveState.CANCELLED),
        (flying, MoveState.DONE),
        (waiting, MoveState.DONE),
    ]
