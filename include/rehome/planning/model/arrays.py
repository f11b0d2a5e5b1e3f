"""A snapshot as dense NumPy arrays: what the planner computes on.

Brokers, topics and partitions get dense indexes in the order of their ids and names, so that a plan
never depends on the order of rows in a snapshot's tables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Mask, Rows
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.request.limits import BrokerCaps
from rehome.planning.model.health import min_isr, offline_replicas
from rehome.planning.model.limits import Limits
from rehome.planning.model.volumes import disks_of

_COLUMNS = ("partition", "broker", "position", "is_leader", "in_isr", "adding", "removing")


@dataclass(frozen=True)
class BrokerArrays:
    """B brokers by dense index, ascending by id.

    :param ids: (B,) broker ids.
    :param live: (B,) listed by the cluster's metadata when the snapshot was taken.
    :param takes: (B,) live, with a log dir that is neither offline nor cordoned.
    :param rack_paths: rack path per broker, from the root down; empty = no rack.
    :param capacity_bytes: (B,) total of the volumes of its log dirs; 0 = unknown.
    :param headroom_bytes: (B,) what may still be written before the disks are fuller than allowed;
        :data:`UNLIMITED` = unknown.
    :param volume_headroom: (B, V) the same per volume, padded with -1; None = one volume per
        broker.
    :param slack_bytes: (B,) what may be written to all volumes together, below zero where they are
        fuller than allowed; infinite = unknown; None = not worked out.
    :param volume_paths: log dirs that take replicas, per broker and volume; empty = not known.
    """

    ids: Ints
    live: Mask
    takes: Mask
    rack_paths: tuple[tuple[str, ...], ...]
    capacity_bytes: Ints
    headroom_bytes: Ints
    volume_headroom: Ints | None = None
    volume_paths: tuple[tuple[tuple[str, ...], ...], ...] = ()
    slack_bytes: Floats | None = None

    @property
    def headrooms(self) -> Ints:
        """(B, V) what may still be written to each volume, padded with -1."""
        return (
            self.headroom_bytes[:, None] if self.volume_headroom is None else self.volume_headroom
        )

    def with_headrooms(self, headrooms: Ints) -> BrokerArrays:
        """The same brokers with other headroom on their volumes."""
        return replace(
            self, volume_headroom=headrooms, headroom_bytes=np.maximum(headrooms, 0).sum(axis=1)
        )

    def index(self) -> dict[BrokerId, int]:
        """Broker id → dense index."""
        return {int(broker): index for index, broker in enumerate(self.ids)}


@dataclass(frozen=True)
class ClusterArrays:
    """P partitions of up to R replicas, ascending by topic and partition.

    :param topics: topic names, sorted; ``internal`` is aligned with them.
    :param topic_of: (P,) index into ``topics``; ``partition_of`` is the partition's number.
    :param rows: (P, R) dense broker indexes in the order of the replica list, padded with
        :data:`NONE`. For a partition in flight: its replicas once the reassignment is complete.
    :param log_dirs: (P, R) index into ``log_dir_names``, aligned with ``rows``; -1 = unknown.
    :param size_bytes: (P,) size of one replica: the leader's, or the largest known.
    :param leader: (P,) dense index of the current leader, :data:`NONE` where there is none.
    :param in_flight: (P,) being reassigned when the snapshot was taken.
    :param topic_ids: Kafka's id of each of ``topics``, "" = not known; empty = none is known.
    :param bytes_in: (P,) bytes per second written to the partition; None = not known.
    :param bytes_out: (P,) bytes per second its leader sends, to followers too; None = not known.
    :param in_sync: (P, R) replicas in the ISR and online, aligned with ``rows``; None = all are.
    :param offline: (P, R) replicas on a dead broker or in a failed log dir; None = none is.
    :param min_isr: (P,) ``min.insync.replicas``, 1 where it is not known; None = 1.
    :param end_offsets: (P,) up to which all replicas in the ISR had the messages, -1 where that
        is not known; None = it is not known of any.
    :param limits: caps and broker sets that plans keep, see :mod:`rehome.planning.model.limits`;
        None = none.
    """

    brokers: BrokerArrays
    topics: tuple[str, ...]
    internal: Mask
    topic_of: Ints
    partition_of: Ints
    rows: Rows
    log_dirs: Rows
    log_dir_names: tuple[str, ...]
    size_bytes: Ints
    leader: Rows
    in_flight: Mask
    topic_ids: tuple[str, ...] = ()
    bytes_in: Floats | None = None
    bytes_out: Floats | None = None
    in_sync: Mask | None = None
    offline: Mask | None = None
    min_isr: Ints | None = None
    end_offsets: Ints | None = None
    limits: Limits | None = None

    @classmethod
    def from_snapshot(
        cls,
        snapshot: Snapshot,
        *,
        min_free_disk_fraction: float = 0.0,
        caps: BrokerCaps | None = None,
    ) -> ClusterArrays:
        """The arrays of a snapshot. Headroom leaves ``min_free_disk_fraction`` of each log dir
        free, or more where a cap on disk usage says so. Other caps are ignored here.
        """
        replicas = snapshot.replicas
        replica_brokers = set(replicas.column("broker").unique().to_pylist())
        brokers = _brokers(snapshot, replica_brokers, min_free_disk_fraction, caps or BrokerCaps())
        topics, codes = _sorted_codes(replicas.column("topic"))
        table = {name: replicas.column(name).to_numpy() for name in _COLUMNS}
        order = _order(codes, table["partition"], table["position"])
        table = {name: values[order] for name, values in table.items()}
        codes = codes[order]
        size = replicas.column("size_bytes").fill_null(-1).to_numpy()[order]
        names, dir_codes = _sorted_codes(replicas.column("log_dir"))
        first = _starts(codes, table["partition"])
        owner = np.cumsum(first) - 1
        starts = np.flatnonzero(first)
        partitions = len(starts)
        index = np.searchsorted(brokers.ids, table["broker"]).astype(np.int32)

        stays = ~table["removing"].astype(bool)
        rank = np.cumsum(stays) - 1
        position = (rank - (rank[starts] - stays[starts] + 1)[owner])[stays]
        width = int(position.max()) + 1 if len(position) else 1
        rows = np.full((partitions, width), NONE, np.int32)
        rows[owner[stays], position] = index[stays]
        log_dirs = np.full((partitions, width), -1, np.int32)
        log_dirs[owner[stays], position] = dir_codes[order][stays]
        gone = offline_replicas(snapshot, brokers.ids, brokers.live)[order]
        offline, in_sync = (np.zeros((partitions, width), bool) for _ in range(2))
        offline[owner[stays], position] = gone[stays]
        in_sync[owner[stays], position] = (table["in_isr"].astype(bool) & ~gone)[stays]
        leads = table["is_leader"].astype(bool)
        leader = np.full(partitions, NONE, np.int32)
        leader[owner[leads]] = index[leads]
        moving = (table["adding"] | table["removing"]).astype(bool)
        return cls(
            brokers=brokers,
            topics=topics,
            internal=_internal(snapshot, topics),
            topic_of=codes[starts],
            partition_of=table["partition"][starts].astype(np.int64),
            rows=rows,
            log_dirs=log_dirs,
            log_dir_names=names,
            size_bytes=_sizes(size, leads, owner, starts),
            leader=leader,
            in_flight=np.bincount(owner[moving], minlength=partitions).astype(bool),
            topic_ids=topic_ids(snapshot, topics),
            bytes_in=_rates(replicas, "bytes_in_per_s", order, starts),
            bytes_out=_rates(replicas, "bytes_out_per_s", order, starts),
            in_sync=in_sync,
            offline=offline,
            min_isr=min_isr(snapshot, topics)[codes[starts]],
            end_offsets=_end_offsets(replicas, table["in_isr"].astype(bool), order, starts),
        )

    @property
    def replication_factor(self) -> Ints:
        """(P,) replicas per partition."""
        return replica_counts(self.rows)

    @cached_property
    def all_in_sync(self) -> bool:
        """Whether every replica is in the ISR."""
        return self.in_sync is None or bool((self.in_sync | (self.rows == NONE)).all())

    def partition(self, index: int) -> TopicPartition:
        """The partition's name."""
        return TopicPartition(self.topics[self.topic_of[index]], int(self.partition_of[index]))

    def partition_index(self) -> dict[TopicPartition, int]:
        """Partition → dense index."""
        return {self.partition(index): index for index in range(len(self.rows))}

    def broker_ids(self, row: npt.NDArray[Any]) -> tuple[BrokerId, ...]:
        """Dense indexes → broker ids, padding left out."""
        return tuple(self.brokers.ids[row[row != NONE]].tolist())

    def log_dir_paths(self, index: int) -> tuple[str, ...]:
        """Log dir of each replica of a partition; "" where unknown."""
        codes = self.log_dirs[index][self.rows[index] != NONE]
        return tuple(self.log_dir_names[code] if code >= 0 else "" for code in codes)

    def load(self, rows: Rows, weight: Ints | None) -> Ints:
        """(B,) sum of the partitions' weights, or number, over the replicas each broker holds."""
        return broker_sums(rows, weight, len(self.brokers.ids)).astype(np.int64)


