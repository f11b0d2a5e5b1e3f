"""One fresh reading of the partitions of a plan, with few reads: 1 + 2 per involved broker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from rehome.cluster.interface.error_codes import NOT_HOSTED, ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.disks import open_disks
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    HighWatermark,
    LogDir,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.run.observation import Observation
from rehome.execution.observation.agreed_topics import DISAGREE
from rehome.execution.observation.move_status import relocating


def observe(
    cluster: ClusterPort,
    moves: Collection[Move],
    now: datetime,
    *,
    in_flight: Collection[TopicPartition] | None = None,
    bystanders: Collection[TopicPartition] = (),
    filling: Collection[BrokerId] = (),
    starting: bool = False,
) -> Observation:
    """What is true of these moves' partitions now.

    Reassignments are read before metadata: what had ended by the first reading shows its final
    replicas in the second. For that, topics of moves that are in flight by the ledger, and not by
    the controller's list, are asked of a broker that has read all that the controller has written:
    one that is cut off from the controller would show them as they were.

    Only brokers that are alive are asked for their replicas, so a dead one costs no time; one that
    does not answer is named in ``missing``. A topic that is refused is named in ``unreadable``, and
    does not stop the others from being read. Brokers that a move is to bring a copy to report what
    their disks can still take.

    :param now: what the observation is dated.
    :param in_flight: partitions whose replicas are measured (size, log end offset, log dir);
        None = of all moves. Those of moves between log dirs are looked up in any case.
    :param bystanders: partitions watched for strain that are read in the same requests, as far as
        their replicas are on brokers that are asked anyway.
    :param filling: brokers, besides those of these moves, that report what their disks can take.
    :param starting: these moves may start: all of their topics are asked of such a broker.
    :raises ClusterError: the cluster as a whole did not answer.
    """
    ongoing = cluster.list_reassignments()
    names = {move.partition.topic for move in moves}
    topic_names = names | {partition.topic for partition in bystanders}
    described = cluster.describe_topics(topic_names) if moves else {}
    not_listed = [
        move.partition
        for move in moves
        if move.partition not in ongoing and (in_flight is None or move.partition in in_flight)
    ]
    unlisted_topics = names if starting else {partition.topic for partition in not_listed}
    current = cluster.current_topics(unlisted_topics)
    described |= current
    unconfirmed = frozenset(p for p in not_listed if p.topic not in current)
    live = frozenset(cluster.describe_cluster().brokers)
    ours = {name: described[name] for name in names}
    errors = {name: topic.error for name, topic in ours.items() if topic.error is not None}
    missing = {
        n for n, error in errors.items() if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    topics_missing = frozenset(missing)
    unreadable = {name: error for name, error in errors.items() if name not in missing}
    if starting:  # what only one broker shows may be older than another client's change
        undecided = ErrorCode.UNKNOWN_SERVER_ERROR.error(DISAGREE)
        unreadable |= dict.fromkeys(names - current.keys(), undecided)
    topic_ids = {name: topic.topic_id for name, topic in ours.items() if topic.error is None}
    others = {p: state for p in bystanders if (state := _partition(described, p)) is not None}
    partitions = {
        move.partition: state
        for move in moves
        if (state := _partition(described, move.partition)) is not None
    }
    measured = [
        move
        for move in moves
        if move.partition in partitions and (in_flight is None or move.partition in in_flight)
    ]
    replicas = _replicas(measured, partitions, ongoing, live)
    within = [move.partition for move in moves if move.target_log_dirs and relocating(move)]
    filled = {broker for move in moves for broker in (*move.adding, *relocating(move))}
    brokers = sorted({replica.broker for replica in replicas} | filled.union(filling) & live)
    watermarks = _high_watermarks(cluster, moves if starting else measured, partitions, live)
    observation = Observation(
        taken_at=now,
        partitions=partitions,
        ongoing=ongoing,
        live_brokers=live,
        topics_missing=topics_missing,
        unreadable=unreadable,
        topic_ids=topic_ids,
        unconfirmed=unconfirmed,
        high_watermarks=watermarks,
    )
    if not brokers:
        return observation
    offsets = cluster.log_end_offsets(
        [*replicas, *sorted(_in_sync(others, live.intersection(brokers)))]
    )
    on_disk = {*within, *(move.partition for move in measured)}
    log_dirs = cluster.describe_log_dirs(brokers, on_disk)
    sizes, dirs = _on_disk(log_dirs.value, future=False)
    future_sizes, future_dirs = _on_disk(log_dirs.value, future=True)
    return replace(
        observation,
        sizes=sizes,
        future_sizes=future_sizes,
        log_dirs=dirs,
        future_log_dirs=future_dirs,
        future_lags=_future_lags(log_dirs.value),
        log_end_offsets=offsets.value,
        missing={**log_dirs.missing, **offsets.missing},
        disks=open_disks(log_dirs.value),
        bystanders=others,
    )


def observe_more(
    cluster: ClusterPort, observation: Observation, moves: Collection[Move]
) -> Observation:
    """A reading, with the partitions of these moves, which are pending, read a moment later.

    :raises ClusterError: as :func:`observe`.
    """
    more = observe(cluster, moves, observation.taken_at, in_flight=(), starting=True)
    more_partitions = {move.partition for move in moves}
    begun = {p: entry for p, entry in more.ongoing.items() if p in more_partitions}
    partitions = dict(observation.partitions)
    for partition in more_partitions:
        partitions.pop(partition, None)  # what was assumed of it
    return replace(
        observation,
        partitions={**partitions, **more.partitions},
        ongoing={**observation.ongoing, **begun},
        topics_missing=observation.topics_missing | more.topics_missing,
        unreadable={**observation.unreadable, **more.unreadable},
        topic_ids={**observation.topic_ids, **more.topic_ids},
        sizes={**more.sizes, **observation.sizes},
        future_sizes={**more.future_sizes, **observation.future_sizes},
        log_dirs={**more.log_dirs, **observation.log_dirs},
        future_log_dirs={**more.future_log_dirs, **observation.future_log_dirs},
        future_lags={**more.future_lags, **observation.future_lags},
        high_watermarks={**more.high_watermarks, **observation.high_watermarks},
        missing={**more.missing, **observation.missing},
    )


def _high_watermarks(
    cluster: ClusterPort,
    moves: Collection[Move],
    partitions: Mapping[TopicPartition, PartitionState],
    live: frozenset[BrokerId],
) -> Mapping[TopicPartition, HighWatermark | BrokerError]:
    """Of those that are led by a broker that is alive."""
    leaders = {
        move.partition: state.leader
        for move in moves
        if (state := partitions.get(move.partition)) is not None and state.leader in live
    }
    live_leaders = {
        partition: leader for partition, leader in leaders.items() if leader is not None
    }
    return cluster.high_watermarks(live_leaders).value if live_leaders else {}


def _in_sync(
    states: Mapping[TopicPartition, PartitionState], brokers: frozenset[BrokerId]
) -> set[ReplicaId]:
    return {
        ReplicaId(*partition, broker)
        for partition, state in states.items()
        for broker in state.isr & brokers
    }


def moves_of(ongoing: Mapping[TopicPartition, OngoingReassignment]) -> tuple[Move, ...]:
    """Reassignments of any client, as moves: what ``drive=False`` watches.

    Their sizes are not known, so they count as 0.
    """
    return tuple(
        Move(
            partition=partition,
            current=tuple(broker for broker in entry.replicas if broker not in entry.adding),
            target=entry.target,
            size_bytes=0,
            reason=MoveReason.REQUESTED,
            causes=(MoveCause(CauseCode.FOREIGN),),
        )
        for partition, entry in sorted(ongoing.items())
    )


def _partition(
    described: Mapping[str, TopicDescription], partition: TopicPartition
) -> PartitionState | None:
    topic = described.get(partition.topic)
    if topic is None or topic.error is not None:
        return None
    return topic.partitions.get(partition.partition)


def _replicas(
    moves: Collection[Move],
    partitions: Mapping[TopicPartition, PartitionState],
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    live: frozenset[BrokerId],
) -> list[ReplicaId]:
    """The replicas to measure: each move's targets and the leader they copy from."""
    replicas = set()
    for move in moves:
        state = partitions[move.partition]
        brokers = set(move.target) | set(state.replicas)
        if move.partition in ongoing:
            brokers |= set(ongoing[move.partition].replicas)
        replicas |= {ReplicaId(*move.partition, broker) for broker in brokers & live}
    return sorted(replicas)


