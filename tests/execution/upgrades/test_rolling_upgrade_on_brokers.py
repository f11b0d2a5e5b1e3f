"""A plan that runs while its cluster is upgraded: node after node, then metadata.version."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from local.kafka.cluster import CONTROLLER_ID, LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.actions import SetRate
from rehome.execution.advance import advance
from rehome.execution.completion.verify import verify
from rehome.execution.throttle.keys import LEADER_RATE
from rehome.execution.throttle.set_up import change_rate, clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.dags.clusters import no_throttles, throttles_of
from tests.execution.driven import FAST, run
from tests.execution.upgrades.other_kafkas import bring
from tests.ledger.small_plans import move

RATE = 150_000
MESSAGES = 6_000  # of 1 kB, in each of two partitions: at RATE they take 80 s
FEATURES = "org.apache.kafka.tools.FeatureCommand"
pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("before", "level", "after", "newest", "by_broker"),
    [
        ("4.3.1", "4.3-IV0", "4.4.0", 33, False),
        ("3.9.2", "3.8-IV0", "4.4.0", 33, True),  # rates by broker, which stay so until it ends
    ],
)
def test_a_plan_outlives_a_rolling_upgrade_and_leaves_nothing(
    before: str,
    level: str,
    after: str,
    newest: int,
    by_broker: bool,
    private_cluster: Callable[..., LocalCluster],
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    cluster = private_cluster(brokers=3, version=bring(before), release_version=level)
    topics = Topics(cluster)
    topic = topics.create([[1, 2], [2, 1]])
    topics.fill(topic, MESSAGES)
    plan = approved(
        move(topic, 0, (1, 2), (3, 2), MESSAGES * 1000),
        move(topic, 1, (2, 1), (3, 1), MESSAGES * 1000),
        cluster_id=cluster.cluster_id,
    )
    policy = Policy(RATE, metadata_grace_s=2)
    with impatient_gateway(cluster) as gateway, ThreadPoolExecutor(1) as operator:
        assert gateway.finalized_features()["metadata.version"] < newest
        set_up_throttle(plan, ledger, gateway, RATE)
        ours = throttles_of(gateway, [topic])
        assert bool(ours["broker 1"].get(LEADER_RATE)) is by_broker
        assert len(advance(plan, ledger, gateway, policy).admitted) == 2

        def poll() -> None:
            """As a worker does: a broker that does not answer makes it try again."""
            with suppress(ClusterError):
                assert advance(plan, ledger, gateway, policy).finished is None

        for node in (CONTROLLER_ID, *cluster.broker_ids):
            upgrading = operator.submit(cluster.upgrade, node, bring(after))
            while not upgrading.done():
                poll()
            upgrading.result()
            topics.fill(topic, 10)
        able = gateway.supported_versions(cluster.broker_ids).value
        assert {each.features["metadata.version"] for each in able.values()} == {newest}
        raised = cluster.run_tool(
            FEATURES, "upgrade", "--release-version", ".".join(after.split(".")[:2]), version=after
        )
        assert raised.returncode == 0, raised.stdout + raised.stderr
        wait_until(
            lambda: gateway.finalized_features()["metadata.version"] == newest, "the new level"
        )
        poll()
        assert gateway.list_reassignments(), "all of it was in mid-plan"
        assert throttles_of(gateway, [topic]) == ours
        change_rate(plan, ledger, gateway, SetRate(FAST.rate_bytes_per_s, "the upgrade is over"))
        assert run(plan, ledger, gateway, FAST).finished is PlanState.DONE
        verified = verify(plan, gateway)
        assert verified.ok, verified
        assert not verified.findings
        clear_throttle(plan.plan_id, ledger, gateway)
        no_throttles(gateway, [topic])
        wanted = {TopicPartition(topic, 0): (3, 2), TopicPartition(topic, 1): (3, 1)}
        states = gateway.describe_topics([topic])[topic].partitions
        assert {TopicPartition(topic, n): s.replicas for n, s in states.items()} == wanted
        replicas = [ReplicaId(*part, broker) for part, held in wanted.items() for broker in held]
        wait_until(
            lambda: (
                gateway.log_end_offsets(replicas).value
                == dict.fromkeys(replicas, MESSAGES + 10 * 4)
            ),
            "every message on every replica",
        )
