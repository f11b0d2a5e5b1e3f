"""New partitions and topics with exactly the documented rights, and without the one to alter."""

from __future__ import annotations

from collections.abc import Callable

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics
from tests.dags.clusters import whole_state
from tests.dags.runs import Run
from tests.rights import PARTITION_ADDER, PLANNER, granted

USER = "reassigner"
DAG = "add_partitions"
MADE = {"partitions": 2, "replication_factor": 2}


def test_partitions_and_topics_are_added_with_the_documented_rights(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    rehome: Callable[..., Run],
) -> None:
    topic = secured_topics.create([[1, 2]])
    new = f"{topic}-new"
    asked = {"dag": DAG, "partitions": {topic: 2}, "new_topics": {new: MADE}}
    with granted(secured_cluster, USER, *PARTITION_ADDER):
        run = rehome(secured_cluster.client_settings(USER), **asked)
    assert run.state == "success", run.log
    found = admin.describe_topics([topic, new])
    assert {name: len(each.partitions) for name, each in found.items()} == {topic: 2, new: 2}


def test_partitions_are_added_with_what_a_planner_may_and_alter_on_the_topic(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    rehome: Callable[..., Run],
) -> None:
    topic = secured_topics.create([[1, 2]])
    asked = {"dag": DAG, "partitions": {topic: 2}}
    before = whole_state(admin)
    with granted(secured_cluster, USER, *PLANNER):
        refused = rehome(secured_cluster.client_settings(USER), **asked)
    assert refused.state == refused.tasks["dry_run"] == "failed"
    assert f"Topic Alter on {topic}: the connection's principal lacks this right" in refused.log
    assert whole_state(admin) == before
    with granted(secured_cluster, USER, *PLANNER, ("alter", "topic")):
        run = rehome(secured_cluster.client_settings(USER), **asked)
    assert run.state == "success", run.log
    assert len(admin.describe_topics([topic])[topic].partitions) == 2