def _on_disk(
    log_dirs: Collection[LogDir], *, future: bool
) -> tuple[dict[ReplicaId, int], dict[ReplicaId, str]]:
    sizes, dirs = {}, {}
    for log_dir in log_dirs:
        for partition, replica in log_dir.replicas.items():
            if replica.is_future is future:
                replica_id = ReplicaId(*partition, log_dir.broker)
                sizes[replica_id] = replica.size_bytes
                dirs[replica_id] = log_dir.path
    return sizes, dirs


def _future_lags(log_dirs: Collection[LogDir]) -> dict[ReplicaId, int]:
    return {
        ReplicaId(*partition, log_dir.broker): replica.offset_lag
        for log_dir in log_dirs
        for partition, replica in log_dir.replicas.items()
        if replica.is_future
    }


def messages_behind(observation: Observation, replica: ReplicaId, *, across: bool) -> int | None:
    """How many messages a replica lacks, by log end offsets; None where one is not known.

    :param across: its copy in another log dir is meant, as far as there is one.
    """
    if across and replica in observation.future_lags:
        return max(0, observation.future_lags[replica])
    state = observation.partitions.get(replica.topic_partition)
    if state is None or state.leader is None:
        return None
    leader = observation.log_end_offsets.get(ReplicaId(*replica.topic_partition, state.leader))
    own = observation.log_end_offsets.get(replica)
    if not isinstance(leader, int):
        return None
    if isinstance(own, BrokerError):
        return leader if own.code in NOT_HOSTED else None
    return None if own is None else max(0, leader - own)
