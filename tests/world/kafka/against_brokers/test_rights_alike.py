"""Which call needs which right, and what is left out silently: on brokers and on the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from tests.conftest import Topics
from tests.world.kafka.against_brokers.sides import model_of
from world.kafka.acls import AclResource, Binding, Operation

USER = "nobody"
GRANTED: tuple[list[tuple[str, str]], ...] = (
    [],
    [("describe", "cluster"), ("describe", "topic")],
    [("alter", "cluster"), ("alter_configs", "topic")],
    [("alter_configs", "cluster"), ("alter", "topic"), ("create", "topic")],
    [("describe_configs", "cluster"), ("describe_configs", "topic"), ("create", "cluster")],
    [("read", "topic"), ("describe", "cluster"), ("describe_configs", "cluster")],
)
KEY = "leader.replication.throttled.replicas"
RATE = "leader.replication.throttled.rate"


def calls(topic: str, path: str) -> dict[str, Callable[[ClusterPort], Any]]:
    part, here = TopicPartition(topic, 0), ReplicaId(topic, 0, 1)
    places = [
        ConfigResource.topic(topic),
        ConfigResource.broker(1),
        ConfigResource.cluster_default(),
    ]
    changes = [
        ConfigChange(place, key, ConfigOperation.DELETE)
        for place, key in zip(places, (KEY, RATE, RATE), strict=True)
    ]
    return {
        "all topics": lambda port: topic in port.describe_topics(),
        "a topic": lambda port: port.describe_topics([topic], operations=True)[topic].error,
        "what may be done to it": lambda port: sorted(
            port.describe_topics([topic], operations=True)[topic].operations or ()
        ),
        "a topic that is not there": lambda port: port.describe_topics(["none"])["none"].error,
        "what may be done to the cluster": lambda port: sorted(
            port.describe_cluster().operations or ()
        ),
        "log dirs": lambda port: any(
            part in one.replicas for one in port.describe_log_dirs().value
        ),
        "some log dirs": lambda port: port.describe_log_dirs([1]).missing.get(1),
        "reassignments": lambda port: part in port.list_reassignments(),
        "current topics": lambda port: topic in port.current_topics(None),
        "cancel": lambda port: port.alter_reassignments({part: None})[part],
        "offsets": lambda port: port.log_end_offsets([here]).value[here],
        "high watermarks": lambda port: port.high_watermarks({part: 1}).value[part],
        "configs": lambda port: [
            found if isinstance(found, BrokerError) else True
            for found in port.describe_configs(places).values()
        ],
        "alter configs": lambda port: list(
            port.alter_configs(changes, validate_only=True).values()
        ),
        "move between log dirs": lambda port: port.alter_replica_log_dirs({here: path})[here],
        "elect": lambda port: port.elect_preferred_leaders([part])[part],
        "more partitions": lambda port: port.create_partitions({topic: 2}, validate_only=True)[
            topic
        ],
        "a new topic": lambda port: port.create_topics({"new": [[1]]}, {}, validate_only=True)[
            "new"
        ],
        # Other tests have left groups on the brokers.
        "groups": lambda port: sorted(port.consumer_groups().missing),
    }


def answer(ask: Callable[[ClusterPort], Any], port: ClusterPort) -> Any:
    try:
        found = ask(port)
    except ClusterError as error:
        return type(error).__name__, error.error and error.error.code
    several = found if isinstance(found, list) else [found]
    return [one.code if isinstance(one, BrokerError) else one for one in several]


def test_rights_are_needed_alike(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
) -> None:
    topic = secured_topics.create([[1, 2]])
    side = model_of(secured_cluster, 1)
    side.model.world.secured = True
    assert side.model.actions.create_topic(topic, [[1, 2]]) is None
    side.settle()
    modelled = side.model.port(f"User:{USER}")
    connection = Connection.from_settings(secured_cluster.client_settings(USER))
    for granted in GRANTED:
        bindings = [
            Binding(f"User:{USER}", Operation[operation.upper()], AclResource(resource))
            for operation, resource in granted
        ]
        side.model.actions.allow(bindings)
        side.settle()
        secured_cluster.allow_all(USER, granted)
        try:
            with ClusterGateway(connection) as real:
                for what, ask in calls(topic, side.log_dir(1, 0)).items():
                    assert answer(ask, modelled) == answer(ask, real), (what, granted)
        finally:
            secured_cluster.revoke_all(USER, granted)
            side.model.actions.revoke(bindings)
