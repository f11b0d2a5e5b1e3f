"""A snapshot's replicas as arrays, for the checks on partitions and brokers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.cluster.snapshot.model import Snapshot

_UNKNOWN = -1


@dataclass(frozen=True)
class Columns:
    """P partitions with N replicas in all, on B brokers.

    :param starts: (P,) the first replica of each partition; ``part``: (N,) the partition of each.
    :param ids: (B,) broker ids, ascending; ``broker``: (N,) index into them.
    :param log_dir: (N,) index into ``log_dir_names``, -1 = unknown.
    :param factor, in_sync, min_isr: (P,) counts; min_isr is 1 where it is not known.
    :param leader, preferred: (P,) broker ids; -1 = none.
    :param size: (N,) bytes; 0 = not known.
    :param lag: (N,) messages behind the leader; -1 = it leads, is being added, or is not known.
    :param replicas, leaders, bytes: (B,) of each broker.
    """

    topics: tuple[str, ...]
    topic_of: Any
    partition_of: Any
    starts: Any
    part: Any
    ids: Any
    broker: Any
    log_dir: Any
    log_dir_names: tuple[str, ...]
    factor: Any
    in_sync: Any
    min_isr: Any
    in_flight: Any
    leader: Any
    preferred: Any
    preferred_in_sync: Any
    size: Any
    lag: Any
    replicas: Any
    leaders: Any
    bytes: Any

    @classmethod
    def of(cls, snapshot: Snapshot) -> Columns:
        """Of a snapshot's tables."""
        table = snapshot.replicas
        topics, codes = _encode(table["topic"])
        number, position = _ints(table["partition"]), _ints(table["position"])
        order = np.lexsort((position, number, codes))
        codes, number, position = codes[order], number[order], position[order]
        new = np.ones(len(codes), bool)
        new[1:] = (codes[1:] != codes[:-1]) | (number[1:] != number[:-1])
        starts = np.flatnonzero(new)
        part = np.cumsum(new) - 1
        ids, broker = np.unique(_ints(table["broker"])[order], return_inverse=True)
        leads, in_isr, adding, removing = (
            _bools(table[name])[order] for name in ("is_leader", "in_isr", "adding", "removing")
        )
        size, end = _ints(table["size_bytes"])[order], _ints(table["log_end_offset"])[order]
        dirs, log_dir = _encode(table["log_dir"])
        count = len(starts)
        leader = np.full(count, _UNKNOWN, np.int64)
        leader[part[leads]] = ids[broker[leads]]
        leaders_end = np.full(count, _UNKNOWN, np.int64)
        leaders_end[part[leads]] = end[leads]
        has_lag = ~leads & ~adding & (end >= 0) & (leaders_end[part] >= 0)
        lag = np.where(has_lag, np.maximum(leaders_end[part] - end, 0), _UNKNOWN)
        first = position == 0
        preferred = np.full(count, _UNKNOWN, np.int64)
        preferred[part[first]] = ids[broker[first]]
        preferred_in_sync = np.zeros(count, bool)
        preferred_in_sync[part[first]] = in_isr[first]
        least = dict(
            zip(
                snapshot.topics["topic"].to_pylist(),
                snapshot.topics["min_insync_replicas"].to_pylist(),
                strict=True,
            )
        )
        least_of = np.array([least.get(topic) or 1 for topic in topics], np.int64)
        brokers = len(ids)
        return cls(
            topics=topics,
            topic_of=codes[starts],
            partition_of=number[starts],
            starts=starts,
            part=part,
            ids=ids,
            broker=broker,
            log_dir=log_dir[order],
            log_dir_names=dirs,
            factor=np.bincount(part, minlength=count),
            in_sync=np.bincount(part[in_isr], minlength=count),
            min_isr=least_of[codes[starts]] if count else np.zeros(0, np.int64),
            in_flight=np.bincount(part[adding | removing], minlength=count) > 0,
            leader=leader,
            preferred=preferred,
            preferred_in_sync=preferred_in_sync,
            size=np.maximum(size, 0),
            lag=lag,
            replicas=np.bincount(broker, minlength=brokers),
            leaders=np.bincount(broker[leads], minlength=brokers),
            bytes=np.bincount(broker, np.maximum(size, 0), minlength=brokers),
        )

    def held_by(self, brokers: Collection[int]) -> Any:
        """(P,) how many replicas of each partition these brokers hold."""
        inside = np.isin(self.ids, list(brokers))[self.broker]
        return np.bincount(self.part[inside], minlength=len(self.starts))

    def names(self, chosen: Any, most: int | None = None) -> list[tuple[str, int]]:
        """Topic and number of some partitions, by a mask."""
        rows = np.flatnonzero(chosen)[:most]
        numbers = self.partition_of[rows].tolist()
        return [
            (self.topics[code], number)
            for code, number in zip(self.topic_of[rows].tolist(), numbers, strict=True)
        ]

    def followers_by_broker(self) -> dict[str, Any]:
        """``broker 3`` → lags of the followers on it, where they are known."""
        has_lag = self.lag >= 0
        lags = {}
        for index in np.unique(self.broker[has_lag]).tolist():
            lags[f"broker {self.ids[index]}"] = self.lag[has_lag & (self.broker == index)]
        return lags

    def followers_by_log_dir(self) -> dict[str, Any]:
        """``broker 3 /data1`` → the same; only for brokers with several log dirs."""
        has_lag = (self.lag >= 0) & (self.log_dir >= 0)
        place = self.broker * max(1, len(self.log_dir_names)) + self.log_dir
        lags = {}
        places = np.unique(place[has_lag])
        holders = places // max(1, len(self.log_dir_names))
        several = np.isin(holders, [h for h in holders.tolist() if (holders == h).sum() > 1])
        for each in places[several].tolist():
            index, log_dir = divmod(each, len(self.log_dir_names))
            name = f"broker {self.ids[index]} {self.log_dir_names[log_dir]}"
            lags[name] = self.lag[has_lag & (place == each)]
        return lags


def _encode(column: pa.ChunkedArray) -> tuple[tuple[str, ...], Any]:
    """Distinct texts, sorted, and each row's index into them; -1 = null."""
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = encoded.dictionary.to_pylist()
    ranks = np.empty(len(names) + 1, np.int64)
    ranks[np.argsort(np.array(names, object)) if names else []] = np.arange(len(names))
    ranks[-1] = _UNKNOWN
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return tuple(sorted(names)), ranks[codes]


def _ints(column: pa.ChunkedArray) -> Any:
    """-1 = null."""
    return pc.fill_null(column.cast(pa.int64()), _UNKNOWN).to_numpy()


def _bools(column: pa.ChunkedArray) -> Any:
    return column.to_numpy().astype(bool)