def _end_offsets(replicas: pa.Table, in_isr: Mask, order: Ints, starts: Ints) -> Ints:
    """(P,) the lowest log end offset in the ISR; -1 where one of them is not known."""
    ends = replicas.column("log_end_offset").fill_null(-1).to_numpy()[order]
    beyond = np.iinfo(np.int64).max
    if not len(starts):
        return np.zeros(0, np.int64)
    lowest = np.minimum.reduceat(np.where(in_isr, ends, beyond), starts)
    return np.where(lowest == beyond, -1, lowest)


def replica_counts(rows: Rows) -> Ints:
    """(P,) replicas in each of (P, R) rows."""
    counts = np.zeros(len(rows), np.int16)
    for column in rows.T:  # sums along a short axis take NumPy ten times as long
        counts += column != NONE
    return counts.astype(np.int64)


def in_sync_of(arrays: ClusterArrays) -> Ints:
    """(P,) replicas in sync of each partition: the fewer, the more endangered."""
    is_in_sync = arrays.in_sync
    return arrays.replication_factor if is_in_sync is None else is_in_sync.sum(axis=1)


def is_new(rows: Rows, origin: Rows) -> Mask:
    """(P, R) positions of ``rows`` whose broker has no replica of the partition in ``origin``."""
    new: Mask = rows != NONE
    for column, now in zip(new.T, rows.T, strict=True):  # column by column: see replica_counts
        for before in origin.T:
            column &= now != before
    return new


