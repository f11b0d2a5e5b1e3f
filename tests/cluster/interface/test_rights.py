"""The error that a principal without a right gets, on brokers with Kafka's own authorizer.

Each test of a silent failure takes a right away and shows that the gateway speaks up.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import MissingRightError
from rehome.cluster.interface.rights import Role, hidden_topics, missing_rights
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from tests.conftest import Topics
from tests.rights import (
    PLANNER,
    REASSIGNER,
    UNTHROTTLED,
    Right,
    documented_commands,
    granted,
    named,
)
from tests.versions.since import class_of_tool

RATE = "follower.replication.throttled.rate"
REPLICAS = "follower.replication.throttled.replicas"
GatewayOf = Callable[[str], ClusterGateway]


def refused(right: str, call: Callable[[], object]) -> None:
    """The call raises, names the right, and shows nothing of the broker's inside."""
    with pytest.raises(MissingRightError) as raised:
        call()
    assert raised.value.right == right
    text = str(raised.value)
    assert right in text
    assert "CLUSTER_AUTHORIZATION_FAILED (31)" in text
    assert "Request(" not in text
    assert "RequestContext" not in text


def refused_with(verdict: object, code: int, right: str) -> None:
    assert isinstance(verdict, BrokerError), verdict
    assert verdict.code == code
    assert verdict.message == f"needs the right {right}"


def test_log_dirs_without_the_right_are_an_error_not_empty(gateway_of: GatewayOf) -> None:
    refused("Cluster Describe", gateway_of("nobody").describe_log_dirs)


def test_reassignments_cannot_be_listed_without_the_right(gateway_of: GatewayOf) -> None:
    refused("Cluster Describe", gateway_of("nobody").list_reassignments)


@pytest.mark.parametrize("all_topics", [False, True])
def test_no_broker_is_said_to_be_up_to_date_without_the_right_to_ask_the_controller(
    all_topics: bool,
    gateway_of: GatewayOf,
    secured_cluster: LocalCluster,
    secured_topics: Topics,
) -> None:
    """Brokers show the topics; which of them is up to date is not known."""
    names = None if all_topics else [secured_topics.create([[1, 2]])]
    with granted(secured_cluster, "nobody", ("describe", "topic")):
        refused("Cluster Describe", lambda: gateway_of("nobody").current_topics(names))


def test_reassignments_cannot_be_altered_without_the_right(
    gateway_of: GatewayOf, secured_topics: Topics
) -> None:
    part = TopicPartition(secured_topics.create([[1, 2]]), 0)
    refused("Cluster Alter", lambda: gateway_of("nobody").alter_reassignments({part: [2, 1]}))
    topics = gateway_of("admin").describe_topics([part.topic])
    assert topics[part.topic].partitions[0].replicas == (1, 2)


