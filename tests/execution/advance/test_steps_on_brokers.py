"""New replicas of a partition one at a time, on real brokers: carried out, cancelled, killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from local.process.waiting import wait_until
from rehome.domain.configs import MIN_ISR, ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.ledger.store import Ledger
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.conftest import Configure
from tests.execution.driven import FAST, SLOW, SLOW_RATE, replicas_of, run, state_of
from tests.ledger.small_plans import move

MakePlan = Callable[..., Plan]
STEPS, SLOW_STEPS = (replace(policy, max_new_replicas_at_once=1) for policy in (FAST, SLOW))


class OneAtOnce:
    """The gateway, which notes what a reassignment adds when it begins."""

    def __init__(self, gateway: OwnGateway) -> None:
        self._gateway = gateway
        self.asked: list[tuple[int, ...]] = []
        self.most = 0
        self.lose_answers = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)

    def alter_reassignments(self, targets: Any, **how: Any) -> Any:
        before = self._gateway.current_topics({partition.topic for partition in targets})
        for partition, target in targets.items():
            if target is not None:
                there = before[partition.topic].partitions[partition.partition].replicas
                self.most = max(self.most, len(set(target) - set(there)))
                self.asked.append(tuple(target))
        verdicts = self._gateway.alter_reassignments(targets, **how)
        if self.lose_answers:
            self.lose_answers -= 1
            raise ClusterUnreachable
        return verdicts


ClusterUnreachable = ConnectionResetError("the worker is killed here")


def test_new_replicas_come_one_at_a_time_and_old_ones_stay_until_the_last_step(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 200)
    plan = approved(move(topic, 0, (1, 2), (2, 3, 4)), move(topic, 1, (1, 2), (3, 4)))
    watched: Any = OneAtOnce(gateway)
    assert run(plan, ledger, watched, STEPS).finished is PlanState.DONE
    assert (replicas_of(gateway, topic, 0), replicas_of(gateway, topic, 1)) == ((2, 3, 4), (3, 4))
    assert watched.most == 1
    starts = [s for s in ledger.reassignments(plan.plan_id) if s.partition.partition == 0]
    assert [s.replicas_target for s in starts] == [(1, 2, 3), (2, 3, 4)]
    assert {s.outcome for s in starts} == {MoveState.DONE}
    assert len({s.reassignment_id for s in starts}) == 2


def test_a_worker_that_dies_after_a_step_was_sent_is_followed_by_one_that_goes_on(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 200)
    plan = approved(move(topic, 0, (1, 2), (3, 4)))
    watched: Any = OneAtOnce(gateway)
    for _ in range(2):  # at each of its steps
        watched.lose_answers = 1

        def dies() -> bool:
            try:
                advance(plan, ledger, watched, STEPS)
            except ConnectionResetError:
                return True
            return False

        wait_until(dies, "a step to be sent", 60)
    assert run(plan, ledger, watched, STEPS).finished is PlanState.DONE
    assert replicas_of(gateway, topic) == (3, 4)
    assert watched.asked == [(1, 2, 3), (3, 4)]


def test_a_cancel_between_steps_brings_the_replicas_of_before_back_and_copies_nothing(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
    configure: Configure,
) -> None:
    topic = topics.create([[1, 2]])
    # Ten seconds for each step: a busy machine needs some to look at the second.
    topics.fill(topic, 10_000)
    configure(ConfigResource.topic(topic), MIN_ISR, "2")
    plan = approved(move(topic, 0, (1, 2), (4, 3), 10_000_000))
    throttled(plan, SLOW_RATE)
    partition = TopicPartition(topic, 0)

    def second() -> bool:
        advance(plan, ledger, gateway, SLOW_STEPS)
        return len(ledger.reassignments(plan.plan_id)) == 2

    wait_until(second, "the second step", 120)
    assert gateway.list_reassignments()[partition].adding == (3,)
    watched: Any = OneAtOnce(gateway)
    done = abort(plan.plan_id, ledger, watched, "cancelled", state=PlanState.CANCELLED)
    assert done.cancelled == (partition,)
    assert watched.asked == [(1, 2)]
    assert watched.most == 0
    assert partition not in gateway.list_reassignments()
    assert state_of(gateway, topic).replicas == (1, 2)
    starts = ledger.reassignments(plan.plan_id)
    assert [s.outcome for s in starts] == [MoveState.DONE, MoveState.CANCELLED]
