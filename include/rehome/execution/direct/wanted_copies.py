"""What wanted replicas come to on the cluster: the verdict beforehand, and what would be copied."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    LogDir,
    OngoingReassignment,
    ReplicaId,
    ReplicaOnDisk,
    Replicas,
    TopicDescription,
    TopicPartition,
)
from rehome.execution.dry_run.controller_rules import facts_of, predict, replica_count
from rehome.execution.throttle.configs import read, read_what_can_be
from rehome.execution.throttle.keys import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LOG_DIR_RATE,
    split,
)

Targets = Mapping[TopicPartition, Sequence[BrokerId] | None]
"""Replicas wanted, the preferred leader first; None = the reassignment in flight is cancelled."""


@dataclass(frozen=True, slots=True)
class TargetsNow:
    """What one reading shows of partitions that have targets.

    :param topics: of partitions that are to have other replicas; of one that is cancelled, none.
    :param ongoing: what is in flight of all of them.
    """

    topics: Mapping[str, TopicDescription]
    ongoing: Mapping[TopicPartition, OngoingReassignment]


def read_targets(cluster: ClusterPort, targets: Targets) -> TargetsNow:
    """Read what targets are compared with.

    :raises ClusterError: the cluster could not be read.
    """
    topics = {partition.topic for partition, target in targets.items() if target is not None}
    return TargetsNow(
        cluster.describe_topics(topics) if topics else {},
        cluster.list_reassignments(targets.keys()) if targets else {},
    )


@dataclass(frozen=True, slots=True)
class WantedCopy:
    """What a partition's new replicas are copied from and to.

    :param sources: replicas that may come to lead; ``adding``: brokers that get one.
    """

    partition: TopicPartition
    sources: Replicas
    adding: Replicas


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """Where a replica lies within its broker (KIP-113). Sizes in bytes.

    :param log_dir: its log dir; None = the broker shows only the copy that is being made.
    :param future_log_dir: where it is being moved to; None = nowhere.
    :param offset_lag: messages that the copy there lacks; 0 where there is none.
    """

    log_dir: str | None
    size_bytes: int
    future_log_dir: str | None = None
    future_size_bytes: int = 0
    offset_lag: int = 0


def validate_targets(
    cluster: ClusterPort, targets: Targets, *, allow_replication_factor_change: bool = False
) -> dict[TopicPartition, BrokerError | None]:
    """The controller's verdict per partition, predicted; None = it would accept. Changes nothing.

    Kafka has no validate-only for reassignments: see ``controller_rules``. A dead broker counts as
    registered where it holds a replica of any topic that this principal may describe.

    :raises ClusterError: the cluster could not be read.
    """
    if not targets:
        return {}
    now = TargetsNow(
        cluster.describe_topics({partition.topic for partition in targets}),
        cluster.list_reassignments(targets.keys()),
    )
    return _predict(cluster, targets, now, allow_replication_factor_change)


def _predict(
    cluster: ClusterPort, targets: Targets, now: TargetsNow, allow_replication_factor_change: bool
) -> dict[TopicPartition, BrokerError | None]:
    facts = facts_of(
        cluster.describe_cluster(),
        {**cluster.describe_topics(), **now.topics},
        now.ongoing,
        allow_replication_factor_change=allow_replication_factor_change,
    )
    return predict(targets, facts)


def refuse_other_counts(
    cluster: ClusterPort, targets: Targets, now: TargetsNow
) -> dict[TopicPartition, BrokerError | None]:
    """The verdict of Kafka 4.1 and newer on targets with another number of replicas, or of
    partitions that are not shown, where the controller may be older: it would let any number pass.

    :param now: what :func:`read_targets` has read of them.
    :raises ClusterError: the cluster could not be read.
    """
    doubtful = {
        part: target
        for part, target in targets.items()
        if target is not None
        and (
            (state := now.topics[part.topic].partitions.get(part.partition)) is None
            or len(target) != replica_count(state, now.ongoing.get(part))
        )
    }
    if not doubtful:
        return {}
    from rehome.execution.dry_run.version_checks import lacking

    answers = cluster.supported_versions(sorted(cluster.describe_cluster().brokers))
    if not answers.missing and not lacking(answers.value).checked_replicas:
        return {}
    verdicts = _predict(cluster, doubtful, now, allow_replication_factor_change=False)
    return {part: error for part, error in verdicts.items() if error}


def wanted_copies(targets: Targets, now: TargetsNow) -> list[WantedCopy]:
    """What would be copied, in partition order; a partition that gets no new replica is left out.

    What is in flight counts: a replica that is being added by now is still copied. Pure.
    """
    copies = []
    for partition, target in sorted(targets.items()):
        if target is None:
            continue
        state = now.topics[partition.topic].partitions.get(partition.partition)
        entry = now.ongoing.get(partition)
        unfinished = () if entry is None else entry.adding
        replicas = () if state is None else state.replicas
        sources = tuple(broker for broker in replicas if broker not in unfinished)
        adding = tuple(broker for broker in dict.fromkeys(target) if broker not in sources)
        if adding and sources:
            copies.append(WantedCopy(partition, sources, adding))
    return copies


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """How far copies would be throttled.

    :param unthrottled: what nothing would throttle, in words.
    :param rates: bytes per second that hold for the others, by broker.
    """

    unthrottled: tuple[str, ...]
    rates: Mapping[BrokerId, int]


def copy_limits(cluster: ClusterPort, copies: Collection[WantedCopy]) -> CopyLimits:
    """Which throttles of followers hold for these copies, whichever client has set them.

    :raises ClusterError: the cluster could not be read.
    """
    topics = {ConfigResource.topic(copy.partition.topic) for copy in copies}
    lists = read(cluster, topics, [FOLLOWER_REPLICAS]) if topics else {}
    rates = _rates(cluster, {broker for copy in copies for broker in copy.adding}, FOLLOWER_RATE)
    free: list[str] = []
    for copy in copies:
        configs = lists.get(ConfigResource.topic(copy.partition.topic), {})
        listed = configs.get(FOLLOWER_REPLICAS)
        items = split(listed.value if listed else None)
        for broker in copy.adding:
            item = f"{copy.partition.partition}:{broker}"
            if item not in items and EVERY_REPLICA not in items:
                free.append(f"{copy.partition} on broker {broker} is in no list")
            elif rates.get(broker) is None:
                free.append(f"broker {broker} has no rate that is known")
    limits = {broker: rate for broker, rate in rates.items() if rate is not None}
    return CopyLimits(tuple(dict.fromkeys(free)), limits)


def log_dir_limits(cluster: ClusterPort, brokers: Collection[BrokerId]) -> CopyLimits:
    """The same for copies between the log dirs of brokers.

    :raises ClusterError: the cluster could not be read.
    """
    rates = _rates(cluster, brokers, LOG_DIR_RATE)
    free = [
        f"broker {b} has no rate between log dirs that is known"
        for b in sorted(brokers)
        if rates[b] is None
    ]
    return CopyLimits(tuple(free), {b: rate for b, rate in rates.items() if rate is not None})


def _rates(
    cluster: ClusterPort, brokers: Collection[BrokerId], key: str
) -> dict[BrokerId, int | None]:
    """Bytes per second of each broker; None = no limit (Kafka has the largest number there), or its
    broker is away: nothing is known to hold then.
    """
    rates: dict[BrokerId, int | None] = dict.fromkeys(brokers)
    resources = {ConfigResource.broker(broker): broker for broker in brokers}
    read_now = read_what_can_be(cluster, resources, [key])[0] if resources else {}
    for resource, configs in read_now.items():
        value = configs.get(key)
        if value is not None and value.value is not None and int(value.value) < NO_RATE_LIMIT:
            rates[resources[resource]] = int(value.value)
    return rates


NO_RATE_LIMIT = 2**63 - 1
"""Kafka's default of every rate (Long.MAX_VALUE)."""


