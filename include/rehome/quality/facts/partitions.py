"""The partitions of a snapshot, for the gate on a plan.

Read from the snapshot's tables by independent code: a gate on the planner's arrays could not detect
what the planner misread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import Ints, Mask
from rehome.domain.resources import MEASURED_AS, RATES, Resource
from rehome.quality.facts.ragged_lists import Ragged, is_first, lists_of, starts_of

_PER_TOPIC = 1 << 32


@dataclass(frozen=True)
class Partitions:
    """P partitions, in the order of topic and number.

    :param topics: names; a partition's topic is ``topics[key >> 32]``, its number the rest.
    :param keys: (P,) ascending.
    :param replicas: broker ids in stored order, without those that are leaving.
    :param log_dirs: log dirs of these replicas, one after the other; ``any`` = unknown.
    :param size_bytes: (P,) of one replica: the leader's, or the largest known.
    :param leader: (P,) id of the broker that leads; -1 = none.
    :param in_flight: (P,) being reassigned.
    :param in_sync, offline: aligned with the values of ``replicas``: in the ISR and online; on a
        dead broker or in a failed log dir.
    :param stored_bytes: aligned with the values of ``replicas``: of that very replica; where it is
        not known, the partition's.
    :param rates: (P,) whole bytes per second of each resource that the snapshot knows.
    """

    topics: tuple[str, ...]
    keys: Ints
    replicas: Ragged
    log_dirs: pa.Array
    size_bytes: Ints
    leader: Ints
    in_flight: Mask
    in_sync: Mask
    offline: Mask
    stored_bytes: Ints
    rates: Mapping[Resource, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Partitions:
        """The partitions of a snapshot; the order of its rows does not matter."""
        table = snapshot.replicas
        topics = tuple(sorted(table.column("topic").unique().to_pylist()))
        keys = _keys(topics, table.column("topic"), table.column("partition"))
        order = np.lexsort((table.column("position").to_numpy(), keys))
        column = {
            name: table.column(name).to_numpy()[order]
            for name in ("broker", "is_leader", "in_isr", "adding", "removing")
        }
        offline = _offline(snapshot)[order]
        size = table.column("size_bytes").fill_null(-1).to_numpy()[order]
        in_order = keys[order]
        first = is_first(in_order)
        distinct, owner = in_order[first], np.cumsum(first) - 1
        count = len(distinct)
        sizes = np.full(count, 0, np.int64)
        np.maximum.at(sizes, owner, size)
        leads = column["is_leader"].astype(bool)
        leader = np.full(count, -1, np.int64)
        leader[owner[leads]] = column["broker"][leads]
        sizes[owner[leads & (size >= 0)]] = size[leads & (size >= 0)]
        moving = (column["adding"] | column["removing"]).astype(bool)
        stays = ~column["removing"].astype(bool)
        paths = table.column("log_dir").fill_null("any").take(pa.array(order[stays]))
        return cls(
            topics=topics,
            keys=distinct,
            replicas=Ragged(
                column["broker"][stays].astype(np.int64),
                starts_of(np.bincount(owner[stays], minlength=count)),
            ),
            log_dirs=_one_array(paths),
            size_bytes=sizes,
            leader=leader,
            in_flight=np.bincount(owner[moving], minlength=count) > 0,
            in_sync=(column["in_isr"].astype(bool) & ~offline)[stays],
            offline=offline[stays],
            stored_bytes=np.where(size >= 0, size, sizes[owner])[stays],
            rates={
                resource: _rates(table.column(name).fill_null(0).to_numpy()[order], owner, count)
                for resource in RATES
                if (name := f"{resource.value}_per_s") in table.column_names
            },
        )

    def amounts(self, resource: Resource) -> Ints | None:
        """(P,) what one replica, or the leader, of each partition puts on its broker; None = the
        snapshot does not know it.
        """
        measured = MEASURED_AS[resource]
        if measured is Resource.BYTES:
            return self.size_bytes
        if measured is Resource.REPLICAS:
            return np.ones_like(self.size_bytes)
        return self.rates.get(measured)

    def find(self, topic: pa.ChunkedArray, number: pa.ChunkedArray) -> Ints:
        """(n,) index of each named partition; -1 where the snapshot does not have it."""
        keys_to_find = _keys(self.topics, topic, number)
        if not len(self.keys):
            return np.full(len(keys_to_find), -1, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys_to_find), len(self.keys) - 1)
        indexes: Ints = np.where(self.keys[at] == keys_to_find, at, -1)
        return indexes

    def name(self, index: int) -> str:
        """``topic-number``."""
        key = int(self.keys[index])
        return f"{self.topics[key >> 32]}-{key % _PER_TOPIC}"

    def lists_at(self, at: Ints) -> tuple[pa.ListArray, pa.ListArray]:
        """Replicas and log dirs of the partitions at these indexes; null where an index is -1."""
        is_there, lengths = at >= 0, self._lengths(at)
        place = self._places(at)
        brokers = pa.array(self.replicas.values[place], pa.int32())
        return (
            lists_of(brokers, lengths, ~is_there),
            lists_of(self.log_dirs.take(pa.array(place)), lengths, ~is_there),
        )

    def chosen_at(self, at: Ints, chosen: Mask) -> Ragged:
        """The chosen replicas of the partitions at these indexes; empty where an index is -1.

        :param chosen: aligned with the values of ``replicas``.
        """
        place = self._places(at)
        replicas = Ragged(self.replicas.values[place], starts_of(self._lengths(at)))
        return replicas.where(chosen[place])

    def _lengths(self, at: Ints) -> Ints:
        lengths: Ints = (
            np.where(at >= 0, self.replicas.lengths[at], 0) if len(self.keys) else at * 0
        )
        return lengths

    def _places(self, at: Ints) -> Ints:
        """Flat indexes of the replicas of the partitions at these indexes."""
        lengths = self._lengths(at)
        begins = np.where(at >= 0, self.replicas.offsets[at], 0)
        offsets = starts_of(lengths)
        place: Ints = np.repeat(begins - offsets[:-1], lengths) + np.arange(offsets[-1])
        return place


def _rates(values: npt.NDArray[np.float64], owner: Ints, count: int) -> Ints:
    """(P,) rate of each partition; each of its rows repeats it."""
    rates = np.zeros(count)
    np.maximum.at(rates, owner, values)
    return np.rint(rates).astype(np.int64)


def _keys(topics: tuple[str, ...], topic: pa.ChunkedArray, number: pa.ChunkedArray) -> Ints:
    """One key per row for its partition; rows of unknown topics get keys that match none."""
    codes = pc.index_in(topic, pa.array(topics, pa.string())).fill_null(len(topics)).to_numpy()
    keys: Ints = codes.astype(np.int64) * _PER_TOPIC + number.to_numpy().astype(np.int64)
    return keys


def _offline(snapshot: Snapshot) -> Mask:
    """Per row of the replicas, whether its broker is dead, or the log dir it was in has failed."""
    brokers, log_dirs, replicas = snapshot.brokers, snapshot.log_dirs, snapshot.replicas
    alive = pc.is_in(replicas["broker"], brokers.filter(brokers["live"])["broker"])
    broken = pc.is_in(replicas["broker"], log_dirs.filter(log_dirs["offline"])["broker"])
    lost = pc.and_(broken, pc.is_null(replicas["log_dir"]))
    offline: Mask = pc.or_(pc.invert(alive), lost).to_numpy().astype(bool)
    return offline


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
