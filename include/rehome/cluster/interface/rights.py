"""Rights: what each call needs, the least that each role needs, and what a principal lacks.

Kafka's ACL rules as brokers apply them (StandardAuthorizer; KafkaApis names the operation of
each request). Alter implies Describe, and AlterConfigs implies DescribeConfigs.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeVar

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, LogDir

T = TypeVar("T")

LACKING = "the connection's principal lacks this right"
GRANT = "Grant it to that principal (docs/security.md), then trigger a new run."
"""What a finding says of a right, and what to do about it."""


class Call(enum.Enum):
    """Calls with the right they need. ``{}`` is replaced by Topic or Cluster, by the resource."""

    DESCRIBE_CLUSTER = ("DescribeCluster", "")
    API_VERSIONS = ("ApiVersions", "")
    DESCRIBE_LOG_DIRS = ("DescribeLogDirs", "Cluster Describe")
    LIST_REASSIGNMENTS = ("ListPartitionReassignments", "Cluster Describe")
    DESCRIBE_QUORUM = ("DescribeQuorum", "Cluster Describe")
    ALTER_REASSIGNMENTS = ("AlterPartitionReassignments", "Cluster Alter")
    ALTER_REPLICA_LOG_DIRS = ("AlterReplicaLogDirs", "Cluster Alter")
    ELECT_LEADERS = ("ElectLeaders", "Cluster Alter")
    DESCRIBE_TOPICS = ("Metadata", "Topic Describe")
    LIST_OFFSETS = ("ListOffsets", "Topic Describe")
    DESCRIBE_CONFIGS = ("DescribeConfigs", "{} DescribeConfigs")
    ALTER_CONFIGS = ("IncrementalAlterConfigs", "{} AlterConfigs")
    CREATE_PARTITIONS = ("CreatePartitions", "Topic Alter")
    CREATE_TOPICS = ("CreateTopics", "Cluster or Topic Create")
    LIST_GROUPS = ("ListGroups", "Cluster Describe")
    OFFSET_FETCH = ("OffsetFetch", "Group Describe")

    @property
    def api(self) -> str:
        """Name of the request in Kafka's protocol."""
        return self.value[0]

    @property
    def right(self) -> str:
        """The right it needs: "Cluster Alter"."""
        return self.value[1]


class Role(enum.Enum):
    """What a principal is meant to do with Rehome."""

    PLANNER = "planner"  # snapshots, plans and dry runs; changes nothing
    REASSIGNER = "reassigner"  # the whole main job
    UNTHROTTLED = "unthrottled"  # the main job without throttles: no configuration is changed
    ADD_PARTITIONS = "add_partitions"  # new partitions, and nothing else


_CLUSTER = {
    Role.PLANNER: ("DESCRIBE", "DESCRIBE_CONFIGS"),
    Role.REASSIGNER: ("ALTER", "ALTER_CONFIGS"),
    Role.UNTHROTTLED: ("ALTER", "DESCRIBE_CONFIGS"),
    Role.ADD_PARTITIONS: ("DESCRIBE", "DESCRIBE_CONFIGS"),
}
_TOPIC = {
    Role.PLANNER: ("DESCRIBE", "DESCRIBE_CONFIGS"),
    Role.REASSIGNER: ("DESCRIBE", "ALTER_CONFIGS"),
    Role.UNTHROTTLED: ("DESCRIBE", "DESCRIBE_CONFIGS"),
    Role.ADD_PARTITIONS: ("DESCRIBE", "DESCRIBE_CONFIGS", "ALTER"),
}
# An operation granted implies these (AclAuthorizer and StandardAuthorizer, KIP-11).
_IMPLIES = {
    "ALL": ("ALTER", "ALTER_CONFIGS", "DESCRIBE", "DESCRIBE_CONFIGS"),
    "ALTER": ("DESCRIBE",),
    "DELETE": ("DESCRIBE",),
    "READ": ("DESCRIBE",),
    "WRITE": ("DESCRIBE",),
    "ALTER_CONFIGS": ("DESCRIBE_CONFIGS",),
}
_NOT_AUTHORIZED = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
_TRIAL = ConfigChange(
    ConfigResource.cluster_default(), "leader.replication.throttled.rate", ConfigOperation.DELETE
)