def broker_sums(rows: Rows, weight: Ints | Floats | None, brokers: int) -> Floats:
    """(B,) sum of whole partition weights over the replicas of (P, R) rows, exact up to 2^53.

    :param weight: (P,); None = one each.
    """
    total = np.zeros(brokers + 1)  # the first one is NONE's
    if weight is None or weight.any():
        for column in rows.T:
            total += np.bincount(np.add(column, 1, dtype=np.intp), weight, brokers + 1)
    return total[1:]


def _brokers(
    snapshot: Snapshot, replica_brokers: set[int], min_free: float, caps: BrokerCaps
) -> BrokerArrays:
    broker_rows = {row["broker"]: row for row in snapshot.brokers.to_pylist()}
    ids = sorted(broker_rows.keys() | replica_brokers)
    takes, volumes = disks_of(snapshot)
    live = [bool(broker_rows[b]["live"]) if b in broker_rows else False for b in ids]
    open_volumes = [[volume for volume in volumes.get(b, ()) if volume.paths] for b in ids]
    width = max((len(broker_volumes) for broker_volumes in open_volumes), default=1) or 1
    headrooms = np.full((len(ids), width), -1, np.int64)
    headrooms[:, 0] = UNLIMITED
    slack = np.full(len(ids), np.inf)
    for index, broker_volumes in enumerate(open_volumes):
        if broker_volumes:
            free = kept_free(min_free, caps, ids[index])
            headrooms[index, : len(broker_volumes)] = [
                volume.headroom_bytes(free) for volume in broker_volumes
            ]
            slack[index] = sum(v.usable_bytes - free * v.total_bytes for v in volumes[ids[index]])
    capacity = [sum(volume.total_bytes for volume in volumes.get(b, ())) for b in ids]
    return BrokerArrays(
        ids=np.array(ids, np.int64),
        live=np.array(live, bool),
        takes=np.array([takes.get(b, True) and up for b, up in zip(ids, live, strict=True)], bool),
        rack_paths=tuple(
            tuple(broker_rows[b]["rack_path"]) if b in broker_rows else () for b in ids
        ),
        capacity_bytes=np.array(capacity, np.int64),
        headroom_bytes=np.maximum(headrooms, 0).sum(axis=1),
        volume_headroom=headrooms,
        volume_paths=tuple(
            tuple(volume.paths for volume in broker_volumes) for broker_volumes in open_volumes
        ),
        slack_bytes=np.floor(slack),
    )