def placed_replicas(
    log_dirs: Collection[LogDir], replicas: Collection[ReplicaId] | None = None
) -> dict[ReplicaId, PlacedReplica]:
    """Where replicas lie, of what brokers have answered. Pure.

    :param replicas: only these; None = all.
    """
    current: dict[ReplicaId, tuple[str, ReplicaOnDisk]] = {}
    future: dict[ReplicaId, tuple[str, ReplicaOnDisk]] = {}
    for replica, path, on_disk in _on_disks(log_dirs):
        if replicas is None or replica in replicas:
            (future if on_disk.is_future else current)[replica] = path, on_disk
    return {
        replica: _place_of(current.get(replica), future.get(replica))
        for replica in sorted({*current, *future})
    }


def _on_disks(log_dirs: Collection[LogDir]) -> Iterator[tuple[ReplicaId, str, ReplicaOnDisk]]:
    for log_dir in log_dirs:
        for partition, on_disk in log_dir.replicas.items():
            yield ReplicaId(*partition, log_dir.broker), log_dir.path, on_disk


def _place_of(
    now: tuple[str, ReplicaOnDisk] | None, then: tuple[str, ReplicaOnDisk] | None
) -> PlacedReplica:
    path, size = (None, 0) if now is None else (now[0], now[1].size_bytes)
    if then is None:
        return PlacedReplica(path, size)
    return PlacedReplica(path, size, then[0], then[1].size_bytes, then[1].offset_lag)
