"""Reassignments of others, on real brokers: recognised, left alone, watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.domain.clock import utc_now
from rehome.domain.kafka import OngoingReassignment, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.progress import ReplicaState, ReplicaStatus
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import Hold
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.observation.observe import moves_of, observe
from rehome.execution.progress.progress import replica_statuses
from rehome.ledger.store import Ledger
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import SLOW, replicas_of, run
from tests.ledger.small_plans import move
from tests.versions.since import since

MakePlan = Callable[..., Plan]


@pytest.mark.long
def test_foreign_reassignments_are_never_touched(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2], [1, 2], [2, 1], [1, 3]])
    topics.fill(topic, 3000)
    ours, taken, before, other = (TopicPartition(topic, number) for number in range(4))
    plan = approved(
        *(move(topic, number, (1, 2), (4, 2), 3_000_000) for number in range(2)),
        move(topic, 2, (2, 1), (4, 1), 3_000_000),
    )
    throttled(plan, 100_000)
    gateway.alter_reassignments({before: [3, 1], other: [1, 4]})
    wait_until(lambda: replicas_of(gateway, topic, 2) == (3, 1), "the foreign ones to end", 240)
    with_others = Policy(200_000, additional=True, metadata_grace_s=2)
    step = advance(plan, ledger, gateway, with_others)
    assert sorted(step.admitted) == [ours, taken]
    assert step.settled == {before: MoveState.SUPERSEDED}
    gateway.alter_reassignments({taken: [3, 2]})  # another client supersedes ours
    wait_until(
        lambda: (
            advance(plan, ledger, gateway, with_others).settled.get(taken) is MoveState.SUPERSEDED
        ),
        "it to be recognised",
    )
    abort(plan.plan_id, ledger, gateway, "enough")
    wait_until(lambda: replicas_of(gateway, topic, 1) == (3, 2), "the foreign one to end", 240)
    assert ledger.view(plan.plan_id).moves[ours] is MoveState.CANCELLED
    assert replicas_of(gateway, topic, 3) == (1, 4)


@since((4, 3), "a reassignment that is sent back ends at once (seen on 3.9.2 and 4.1.2)")
def test_a_reassignment_that_is_sent_back_in_mid_copy_ends_by_being_cancelled_only(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1], [1]])
    topics.fill(topic, 3000)
    sent_back = TopicPartition(topic, 0)

    def is_sent_back_in_mid_copy() -> bool:
        gateway.alter_reassignments({sent_back: [2]})
        gateway.alter_reassignments({sent_back: [1]})
        return gateway.list_reassignments() == {sent_back: OngoingReassignment((1, 2), (2,), (2,))}

    wait_until(is_sent_back_in_mid_copy, "the way back to come before the copy ends")
    plan = approved(move(topic, 1, (1,), (2,), 3_000_000))
    throttled(plan, 100_000)
    step = advance(plan, ledger, gateway, SLOW)
    assert [act for act in step.actions if isinstance(act, Hold) and act.hangs]
    gateway.alter_reassignments({sent_back: None})
    assert not gateway.list_reassignments()
    assert replicas_of(gateway, topic, 0) == (1,)


def test_a_move_that_another_client_cancelled_is_recognised_and_its_order_restored(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2, 3]])
    topics.fill(topic, 3000)
    partition = TopicPartition(topic, 0)
    plan = approved(move(topic, 0, (1, 2, 3), (4, 3, 2), 3_000_000))
    throttled(plan, 100_000)
    advance(plan, ledger, gateway, SLOW)
    gateway.alter_reassignments({partition: None})
    assert run(plan, ledger, gateway, SLOW).finished is PlanState.FAILED
    record = ledger.moves(plan.plan_id)[partition]
    assert (record.state, record.detail) == (MoveState.CANCELLED, "another client cancelled it")
    wait_until(lambda: replicas_of(gateway, topic) == (1, 2, 3), "the order")


def test_what_another_client_moves_can_be_watched(
    gateway: OwnGateway,
    topics: Any,
    ledger: Ledger,
    approved: MakePlan,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 3000)
    throttled(approved(move(topic, 0, (1, 2), (4, 2))), 100_000)
    gateway.alter_reassignments({TopicPartition(topic, 0): [4, 2]})
    (watched,) = moves_of(gateway.list_reassignments())
    assert (set(watched.current), watched.target) == ({1, 2}, (4, 2))

    def begun() -> tuple[ReplicaStatus, ...] | None:
        found = tuple(replica_statuses([watched], observe(gateway, [watched], utc_now())))
        return found if found[0].state is ReplicaState.BEHIND else None

    copy, other = wait_until(begun, "broker 4 to have begun") or ()
    assert copy.replica.broker == 4
    assert (other.replica.broker, other.state) == (2, ReplicaState.IN_SYNC)
    gateway.alter_reassignments({TopicPartition(topic, 0): None})