def test_leaders_cannot_be_elected_without_the_right(
    gateway_of: GatewayOf, secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    part = TopicPartition(secured_topics.create([[1, 2]]), 0)
    with granted(secured_cluster, "nobody", ("describe", "topic")):
        refused("Cluster Alter", lambda: gateway_of("nobody").elect_preferred_leaders([part]))


def test_a_topics_configs_name_the_missing_right(
    gateway_of: GatewayOf, secured_topics: Topics
) -> None:
    name = secured_topics.create([[1, 2]])
    topic = ConfigResource.topic(name)
    gateway = gateway_of("nobody")
    refused_with(gateway.describe_configs([topic])[topic], 29, f"Topic DescribeConfigs on {name}")
    change = ConfigChange(topic, REPLICAS, ConfigOperation.APPEND, "0:1")
    for validate_only in (True, False):
        verdict = gateway.alter_configs([change], validate_only=validate_only)[topic]
        refused_with(verdict, 29, f"Topic AlterConfigs on {name}")


@pytest.mark.parametrize("resource", [ConfigResource.broker(2), ConfigResource.cluster_default()])
def test_brokers_configs_name_the_missing_right(
    gateway_of: GatewayOf, resource: ConfigResource
) -> None:
    gateway = gateway_of("nobody")
    refused_with(gateway.describe_configs([resource])[resource], 31, "Cluster DescribeConfigs")
    change = ConfigChange(resource, RATE, ConfigOperation.SET, "1000000")
    for validate_only in (True, False):
        verdict = gateway.alter_configs([change], validate_only=validate_only)[resource]
        refused_with(verdict, 31, "Cluster AlterConfigs")


def test_one_refused_resource_is_reported_though_the_rest_of_the_call_succeeds(
    gateway_of: GatewayOf, secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    name = secured_topics.create([[1, 2]])
    topic, broker = ConfigResource.topic(name), ConfigResource.broker(1)
    changes = [
        ConfigChange(topic, REPLICAS, ConfigOperation.SET, "0:1"),
        ConfigChange(broker, RATE, ConfigOperation.SET, "1000000"),
    ]
    with granted(secured_cluster, "nobody", ("alter_configs", "topic")):
        verdicts = gateway_of("nobody").alter_configs(changes)
    assert verdicts[topic] is None
    refused_with(verdicts[broker], 31, "Cluster AlterConfigs")


def test_offsets_log_dir_moves_and_new_partitions_name_the_missing_right(
    gateway_of: GatewayOf, secured_topics: Topics
) -> None:
    topic = secured_topics.create([[1, 2]])
    replica = ReplicaId(topic, 0, 1)
    gateway = gateway_of("nobody")
    refused_with(
        gateway.log_end_offsets([replica]).value[replica], 29, f"Topic Describe on {topic}"
    )
    partition = replica.topic_partition
    refused_with(
        gateway.high_watermarks({partition: 1}).value[partition], 29, f"Topic Describe on {topic}"
    )
    refused_with(gateway.alter_replica_log_dirs({replica: "/x"})[replica], 31, "Cluster Alter")
    refused_with(gateway.create_partitions({topic: 2})[topic], 29, f"Topic Alter on {topic}")


def test_a_named_topic_that_may_not_be_seen_carries_the_error(
    gateway_of: GatewayOf, secured_topics: Topics
) -> None:
    topic = secured_topics.create([[1, 2]])
    found = gateway_of("nobody").describe_topics([topic])[topic]
    refused_with(found.error, 29, f"Topic Describe on {topic}")
    assert not found.partitions


def test_a_topic_hidden_from_metadata_is_found_on_the_log_dirs(
    gateway_of: GatewayOf, secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    seen, hidden = secured_topics.create([[1, 2]]), secured_topics.create([[3, 4]])
    gateway = gateway_of("nobody")
    secured_cluster.allow("nobody", "describe", "topic", seen)
    try:
        with granted(secured_cluster, "nobody", ("describe", "cluster")):
            log_dirs = gateway.describe_log_dirs().value
            topics = gateway.describe_topics()
            assert seen in topics
            assert hidden not in topics
            assert hidden in hidden_topics(log_dirs, topics)
            assert seen not in hidden_topics(log_dirs, topics)
    finally:
        secured_cluster.revoke("nobody", "describe", "topic", seen)


def test_an_unseen_topic_could_be_moved_but_not_throttled_and_the_check_says_so(
    gateway_of: GatewayOf, secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    name = secured_topics.create([[1, 2]])
    gateway = gateway_of("nobody")
    rights = ("alter", "cluster"), ("alter_configs", "cluster")
    with granted(secured_cluster, "nobody", *rights):
        assert missing_rights(gateway, [name], Role.REASSIGNER) == [f"Topic Describe on {name}"]
        change = ConfigChange(ConfigResource.topic(name), REPLICAS, ConfigOperation.SET, "0:1")
        refused_with(
            gateway.alter_configs([change], validate_only=True)[change.resource],
            29,
            f"Topic AlterConfigs on {name}",
        )
        with granted(secured_cluster, "nobody", ("describe", "topic")):
            assert missing_rights(gateway, [name], Role.REASSIGNER) == [
                f"Topic AlterConfigs on {name}"
            ]


@pytest.mark.parametrize(
    ("role", "rights", "implied"),
    [
        (Role.REASSIGNER, REASSIGNER, ()),
        (Role.PLANNER, PLANNER, ()),
        (Role.UNTHROTTLED, UNTHROTTLED, ()),
        (Role.ADD_PARTITIONS, (*PLANNER, ("alter", "topic")), (("describe", "topic"),)),
    ],
)
def test_each_right_of_a_role_is_missed_when_it_is_taken_away(
    gateway_of: GatewayOf,
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    role: Role,
    rights: tuple[Right, ...],
    implied: tuple[Right, ...],
) -> None:
    topic = secured_topics.create([[1, 2]])
    gateway = gateway_of("nobody")
    with granted(secured_cluster, "nobody", *rights):
        assert missing_rights(gateway, [topic], role) == []
        for right in sorted(set(rights) - set(implied)):
            secured_cluster.revoke("nobody", *right)
            lacking = missing_rights(gateway, [topic], role)
            secured_cluster.allow("nobody", *right)
            assert lacking == [named(right, topic)]


def test_no_one_lacks_every_cluster_right_and_an_unknown_topic_is_no_right(
    gateway_of: GatewayOf, secured_cluster: LocalCluster
) -> None:
    gateway = gateway_of("nobody")
    with granted(secured_cluster, "nobody", ("describe", "topic")):
        assert missing_rights(gateway, ["no-such-topic"], Role.REASSIGNER) == [
            "Cluster Alter",
            "Cluster AlterConfigs",
        ]


def test_the_reassigners_rights_are_enough_for_every_call_of_the_main_job(
    gateway_of: GatewayOf, secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    topic = secured_topics.create([[1, 2]])
    part, resource = TopicPartition(topic, 0), ConfigResource.topic(topic)
    gateway = gateway_of("nobody")
    with granted(secured_cluster, "nobody", *REASSIGNER):
        assert gateway.describe_topics([topic])[topic].error is None
        assert not gateway.describe_log_dirs().missing
        assert gateway.log_end_offsets([ReplicaId(topic, 0, 1)]).value == {
            ReplicaId(topic, 0, 1): 0
        }
        resources = [resource, ConfigResource.broker(1), ConfigResource.cluster_default()]
        configs = gateway.describe_configs(resources, [RATE, REPLICAS])
        assert not [found for found in configs.values() if isinstance(found, BrokerError)]
        changes = [
            ConfigChange(resource, REPLICAS, ConfigOperation.SET, "0:1"),
            ConfigChange(ConfigResource.cluster_default(), RATE, ConfigOperation.DELETE),
            ConfigChange(ConfigResource.broker(1), RATE, ConfigOperation.DELETE),
        ]
        assert not any(gateway.alter_configs(changes).values())
        assert gateway.alter_reassignments({part: [2, 3]}) == {part: None}
        wait_until(lambda: not gateway.list_reassignments(), "the end of the reassignment")
        assert gateway.elect_preferred_leaders([part]) == {part: None}


def test_the_planners_rights_are_enough_to_read_and_for_nothing_else(
    gateway_of: GatewayOf, secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    topic = secured_topics.create([[1, 2]])
    gateway = gateway_of("nobody")
    with granted(secured_cluster, "nobody", *PLANNER):
        assert gateway.describe_topics([topic])[topic].error is None
        log_dirs = gateway.describe_log_dirs()
        assert not log_dirs.missing
        assert not hidden_topics(log_dirs.value, gateway.describe_topics())
        assert gateway.list_reassignments() == {}
        resources = [ConfigResource.topic(topic), ConfigResource.cluster_default()]
        configs = gateway.describe_configs(resources, [REPLICAS])
        assert not [found for found in configs.values() if isinstance(found, BrokerError)]
        part = TopicPartition(topic, 0)
        refused("Cluster Alter", lambda: gateway.alter_reassignments({part: [2, 1]}))


@pytest.mark.parametrize(
    ("principal", "role", "rights"),
    [
        ("rehome", Role.REASSIGNER, REASSIGNER),
        ("rehome-unthrottled", Role.UNTHROTTLED, UNTHROTTLED),
        ("rehome-planner", Role.PLANNER, PLANNER),
    ],
)
def test_the_documented_commands_give_a_role_its_rights(
    gateway_of: GatewayOf,
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    principal: str,
    role: Role,
    rights: tuple[Right, ...],
) -> None:
    topic = secured_topics.create([[1, 2]])
    commands = documented_commands(principal)
    assert len(commands) == 2
    gateway = gateway_of("nobody")
    assert missing_rights(gateway, [topic], role)
    with ExitStack() as undo:
        for command in commands:
            arguments = ["User:nobody" if word == f"User:{principal}" else word for word in command]
            done = secured_cluster.run_tool(class_of_tool("AclCommand"), *arguments)
            assert done.returncode == 0, done.stderr
        for right in rights:
            undo.callback(secured_cluster.revoke, "nobody", *right)
        wait_until(lambda: not missing_rights(gateway, [topic], role), "the documented rights")