def missing_rights(cluster: ClusterPort, topics: Collection[str], role: Role) -> list[str]:
    """Rights that the connection's principal lacks for a role; empty when it has them all.

    Asks the brokers what they would allow (KIP-430) and changes nothing. Each entry reads like
    an ACL, cluster first: "Cluster Alter", "Topic AlterConfigs on payments". A topic that
    does not exist is not reported, unless a missing right hides it.
    """
    lacking = [
        f"Cluster {readable(operation)}"
        for operation in _lacking(_CLUSTER[role], _cluster_operations(cluster))
    ]
    topics_by_name = cluster.describe_topics(topics, operations=True) if topics else {}
    for name in sorted(topics_by_name):
        topic = topics_by_name[name]
        if topic.error is not None:
            if topic.error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                lacking.append(f"Topic Describe on {name}")
            continue
        lacking += [
            f"Topic {readable(operation)} on {name}"
            for operation in _lacking(_TOPIC[role], topic.operations)
        ]
    return lacking


def rights_to_start(cluster: ClusterPort, role: Role) -> list[str]:
    """Rights that the principal lacks for a role's first step, a snapshot of everything.

    The cluster's are the role's own, so that a want of them shows before anything is read. Of the
    topics' those that reading needs, under the name that the role has for them: who reassigns is
    granted Topic AlterConfigs, which implies DescribeConfigs. Topics that are hidden altogether
    only show in the log dirs (:func:`hidden_topics`).
    """
    topics_by_name = cluster.describe_topics(operations=True)
    unreadable = [
        name
        for name, topic in sorted(topics_by_name.items())
        if topic.error is None and _lacking(_TOPIC[Role.PLANNER], topic.operations)
    ]
    return missing_rights(cluster, unreadable, role)


def hidden_topics(log_dirs: Iterable[LogDir], topics: Collection[str]) -> tuple[str, ...]:
    """Topics that brokers hold replicas of, but metadata does not show to this principal.

    DescribeLogDirs lists every topic to a principal with Cluster Describe, metadata only those with
    Topic Describe: the difference is what a plan would be blind to.

    :param log_dirs: of all replicas, not of a selection.
    :param topics: every topic in metadata, read *after* the log dirs or a new one seems hidden.
    """
    on_disk = {partition.topic for directory in log_dirs for partition in directory.replicas}
    return tuple(sorted(on_disk.difference(topics)))


def naming_right(answer: T, call: Call, name: str | None = None) -> T | BrokerError:
    """``answer``, with a refusal that names the missing right.

    The brokers' own messages do not: one says nothing, another prints the request's internals.

    :param name: the topic's or the group's; None where the right is one on the cluster.
    """
    if not isinstance(answer, BrokerError) or answer.code not in _NOT_AUTHORIZED:
        return answer
    right = call.right.format("Cluster" if name is None else "Topic")
    where = f" on {name}" if name is not None else ""
    return replace(answer, message=f"needs the right {right}{where}")


def readable(operation: str) -> str:
    """An operation as kafka-acls spells it: ALTER_CONFIGS → AlterConfigs."""
    return "".join(word.capitalize() for word in operation.split("_"))


def _cluster_operations(cluster: ClusterPort) -> frozenset[str] | None:
    """What the principal may do to the cluster.

    Without Describe the brokers return no rights at all (KafkaApis): its rights on configs are then
    tried out, the one to change them by validating only, so that no right that it has is missed.
    """
    allowed = cluster.describe_cluster().operations
    if allowed is None or allowed:
        return allowed
    default = _TRIAL.resource
    tried = {
        "DESCRIBE_CONFIGS": cluster.describe_configs([default], [_TRIAL.key])[default],
        "ALTER_CONFIGS": cluster.alter_configs([_TRIAL], validate_only=True)[default],
    }
    return frozenset(
        operation
        for operation, answer in tried.items()
        if not isinstance(answer, BrokerError)
        or answer.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )


def _lacking(needed: Iterable[str], allowed: frozenset[str] | None) -> list[str]:
    # Brokers before 2.3 cannot say, so the calls themselves show it.
    if allowed is None:
        return []
    implied = {also for operation in allowed for also in _IMPLIES.get(operation, ())}
    return [operation for operation in needed if operation not in allowed | implied]
