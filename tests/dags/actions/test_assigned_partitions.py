"""More partitions on the brokers that a person has chosen, on real brokers."""

from __future__ import annotations

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics
from tests.dags.actions.test_add_partitions import DAG, Rehome, replicas_of


def test_partitions_go_where_a_person_has_put_them_once_the_controller_has_validated_it(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    rehome: Rehome,
) -> None:
    topic = topics.create([[1, 2]])
    lists = [[4, 1], [2, 3]]
    dry = rehome(cluster, dag=DAG, partitions={topic: 3}, assignments={topic: lists}, dry_run=True)
    assert dry.state == "success", dry.log
    assert replicas_of(gateway, topic) == {0: (1, 2)}
    wrong = rehome(cluster, dag=DAG, partitions={topic: 3}, assignments={topic: [[1, 4, 3]]})
    assert wrong.state == wrong.tasks["place"] == "failed"
    assert "2 new partitions, and assignments has 1 list" in wrong.log
    assert "[1, 4, 3] has 3 brokers, and the topic has 2 replicas" in wrong.log
    racks = cluster.racks
    one = next(
        b for b in sorted(racks) if b != 1 and racks[b].split("/")[1] == racks[1].split("/")[1]
    )
    run = rehome(cluster, dag=DAG, partitions={topic: 3}, assignments={topic: [[1, one], [2, 3]]})
    assert run.state == "success", run.log
    assert f"{topic}-1: its replicas, as assignments has them, are not spread over racks" in run.log
    assert replicas_of(gateway, topic) == {0: (1, 2), 1: (1, one), 2: (2, 3)}
