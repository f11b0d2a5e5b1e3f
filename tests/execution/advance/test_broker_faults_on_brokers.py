"""Brokers that die get no moves, and throttles that they cannot lose yet stay owed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.account.evidence import read_evidence
from rehome.cluster.connection.keys import CONTROLLER_SERVERS
from rehome.cluster.connection.settings import Connection
from rehome.domain.clock import utc_now
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.progress import ReplicaState
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import SetRate
from rehome.execution.advance import advance
from rehome.execution.observation.observe import observe
from rehome.execution.progress.progress import replica_statuses, status_text
from rehome.execution.throttle.ensure import ensure
from rehome.execution.throttle.keys import FOLLOWER_RATE
from rehome.execution.throttle.set_up import (
    change_rate,
    clear_throttle,
    set_up_throttle,
    sweep,
)
from rehome.ledger.base.records import SetBy, ThrottleState
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.throttle.on_brokers import set_config, throttle_settings
from tests.ledger.small_plans import move


def test_a_dead_broker_gets_no_moves_and_its_own_rate_stays_owed_until_it_returns(
    mortal: LocalCluster,
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    cluster = mortal
    topic = Topics(cluster).create([[1, 2], [1, 2]])
    with impatient_gateway(cluster) as gateway:
        set_config(gateway, ConfigResource.broker(3), FOLLOWER_RATE, "90000000")
        before = throttle_settings(gateway, topic)
        plan = approved(
            move(topic, 0, (1, 2), (3, 2)),
            move(topic, 1, (1, 2), (4, 2)),
            cluster_id=cluster.cluster_id,
        )
        set_up_throttle(plan, ledger, gateway, 5_000_000)
        cluster.kill(3)
        wait_until(lambda: 3 not in gateway.describe_cluster().brokers, "broker 3 to be gone", 240)

        policy = Policy(5_000_000, metadata_grace_s=1)
        step = advance(plan, ledger, gateway, policy)
        assert step.admitted == [TopicPartition(topic, 1)]
        seen = observe(gateway, plan.moves, utc_now())
        dead = replica_statuses(plan.moves[:1], seen)[0]
        assert dead.state is ReplicaState.UNKNOWN_BROKER
        assert status_text(dead) == "Unknown broker"
        wait_until(lambda: advance(plan, ledger, gateway, policy).in_flight == 0, "the other move")
        assert ledger.view(plan.plan_id).moves == {
            TopicPartition(topic, 0): MoveState.PENDING,
            TopicPartition(topic, 1): MoveState.DONE,
        }
        held = advance(plan, ledger, gateway, policy)
        assert held.holds == ["1 move waits: broker 3 is not alive"]
        hurts = read_evidence(ledger, plan.plan_id).hurts
        assert [(hurt.kind, hurt.brokers, hurt.moves) for hurt in hurts] == [
            (HurtKind.DEAD_BROKERS, (3,), 1)
        ]
        assert step.last_poll is not None
        assert (
            hurts[0].since == step.last_poll.observation.taken_at
        )  # since the first poll without it
        stalled = advance(plan, ledger, gateway, Policy(5_000_000, stall_timeout_s=0))
        assert stalled.finished is PlanState.FAILED

        result = clear_throttle(plan.plan_id, ledger, gateway)
        assert [(e.resource, e.key) for e in result.owed] == [
            (ConfigResource.broker(3), FOLLOWER_RATE)
        ]
        (owed,) = ledger.throttles(plan.plan_id, open_only=True)
        assert (owed.state, owed.detail) == (ThrottleState.OWED, "broker 3 is not alive")

        cluster.restart(3)
        cluster.wait_for_brokers([3])
        wait_until(lambda: 3 in gateway.describe_cluster().brokers, "broker 3 to be back", 240)
        wait_until(lambda: not sweep(ledger, gateway).owed, "the debt to be paid", 240)
        assert throttle_settings(gateway, topic) == before


def rate_of(broker: int) -> tuple[ConfigResource, str]:
    return ConfigResource.broker(broker), FOLLOWER_RATE


@pytest.mark.long
def test_a_dead_brokers_rate_is_taken_back_at_the_controllers_where_they_can_be_reached(
    mortal: LocalCluster,
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    cluster = mortal
    topic = Topics(cluster).create([[1, 2], [1, 2]])
    settings = cluster.client_settings()
    quorum = settings | {CONTROLLER_SERVERS: cluster.controller_address}
    with (
        OwnGateway(Connection.from_settings(settings), request_timeout_s=5) as gateway,
        OwnGateway(Connection.from_settings(quorum), request_timeout_s=5) as reaching,
    ):
        for broker in (3, 4):
            set_config(gateway, ConfigResource.broker(broker), FOLLOWER_RATE, "90000000")
        before = throttle_settings(gateway, topic)
        moves = move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (4, 2))
        plan = approved(*moves, cluster_id=cluster.cluster_id)
        set_up_throttle(plan, ledger, gateway, 5_000_000)
        set_config(gateway, ConfigResource.broker(4), FOLLOWER_RATE, "1234567")
        ensure(plan, ledger, gateway, plan.moves)
        cluster.kill(3)
        cluster.kill(4)
        wait_until(lambda: set(gateway.describe_cluster().brokers) == {1, 2}, "two brokers", 240)

        ledger.transition(plan.plan_id, PlanState.FAILED, "two brokers have died")
        owed = clear_throttle(plan.plan_id, ledger, gateway).owed
        assert {(e.resource, e.key) for e in owed} == {rate_of(3), rate_of(4)}
        nowhere = Connection.from_settings({"bootstrap.servers": "127.0.0.1:1"})
        with OwnGateway(nowhere, request_timeout_s=2, connect_timeout_s=2) as unreachable:
            assert len(clear_throttle(plan.plan_id, ledger, unreachable).owed) == 2
        paid = sweep(ledger, reaching)
        (cleared,), (left,) = paid.cleared, paid.owed
        assert (cleared.resource, left.resource) == tuple(map(ConfigResource.broker, (3, 4)))
        entries = {(e.resource, e.key): e for e in ledger.throttles(plan.plan_id)}
        taken_back, theirs_now = entries[rate_of(3)], entries[rate_of(4)]
        assert taken_back.detail == "taken back at the controllers: its broker is not alive"
        assert taken_back.set_by is SetBy.REHOME
        assert theirs_now.set_by is SetBy.OTHERS

        for broker in (3, 4):
            cluster.restart(broker)
        cluster.wait_for_brokers([3, 4])
        wait_until(lambda: len(gateway.describe_cluster().brokers) == 4, "them to be back", 240)
        wait_until(lambda: not sweep(ledger, gateway).owed, "the debt to be paid", 240)
        theirs = throttle_settings(gateway, topic)
        assert theirs == before | {rate_of(4): "1234567"}, "another client's throttle stays"


def test_a_broker_that_hangs_delays_neither_other_rates_nor_other_moves(
    mortal: LocalCluster, ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    cluster = mortal
    topic = Topics(cluster).create([[1, 2], [1, 2]])
    moves = move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (4, 2))
    plan = approved(*moves, cluster_id=cluster.cluster_id)
    settings = Connection.from_settings(cluster.client_settings())
    with OwnGateway(settings, request_timeout_s=2, connect_timeout_s=2) as gateway:
        set_up_throttle(plan, ledger, gateway, 5_000_000)
        cluster.pause(4)
        change_rate(plan, ledger, gateway, SetRate(6_000_000, "requested"))
        reported = [
            e.detail for e in ledger.events(plan.plan_id) if e.kind == EventKind.RATE_NOT_SET
        ]
        if 4 in gateway.describe_cluster().brokers:  # else it does not hang any more: it is dead
            assert reported[0].startswith(
                "broker 4 is not known to have the rate until it can be read"
            )
        waiting = ensure(plan, ledger, gateway, plan.moves)
        if 4 in gateway.describe_cluster().brokers:
            assert waiting.keys() == {TopicPartition(topic, 1)}
            assert "the throttle of broker 4" in waiting[TopicPartition(topic, 1)]
        assert set(throttle_settings(gateway, brokers=()).values()) == {"6000000"}
        cluster.resume(4)
        policy = Policy(6_000_000, metadata_grace_s=2)
        wait_until(lambda: advance(plan, ledger, gateway, policy).finished, "the plan's end", 240)
        assert ledger.view(plan.plan_id).state is PlanState.DONE
