"""Moves between log dirs on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from include.cluster.gateway import ClusterGateway
from include.cluster.model import ReplicaId, TopicPartition
from include.execution.model import PlanState
from include.ledger.store import Ledger
from include.planning.plan import Plan
from local.kafka_cluster import LocalCluster
from tests.execution.driven import replicas_of, run
from tests.ledger.small_plans import move

MakePlan = Callable[..., Plan]


def test_replicas_move_between_log_dirs_and_land_in_the_dirs_that_are_wanted(
    cluster: LocalCluster, gateway: ClusterGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 500)
    partitions = [TopicPartition(topic, number) for number in range(2)]

    def dirs() -> dict[ReplicaId, str]:
        return {
            ReplicaId(*partition, log_dir.broker): log_dir.path
            for log_dir in gateway.describe_log_dirs(partitions=partitions).value
            for partition, replica in log_dir.replicas.items()
            if not replica.is_future
        }

    here = dirs()[ReplicaId(topic, 0, 1)]
    (there,) = (str(path) for path in cluster.log_dirs(1) if str(path) != here)
    wanted = str(cluster.log_dirs(4)[1])
    plan = approved(
        move(topic, 0, (1, 2), (1, 2), 500_000, (here, "any"), (there, "any")),
        move(topic, 1, (1, 2), (4, 2), 500_000, ("any", "any"), (wanted, "any")),
    )
    end = run(plan, ledger, gateway)
    assert end.finished is PlanState.DONE
    assert dirs()[ReplicaId(topic, 0, 1)] == there
    assert dirs()[ReplicaId(topic, 1, 4)] == wanted
    assert end.progress is not None
    assert end.progress.sample.bytes_done == end.progress.sample.bytes_total


def test_a_log_dir_that_does_not_exist_fails_the_move_before_anything_moves(
    gateway: ClusterGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (4, 2), 0, ("any", "any"), ("/nowhere", "any")))
    assert run(plan, ledger, gateway).finished is PlanState.FAILED
    detail = ledger.moves(plan.plan_id)[TopicPartition(topic, 0)].detail
    assert detail == "LOG_DIR_NOT_FOUND (57): log dir /nowhere on broker 4"
    assert replicas_of(gateway, topic) == (1, 2)
