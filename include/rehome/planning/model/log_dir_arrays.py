"""Replicas by log dir, for all brokers, as arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import UNLIMITED, Ints, Mask
from rehome.domain.kafka import BrokerId, LogDirKey
from rehome.domain.request.limits import BrokerCaps
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays, kept_free
from rehome.planning.model.volumes import disks_of


@dataclass(frozen=True)
class LogDirs:
    """D log dirs that are online, ascending by broker and path.

    :param broker: (D,) dense index of the broker.
    :param paths: path of each.
    :param total_bytes: (D,) size of its volume, divided by the number of log dirs on it;
        0 = unknown.
    :param headroom_bytes: (D,) what may still be written, divided likewise;
        :data:`UNLIMITED` = unknown.
    :param takes: (D,) neither cordoned nor on a broker that is not live.
    """

    broker: Ints
    paths: tuple[str, ...]
    total_bytes: Ints
    headroom_bytes: Ints
    takes: Mask


@dataclass(frozen=True)
class StoredReplicas:
    """N replicas in log dirs that are online, ascending by log dir and partition.

    :param log_dir: (N,) index of the log dir; of a replica that is being moved between log
        dirs, the one it is going to.
    :param partition: (N,) dense index.
    :param size_bytes: (N,) of this very replica.
    :param moving: (N,) being moved between log dirs already.
    :param sized: (N,) its size is known.
    """

    log_dir: Ints
    partition: Ints
    size_bytes: Ints
    moving: Mask
    sized: Mask


def stored_log_dirs(
    snapshot: Snapshot,
    arrays: ClusterArrays,
    *,
    min_free_disk_fraction: float,
    caps: BrokerCaps | None,
) -> tuple[LogDirs, StoredReplicas]:
    """The log dirs of a snapshot and their replicas. Headroom leaves ``min_free_disk_fraction`` of
    each free, or more where a cap says so.
    """
    dirs = _log_dirs(
        snapshot, arrays.brokers, lambda broker: kept_free(min_free_disk_fraction, caps, broker)
    )
    table = snapshot.replicas
    moving = table.column("future_log_dir").is_valid().to_numpy()
    path = pc.coalesce(table.column("future_log_dir"), table.column("log_dir"))
    log_dir = _dir_of(dirs, arrays.brokers, table.column("broker").to_numpy(), path)
    size = table.column("size_bytes").fill_null(-1).to_numpy()
    copied = table.column("future_size_bytes").fill_null(0).to_numpy()
    still_to_come = np.where(moving & (log_dir >= 0), np.maximum(size - copied, 0), 0)
    headroom = dirs.headroom_bytes - np.bincount(
        np.maximum(log_dir, 0), still_to_come, len(dirs.paths)
    ).astype(np.int64)
    partition = _partition_of(arrays, table)
    order = np.lexsort((partition, log_dir))
    order = order[log_dir[order] >= 0]
    dirs = LogDirs(dirs.broker, dirs.paths, dirs.total_bytes, np.maximum(headroom, 0), dirs.takes)
    return dirs, StoredReplicas(
        log_dir=log_dir[order],
        partition=partition[order],
        size_bytes=np.maximum(size, 0)[order],
        moving=moving[order],
        sized=(size >= 0)[order],
    )


def _log_dirs(
    snapshot: Snapshot, brokers: BrokerArrays, free_on: Callable[[BrokerId], float]
) -> LogDirs:
    index = brokers.index()
    per_volume = _log_dirs_per_volume(snapshot)
    rows = sorted(
        (row for row in snapshot.log_dirs.to_pylist() if not row["offline"]),
        key=lambda row: (row["broker"], row["log_dir"]),
    )
    broker = np.array([index[row["broker"]] for row in rows], np.int64)
    shared = [per_volume.get((row["broker"], row["log_dir"]), 1) for row in rows]
    total = [max(row["total_bytes"] or 0, 0) for row in rows]
    usable = [-1 if row["usable_bytes"] is None else row["usable_bytes"] for row in rows]
    headroom = [
        max(0, free - int(size * free_on(row["broker"]))) // by if size and free >= 0 else UNLIMITED
        for row, size, free, by in zip(rows, total, usable, shared, strict=True)
    ]
    cordoned = np.array([bool(row["cordoned"]) for row in rows], bool)
    return LogDirs(
        broker=broker,
        paths=tuple(row["log_dir"] for row in rows),
        total_bytes=np.array(total, np.int64) // np.array(shared, np.int64),
        headroom_bytes=np.array(headroom, np.int64),
        takes=brokers.live[broker] & ~cordoned,
    )


def _log_dirs_per_volume(snapshot: Snapshot) -> dict[LogDirKey, int]:
    """For each log dir whose size is known: how many log dirs share its volume."""
    return {
        (volume.broker, path): len(volume.paths) + len(volume.others)
        for volumes in disks_of(snapshot)[1].values()
        for volume in volumes
        for path in (*volume.paths, *volume.others)
    }


def _dir_of(dirs: LogDirs, brokers: BrokerArrays, ids: Ints, path: pa.ChunkedArray) -> Ints:
    """(N,) index of each replica's log dir; -1 where it is not known, or offline."""
    names = sorted(set(dirs.paths))
    number = {name: code for code, name in enumerate(names)}
    code = pc.index_in(path, value_set=pa.array(names, pa.string())).fill_null(-1).to_numpy()
    key = np.searchsorted(brokers.ids, ids) * len(names) + code
    dir_keys = dirs.broker * len(names) + np.array([number[name] for name in dirs.paths], np.int64)
    if not len(dir_keys):
        return np.full(len(key), -1, np.int64)
    place = np.minimum(np.searchsorted(dir_keys, key), len(dir_keys) - 1)
    dir_indexes: Ints = np.where((dir_keys[place] == key) & (code >= 0), place, -1).astype(np.int64)
    return dir_indexes


def _partition_of(arrays: ClusterArrays, table: pa.Table) -> Ints:
    """(N,) dense index of each row's partition."""
    topic = pc.index_in(table.column("topic"), value_set=pa.array(arrays.topics, pa.string()))
    key = topic.to_numpy().astype(np.int64) * 2**32 + table.column("partition").to_numpy()
    dense: Ints = np.searchsorted(arrays.topic_of * 2**32 + arrays.partition_of, key)
    return dense
