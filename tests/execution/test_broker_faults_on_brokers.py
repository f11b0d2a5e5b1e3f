"""Brokers that die: not admitted to, and what they still have to be told stays owed."""

from __future__ import annotations

from collections.abc import Callable

from include.cluster.model import TopicPartition
from include.cluster.port import ConfigResource
from include.execution.advance import advance
from include.execution.model import MoveState, PlanState, Policy, ReplicaStanding
from include.execution.observe import observe
from include.execution.progress import replica_statuses, status_text
from include.execution.throttle import clear_throttle, set_up_throttle, sweep
from include.execution.throttle_items import FOLLOWER_RATE
from include.ledger.database import utc_now
from include.ledger.records import ThrottleState
from include.ledger.store import Ledger
from include.planning.plan import Plan
from local.kafka_cluster import LocalCluster
from local.waiting import wait_until
from tests.conftest import Topics, impatient_gateway
from tests.execution.test_throttle_on_brokers import set_config, standing
from tests.ledger.small_plans import move


def test_a_dead_broker_gets_no_moves_and_its_own_rate_stays_owed_until_it_returns(
    private_cluster: Callable[..., LocalCluster],
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    cluster = private_cluster(brokers=4)
    topic = Topics(cluster).create([[1, 2], [1, 2]])
    with impatient_gateway(cluster) as gateway:
        set_config(gateway, ConfigResource.broker(3), FOLLOWER_RATE, "90000000")
        before = standing(gateway, topic)
        plan = approved(
            move(topic, 0, (1, 2), (3, 2)),
            move(topic, 1, (1, 2), (4, 2)),
            cluster_id=cluster.cluster_id,
        )
        set_up_throttle(plan, ledger, gateway, 5_000_000)
        cluster.kill(3)
        wait_until(lambda: 3 not in gateway.describe_cluster().brokers, "broker 3 to be gone", 30)

        policy = Policy(5_000_000, metadata_grace_s=1)
        step = advance(plan, ledger, gateway, policy)
        assert step.admitted == [TopicPartition(topic, 1)]
        seen = observe(gateway, plan.moves, utc_now())
        dead = replica_statuses(plan.moves[:1], seen)[0]
        assert dead.standing is ReplicaStanding.UNKNOWN_BROKER
        assert status_text(dead) == "Unknown broker"
        wait_until(lambda: advance(plan, ledger, gateway, policy).in_flight == 0, "the other move")
        assert ledger.view(plan.plan_id).moves == {
            TopicPartition(topic, 0): MoveState.PENDING,
            TopicPartition(topic, 1): MoveState.DONE,
        }
        held = advance(plan, ledger, gateway, policy)
        assert held.holds == ["1 moves wait: broker 3 is not alive"]
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
        wait_until(lambda: 3 in gateway.describe_cluster().brokers, "broker 3 to be back", 30)
        wait_until(lambda: not sweep(ledger, gateway).owed, "the debt to be paid", 30)
        assert standing(gateway, topic) == before
