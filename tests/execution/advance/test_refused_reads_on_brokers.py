"""Rights that are revoked in mid-run: what they do not concern goes on and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle, sweep
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.dags.clusters import state_of
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.small_plans import move
from tests.rights import REASSIGNER, granted

USER, CRAWL = "reassigner", 10_000
OF_TOPICS = tuple(operation for operation, resource in REASSIGNER if resource == "topic")
OF_CLUSTER = tuple(right for right in REASSIGNER if right[1] == "cluster")
POLICY = Policy(CRAWL, max_partitions_in_flight=2, metadata_grace_s=1)


@pytest.fixture
def rights(secured_cluster: LocalCluster) -> Iterator[Callable[[str, bool], None]]:
    """Gives the user a reassigner's rights on the cluster, and on a topic gives or takes them."""
    given: set[str] = set()

    def on(topic: str, give: bool) -> None:
        change = secured_cluster.allow if give else secured_cluster.revoke
        for operation in OF_TOPICS:
            change(USER, operation, "topic", topic)
        (given.add if give else given.discard)(topic)

    with granted(secured_cluster, USER, *OF_CLUSTER):
        yield on
        for topic in list(given):
            on(topic, False)


def open_gateway(cluster: LocalCluster, *user: str) -> OwnGateway:
    return OwnGateway(Connection.from_settings(cluster.client_settings(*user)))


def test_with_a_topic_hidden_in_mid_run_the_others_are_cancelled_and_cleared(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    rights: Callable[[str, bool], None],
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    good, bad = (secured_topics.create([[1, 2], [1, 2]]) for _ in range(2))
    for topic in (good, bad):
        secured_topics.fill(topic, 200, size_bytes=10_000)
        rights(topic, True)
    sizes = {(good, 0): 4_000_000, (bad, 0): 3_000_000, (good, 1): 2_000_000, (bad, 1): 1_000_000}
    moves = (move(*part, (1, 2), (3, 2), size) for part, size in sizes.items())
    plan = approved(*moves, cluster_id=secured_cluster.cluster_id)
    flying = [TopicPartition(good, 0), TopicPartition(bad, 0)]
    with open_gateway(secured_cluster) as admin, open_gateway(secured_cluster, USER) as gateway:
        before = state_of(admin, [good, bad])
        set_up_throttle(plan, ledger, gateway, CRAWL)
        assert sorted(advance(plan, ledger, gateway, POLICY).admitted) == sorted(flying)
        rights(bad, False)
        wait_until(lambda: gateway.describe_topics([bad])[bad].error, "the right to be gone")

        more = replace(POLICY, max_partitions_in_flight=4)
        step = advance(plan, ledger, gateway, more)
        assert step.admitted == [TopicPartition(good, 1)], "nothing starts that cannot be read"
        states = ledger.view(plan.plan_id).moves
        assert states[flying[1]] is MoveState.ADMITTED, "what cannot be read is not settled"
        ledger.request_cancel(plan.plan_id, "ann")
        step = advance(plan, ledger, gateway, POLICY)
        assert step.finished is PlanState.CANCELLED
        assert sorted(step.cancelled) == sorted([*flying, TopicPartition(good, 1)])
        assert not admin.list_reassignments()
        kinds = {event.kind for event in ledger.events(plan.plan_id)}
        assert EventKind.NOT_READ_AFTER_CANCEL not in kinds, "it is put in order without a reading"

        owed = clear_throttle(plan.plan_id, ledger, gateway).owed
        assert {entry.resource for entry in owed} == {ConfigResource.topic(bad)}
        rights(bad, True)

        def paid() -> bool:
            sweep(ledger, gateway)
            return not ledger.throttles(plan.plan_id, open_only=True)

        wait_until(paid, "the debt to be paid")

        wait_until(lambda: state_of(admin, [good, bad]) == before, "the cluster as it was")


def test_a_topic_whose_configs_cannot_be_read_holds_back_its_own_moves_only(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    rights: Callable[[str, bool], None],
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    good, bad = (secured_topics.create([[1, 2]]) for _ in range(2))
    for topic in (good, bad):
        rights(topic, True)
    moves = (move(topic, 0, (1, 2), (3, 2), 1_000_000) for topic in (good, bad))
    plan = approved(*moves, cluster_id=secured_cluster.cluster_id)
    with open_gateway(secured_cluster, USER) as gateway:
        set_up_throttle(plan, ledger, gateway, CRAWL)
        secured_cluster.revoke(USER, "alter_configs", "topic", bad)
        try:
            step = advance(plan, ledger, gateway, POLICY)
        finally:
            secured_cluster.allow(USER, "alter_configs", "topic", bad)
        assert step.admitted == [TopicPartition(good, 0)]
        (reported,) = step.holds
        assert reported.startswith(f"1 move is to be sent again: the throttle of topic {bad}: ")
        assert "TOPIC_AUTHORIZATION_FAILED" in reported

        def done() -> bool:
            return advance(plan, ledger, gateway, POLICY).finished is PlanState.DONE

        wait_until(done, "the plan to be done", 240)
        assert not clear_throttle(plan.plan_id, ledger, gateway).owed


def test_a_broker_that_refuses_its_log_dirs_does_not_keep_a_run_from_cancelling(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    rights: Callable[[str, bool], None],
    ledger: Ledger,
    approved: Callable[..., Plan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ACLs are the same on all brokers: that one refuses is put into its real answer."""
    topic = secured_topics.create([[1, 2], [2, 1]])
    secured_topics.fill(topic, 200, size_bytes=10_000)
    rights(topic, True)
    moves = (move(topic, n, old, (3, old[1]), 1_000_000) for n, old in enumerate([(1, 2), (2, 1)]))
    plan = approved(*moves, cluster_id=secured_cluster.cluster_id)
    with open_gateway(secured_cluster, USER) as gateway:
        before = state_of(gateway, [topic])
        set_up_throttle(plan, ledger, gateway, CRAWL)
        assert len(advance(plan, ledger, gateway, POLICY).admitted) == 2
        ask_each = gateway.clients.reads.ask_each

        def but_one(requests: Any) -> Any:
            answers, missing = ask_each(requests)
            if type(answers.get(3)).__name__ == "DescribeLogDirsResponse":
                answers[3].error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return answers, missing

        monkeypatch.setattr(gateway.clients.reads, "ask_each", but_one)
        dirs = gateway.describe_log_dirs()
        assert {log_dir.broker for log_dir in dirs.value} == {1, 2, 4}
        assert "needs the right Cluster Describe" in dirs.missing[3].message
        ledger.request_cancel(plan.plan_id, "ann")
        step = advance(plan, ledger, gateway, POLICY)
        assert (step.finished, len(step.cancelled)) == (PlanState.CANCELLED, 2)
        assert not clear_throttle(plan.plan_id, ledger, gateway).owed
        wait_until(lambda: state_of(gateway, [topic]) == before, "the cluster as it was")
