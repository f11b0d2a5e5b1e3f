"""The whole flow by dag.test() on real brokers."""

from __future__ import annotations

from collections.abc import Callable

from include.cluster.gateway import ClusterGateway
from include.execution.model import PlanState
from include.ledger.store import Ledger
from local.kafka_cluster import LocalCluster
from tests.conftest import Topics
from tests.dags.runs import Run


def test_a_requested_reassignment_is_carried_out_from_end_to_end(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> None:
    topic = topics.create([[1, 2], [2, 3]])
    topics.fill(topic, 200)
    wanted = {
        "version": 1,
        "partitions": [{"topic": topic, "partition": 0, "replicas": [3, 2]}],
    }
    run = rehome(cluster, action="reassign", reassignment=wanted, throttle=10_000_000)
    assert run.state == "success", run.log
    assert gateway.describe_topics([topic])[topic].partitions[0].replicas == (3, 2)
    (plan,) = ledger.plans()
    assert plan.state is PlanState.DONE
    assert not ledger.throttles(open_only=True)
