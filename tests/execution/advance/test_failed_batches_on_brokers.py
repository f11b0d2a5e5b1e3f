"""A request in several batches of which a later one fails: what is known of each move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster import gateway as gateway_module
from rehome.cluster.clients.wire import NoAnswerError
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import broker_error
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.small_plans import move
from tests.rights import REASSIGNER, granted

POLICY = Policy(100_000_000, metadata_grace_s=1)
INVALID_REQUEST = 42
ALTERS = "AlterPartitionReassignmentsRequest"


@pytest.fixture(autouse=True)
def one_partition_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_module, "PARTITIONS_PER_REQUEST", 1)


def before_second_batch(
    gateway: OwnGateway, monkeypatch: pytest.MonkeyPatch, act: Callable[[Any], Any]
) -> None:
    """``act`` gets a function that sends the second batch, and answers in its place."""
    ask_any, batches = gateway.clients.controller.ask_any, []

    def ask(request: Any) -> Any:
        if type(request).__name__ != ALTERS:
            return ask_any(request)
        batches.append(request)
        return ask_any(request) if len(batches) == 1 else act(lambda: ask_any(request))

    monkeypatch.setattr(gateway.clients.controller, "ask_any", ask)


def no_answer(code: int) -> Callable[[Any], Any]:
    def act(send: Callable[[], Any]) -> Any:
        send()
        raise NoAnswerError(broker_error(code))

    return act


def refused_as_a_whole(code: int) -> Callable[[Any], Any]:
    def act(send: Callable[[], Any]) -> Any:
        answer = send()
        answer.error_code = code
        return answer

    return act


@pytest.mark.parametrize(
    "lose",
    [
        no_answer(ErrorCode.BROKER_NOT_AVAILABLE),
        no_answer(ErrorCode.REQUEST_TIMED_OUT),
        no_answer(ErrorCode.NETWORK_EXCEPTION),
        refused_as_a_whole(ErrorCode.NOT_CONTROLLER),
        refused_as_a_whole(INVALID_REQUEST),
    ],
    ids=["not available", "time-out", "network", "not controller", "invalid request"],
)
def test_moves_of_a_batch_that_failed_as_a_whole_are_judged_by_the_next_poll(
    lose: Callable[[Any], Any],
    gateway: OwnGateway,
    topics: Topics,
    ledger: Ledger,
    approved: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller accepts it. What is told of that is put into the place of its real answer."""
    topic = topics.create([[1, 2], [1, 2]])
    plan = approved(move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (3, 2)))
    first, second = (item.partition for item in plan.moves)
    with monkeypatch.context() as patches:
        before_second_batch(gateway, patches, lose)
        step = advance(plan, ledger, gateway, POLICY)
    assert step.admitted == [first]
    assert step.errors[second].code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "AlterPartitionReassignments" in step.errors[second].message
    assert step.settled == {}
    assert ledger.view(plan.plan_id).moves[second] is MoveState.ADMITTED

    def ended() -> PlanState | None:
        return advance(plan, ledger, gateway, POLICY).finished

    assert wait_until(ended, "the plan to end") is PlanState.DONE
    assert set(ledger.view(plan.plan_id).moves.values()) == {MoveState.DONE}


def test_a_right_that_is_revoked_between_two_batches_is_a_verdict_on_the_second(
    secured_cluster: LocalCluster, secured_topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = secured_topics.create([[1, 2], [1, 2]])
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    user = "reassigner"

    def revoke(send: Callable[[], Any]) -> Any:
        secured_cluster.revoke(user, "alter", "cluster")
        return send()

    connection = Connection.from_settings(secured_cluster.client_settings(user))
    with granted(secured_cluster, user, *REASSIGNER), OwnGateway(connection) as gateway:
        before_second_batch(gateway, monkeypatch, revoke)
        try:
            verdicts = gateway.alter_reassignments({first: (2, 1), second: (2, 1)})
        finally:
            secured_cluster.allow(user, "alter", "cluster")
    assert verdicts[first] is None
    refused = verdicts[second]
    assert refused is not None
    assert refused.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert "needs the right Cluster Alter" in refused.message
