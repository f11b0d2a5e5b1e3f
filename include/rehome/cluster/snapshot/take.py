"""Reads a cluster into a snapshot: one fresh read; a dead broker is a row with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.cluster.interface.rights import hidden_topics
from rehome.cluster.snapshot import columns as tables
from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.clock import monotonic_s
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    ConfigValue,
    LogDir,
    TopicDescription,
)
from rehome.domain.text import first_names

NOT_ALIVE = ErrorCode.BROKER_NOT_AVAILABLE.error("not in a fresh metadata answer")

_NAMED = 100
"""Topics that an error names for each of its causes."""


def take_snapshot(cluster: ClusterPort, now: datetime) -> Snapshot:
    """One fresh read of everything a plan needs.

    A broker that does not answer is a row with ``answered = false`` and the reason; its replicas
    have no size. A topic that lies on a log dir but is not in the metadata is hidden from this
    principal: a row with ``visible = false``.

    :param now: when reading begins, aware, UTC.
    :raises ClusterError: when the cluster cannot be reached or a right is missing.
    """
    started = monotonic_s()
    description = cluster.describe_cluster()
    topics = cluster.describe_topics()
    log_dirs = cluster.describe_log_dirs()
    ongoing = cluster.list_reassignments()
    configs = _topic_configs(cluster, topics)
    rates = _broker_configs(cluster, description.brokers.keys() - log_dirs.missing.keys())
    replicas = tables.replica_ids(topics)
    ends = cluster.log_end_offsets(replicas)
    starts = cluster.log_start_offsets(tables.leader_ids(topics))
    groups = cluster.consumer_groups()
    hidden = _hidden_topics(cluster, log_dirs.value, topics)
    gone = {replica.broker for replica in replicas} - description.brokers.keys()
    silent: dict[BrokerId, BrokerError] = {
        **dict.fromkeys(gone, NOT_ALIVE),
        **starts.missing,
        **ends.missing,
        **log_dirs.missing,
    }
    return Snapshot(
        cluster_id=description.cluster_id,
        taken_at=now,
        duration_s=round(monotonic_s() - started, 3),
        brokers=tables.brokers_table(description.brokers, silent, rates),
        log_dirs=tables.log_dirs_table(log_dirs.value, topics),
        topics=tables.topics_table(topics, configs, hidden),
        replicas=tables.replicas_table(
            replicas, topics, ongoing, log_dirs.value, ends.value, starts.value
        ),
        groups=tables.groups_table(groups),
        group_offsets=tables.group_offsets_table(groups.value),
        hidden_topics=hidden,
    )


def _hidden_topics(
    cluster: ClusterPort, log_dirs: Collection[LogDir], topics: Collection[str]
) -> tuple[str, ...]:
    """Topics this principal may not see. Asked by name, so that one which was created or deleted
    while we were reading is not taken for one.
    """
    unseen = hidden_topics(log_dirs, topics)
    topics_by_name = cluster.describe_topics(unseen)
    errors = {name: topics_by_name[name].error for name in unseen if name in topics_by_name}
    return tuple(
        name
        for name, error in errors.items()
        if error and error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )


def _broker_configs(
    cluster: ClusterPort, brokers: Collection[BrokerId]
) -> dict[BrokerId, Mapping[str, ConfigValue] | BrokerError]:
    """Rates of throttles: shown, never planned by, so that a refusal is only recorded."""
    of = {ConfigResource.broker(broker): broker for broker in sorted(brokers)}
    described = cluster.describe_configs(list(of), tuple(tables.RATE_COLUMNS.values()))
    return {of[resource]: configs for resource, configs in described.items()}


def _topic_configs(
    cluster: ClusterPort, topics: Mapping[str, TopicDescription]
) -> dict[str, Mapping[str, ConfigValue]]:
    resources = [ConfigResource.topic(name) for name in topics]
    configs: dict[str, Mapping[str, ConfigValue]] = {}
    unread: dict[str, BrokerError] = {}
    for resource, values in cluster.describe_configs(resources, tables.TOPIC_CONFIGS).items():
        if not isinstance(values, BrokerError):
            configs[resource.name] = values
        elif (
            values.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):  # that one was deleted in the meantime
            unread[resource.name] = values
    if unread:
        raise ClusterError(
            _unread_text(unread), next_step="Correct what the brokers name, then try again."
        )
    return configs


def _unread_text(unread: Mapping[str, BrokerError]) -> str:
    """All topics by what the brokers say of them; a missing right is named with each topic."""
    groups: dict[str, list[str]] = {}
    for name, error in sorted(unread.items()):
        said = str(error)
        right = said.removesuffix(f" on {name}")
        groups.setdefault(f"{said}:" if right == said else f"{right} on", []).append(name)
    topics = [f"{said} {first_names(names, most=_NAMED)}" for said, names in groups.items()]
    of = f"s of {len(unread):,} topics" if len(unread) > 1 else f" of topic {min(unread)}"
    return f"The configuration{of} could not be read: {'; '.join(topics)}"
