"""New partitions and topics with exactly the documented rights, and with each of them missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics
from tests.dags.clusters import whole_state
from tests.dags.runs import Run
from tests.rights import PARTITION_ADDER, PLANNER, Right, granted, named

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


def missing_right(lacking: Right, topic: str, new: str) -> str:
    """What a refusal names. A topic without Alter is hidden, for Alter implies Describe; configs
    are read of all topics, and those that cannot be read are named; Create may be had on the topic
    as well.
    """
    match lacking:
        case ("alter", "topic"):
            return named(("describe", "topic"), topic)
        case ("describe_configs", "topic"):
            return named(lacking, "")  # of any topic
        case ("create", "cluster"):
            return f"Cluster or Topic Create on {new}"
        case _:
            return named(lacking, topic)


@pytest.mark.parametrize("lacking", PARTITION_ADDER, ids="-".join)
def test_without_one_of_the_documented_rights_the_run_names_it_and_nothing_is_added(
    lacking: Right,
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    rehome: Callable[..., Run],
) -> None:
    topic = secured_topics.create([[1, 2]])
    new = f"{topic}-new"
    asked: dict[str, Any] = {"dag": DAG, "partitions": {topic: 2}, "new_topics": {new: MADE}}
    before = whole_state(admin)
    left = [right for right in PARTITION_ADDER if right != lacking]
    with granted(secured_cluster, USER, *left):
        run = rehome(secured_cluster.client_settings(USER), **asked)
    assert run.state == "failed", run.log
    assert missing_right(lacking, topic, new) in run.log
    assert whole_state(admin) == before
