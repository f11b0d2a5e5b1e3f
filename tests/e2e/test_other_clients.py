"""Other clients change in mid-run what a whole Airflow's run has set; theirs stays theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import MoveState
from rehome.execution.observation.words.fate_words import RECREATED
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LISTS,
)
from tests.agreed_configs import agreed_configs
from tests.conftest import Topics
from tests.dags.clusters import name_of, no_throttles, throttles_become, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import DAG, TIMEOUT_S, asked, trigger_planned, wait_for_state
from tests.ledger.small_plans import move
from tests.topic_known import wait_until_gone

MESSAGES, OF_BYTES = 3_000, 10_000
CRAWL = 100_000

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def test_the_throttles_of_a_topic_that_was_created_again_in_mid_move_stay(
    impatient_world: World, mortal: LocalCluster, mortal_gateway: ClusterGateway
) -> None:
    """Its owner throttles the same partitions on the same brokers as the plan did."""
    world, api, ledger = impatient_world, impatient_world.airflow.api, impatient_world.ledger
    topics, gateway = Topics(mortal), mortal_gateway
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, MESSAGES, OF_BYTES)
    no_throttles(gateway, [topic])
    where = name_of(ConfigResource.topic(topic))
    plan_id, parts = f"again-{topic}", [TopicPartition(topic, number) for number in (0, 1)]
    old = gateway.describe_topics([topic])[topic].topic_id
    moves = [move(topic, n, (1, 2), (3, 2), MESSAGES * OF_BYTES) for n in (0, 1)]
    conf = {"reassignment": to(topic, {0: [3, 2], 1: [3, 2]}), "throttle": CRAWL}
    run = trigger_planned(
        world,
        mortal.cluster_id,
        plan_id,
        *(replace(each, topic_id=old) for each in moves),
        **conf,
    )
    wait_for_state(world, run, "progress", {"deferred"})
    ours = throttles_of(gateway, [topic])[where]
    assert set(ours) == {LEADER_REPLICAS, FOLLOWER_REPLICAS}

    topics.admin.delete_topics([topic])[topic].result(120)
    wait_until_gone(mortal, parts)
    topics.create_as(topic, [[1, 2], [1, 2]], config=ours)

    api.wait_for_run(DAG, run, TIMEOUT_S)
    assert set(ledger.view(plan_id).moves.values()) == {MoveState.GONE}
    assert ledger.holder(mortal.cluster_id) is None
    assert not ledger.throttles(plan_id, open_only=True)
    after = throttles_of(gateway, [topic])
    assert after.pop(where) == ours
    assert not any(after.values()), "the rates were the plan's"
    assert {moved.detail for moved in ledger.moves(plan_id).values()} == {RECREATED}
    assert RECREATED in api.page(f"plans/{plan_id}")


def test_a_rate_and_lists_that_their_owner_deletes_in_mid_run_are_not_put_back(
    impatient_world: World, mortal: LocalCluster, mortal_gateway: ClusterGateway
) -> None:
    world, api, ledger = impatient_world, impatient_world.airflow.api, impatient_world.ledger
    topics, gateway = Topics(mortal), mortal_gateway
    topic = topics.create([[1, 2], [2, 1]])
    topics.fill(topic, MESSAGES, OF_BYTES)
    nothing, plan_id = no_throttles(gateway, [topic]), f"deleted-{topic}"
    default, listed = ConfigResource.cluster_default(), ConfigResource.topic(topic)
    foreign = {
        (default, FOLLOWER_RATE): "7654321",
        (default, LEADER_RATE): "7654321",
        (listed, LEADER_REPLICAS): "1:2",
        (listed, FOLLOWER_REPLICAS): "1:4",
    }
    theirs = [ConfigChange(*where, ConfigOperation.SET, foreign[where]) for where in foreign]
    assert not any(gateway.alter_configs(theirs).values())
    planned = move(topic, 0, (1, 2), (3, 2), MESSAGES * OF_BYTES)
    conf = {"reassignment": to(topic, {0: [3, 2]}), "throttle": CRAWL}
    run = trigger_planned(world, mortal.cluster_id, plan_id, planned, **conf)
    wait_for_state(world, run, "progress", {"deferred"})
    gone = [ConfigChange(*where, ConfigOperation.DELETE) for where in foreign]
    assert not any(gateway.alter_configs(gone).values())
    assert gateway.list_reassignments()
    asked(world, plan_id, "cancel")

    assert api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
    throttles_become(gateway, [topic], nothing)
    assert not ledger.throttles(plan_id, open_only=True)
    configs = agreed_configs(gateway, [listed], LISTS)[listed]
    assert isinstance(configs, dict)
    assert {value.source for value in configs.values()} == {"DEFAULT_CONFIG"}, "as they left them"