def kept_free(min_free: float, caps: BrokerCaps | None, broker: BrokerId) -> float:
    """The part of a broker's volumes that must stay free: the request's, or the broker's cap."""
    return caps.kept_free(broker, min_free) if caps else min_free


def _internal(snapshot: Snapshot, topics: tuple[str, ...]) -> Mask:
    table = snapshot.topics
    internal = dict(
        zip(table.column("topic").to_pylist(), table.column("internal").to_pylist(), strict=True)
    )
    return np.array([bool(internal.get(topic, False)) for topic in topics], bool)


def topic_ids(snapshot: Snapshot, topics: tuple[str, ...]) -> tuple[str, ...]:
    """Kafka's id of each topic, "" where the snapshot does not know it."""
    table = snapshot.topics
    names, ids = (table.column(name).to_pylist() for name in ("topic", "topic_id"))
    id_by_topic = dict(zip(names, ids, strict=True))
    return tuple(id_by_topic.get(topic) or "" for topic in topics)


def _sorted_codes(column: pa.ChunkedArray) -> tuple[tuple[str, ...], Ints]:
    """The column's distinct values, sorted, and per row the index of its value (-1 = null)."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = encoded.dictionary.to_pylist()
    order = sorted(range(len(values)), key=values.__getitem__)
    place = np.empty(len(values) + 1, np.int64)
    place[order] = np.arange(len(values))
    place[-1] = -1
    codes: Ints = place[encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)]
    return tuple(values[index] for index in order), codes


def _order(codes: Ints, partitions: npt.NDArray[Any], positions: npt.NDArray[Any]) -> Ints:
    """The rows by topic, partition and position. Snapshots are written in this order, and to see
    that takes far less than to sort.
    """
    partition = codes * (1 << 32) + partitions
    step = np.diff(partition)
    if ((step > 0) | ((step == 0) & (np.diff(positions) >= 0))).all():
        return np.arange(len(codes))
    return np.lexsort((positions, partition))


def _starts(codes: Ints, partitions: npt.NDArray[Any]) -> Mask:
    """Where a new partition begins in the sorted table."""
    first = np.ones(len(codes), bool)
    first[1:] = (codes[1:] != codes[:-1]) | (partitions[1:] != partitions[:-1])
    return first


def _sizes(size: Ints, leads: Mask, owner: Ints, starts: Ints) -> Ints:
    """(P,) the leader's size where known, else the largest known, else 0."""
    if not len(starts):
        return np.zeros(0, np.int64)
    sizes = np.maximum(np.maximum.reduceat(size, starts), 0).astype(np.int64)
    has_leader_size = leads & (size >= 0)
    sizes[owner[has_leader_size]] = size[has_leader_size]
    return sizes


def _rates(replicas: pa.Table, name: str, order: Ints, starts: Ints) -> Floats | None:
    """(P,) a partition's rate from an optional column that repeats it for each replica."""
    if name not in replicas.column_names or not len(starts):
        return None
    values = replicas.column(name).fill_null(0).to_numpy().astype(float)[order]
    rates: Floats = np.maximum.reduceat(values, starts)
    return rates
