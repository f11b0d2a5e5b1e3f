"""Made-up large clusters: three data centres of ten racks, heavy-tailed sizes and rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rehome.cluster.snapshot.model import BROKERS, LOG_DIRS, REPLICAS, TOPICS, Snapshot
from rehome.domain.array_types import UNLIMITED
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays

Floats = npt.NDArray[np.float64]

DATA_CENTRES = 3
RACKS = 30
PER_TOPIC = 100
"""Partitions of a small topic. One half of them is in such; the other is in topics of as many
partitions as there are brokers, which are to be spread over all of them.
"""

MEDIAN_BYTES = 1e9
LARGEST = 0.25
"""Of a broker's mean load: no replica weighs more, in any resource."""

MESSAGE_BYTES = 1000
WEEK_S = 7 * 86_400


@dataclass(frozen=True)
class Case:
    """One kind of imbalance.

    :param new: part of the brokers that hold nothing yet.
    :param drained: part of the brokers to be emptied.
    :param skew: how unevenly replicas were placed (sigma of a log-normal pull).
    :param twice: part of the brokers that are twice as large.
    :param twice_disk_only: whether these are so by their disks alone.
    :param independent: whether rates have nothing to do with sizes.
    :param in_turn: whether large topics were placed as Kafka places new ones: broker by broker.
    """

    name: str
    new: float = 0.0
    drained: float = 0.0
    skew: float = 0.15
    replicas: int = 3
    twice: float = 0.0
    twice_disk_only: bool = False
    independent: bool = False
    in_turn: bool = False


CASES = (
    Case("expansion", new=0.2),
    Case("expansion, topics even", new=0.2, in_turn=True),
    Case("drain", drained=0.05),
    Case("drain, topics even", drained=0.05, in_turn=True),
    Case("skew"),
    Case("rf2", replicas=2),
    Case("uneven", twice=0.3),
    Case("rates", new=0.2, independent=True),
    Case("stress", twice=0.3, twice_disk_only=True),
)


@dataclass(frozen=True)
class Instance:
    """A cluster and what is asked of it.

    :param capacity: (5, B) relative size of the brokers per resource, in the order bytes,
        replicas, bytes in, leaders, bytes out.
    :param drained: (B,) brokers to be emptied.
    """

    arrays: ClusterArrays
    capacity: Floats
    drained: npt.NDArray[np.bool_]


def build(case: Case, partitions: int, brokers: int, seed: int = 1) -> Instance:
    """The instance of a case: one replica per data centre, placed at random with a pull."""
    rng = np.random.default_rng(seed)
    rack = np.arange(brokers) % RACKS
    centre = rack % DATA_CENTRES
    size = np.exp(2 * rng.standard_normal(partitions))
    heat = np.exp(0.8 * rng.standard_normal(partitions))
    old = np.ones(brokers, bool)
    old[rng.choice(brokers, int(case.new * brokers), replace=False)] = False
    pull = np.exp(case.skew * rng.standard_normal(brokers)) * old
    rows = _rows(rng, centre, pull, partitions, case.replicas)
    if case.in_turn:
        _place_in_turn(rng, rows, *_topics(partitions, brokers), centre)
    drained = np.zeros(brokers, bool)
    drained[rng.choice(brokers, int(case.drained * brokers), replace=False)] = True
    live = brokers - int(drained.sum())
    size = clipped(size, case.replicas / live)
    rate_in = clipped(size * heat, case.replicas / live)
    fanout = case.replicas - 1 + np.exp(0.8 * rng.standard_normal(partitions))
    rate_out = rate_in * fanout
    if case.independent:
        rate_in = clipped(np.exp(2 * rng.standard_normal(partitions)), case.replicas / live)
        rate_out = np.exp(2 * rng.standard_normal(partitions))
    rate_out = clipped(rate_out, 1 / live)
    twice = np.where(rng.random(brokers) < case.twice, 2.0, 1.0)
    capacity = np.broadcast_to(twice, (5, brokers)).copy()
    if case.twice_disk_only:
        capacity[1:] = 1.0
    arrays = _arrays(rows, size * MEDIAN_BYTES, centre, rack)
    measured = replace(
        arrays,
        bytes_in=np.rint(rate_in * MEDIAN_BYTES / WEEK_S * 1000),
        bytes_out=np.rint(rate_out * MEDIAN_BYTES / WEEK_S * 1000),
    )
    return Instance(measured, capacity, drained)


def clipped(values: Floats, part_of_all: float) -> Floats:
    """The values with none above :data:`LARGEST` of a broker's mean load."""
    for _ in range(8):
        values = np.minimum(values, LARGEST * values.sum() * part_of_all)
    return values


def _rows(
    rng: np.random.Generator,
    centre: npt.NDArray[np.int64],
    pull: Floats,
    partitions: int,
    replicas: int,
) -> npt.NDArray[np.int32]:
    centres = np.argsort(rng.random((partitions, DATA_CENTRES)), axis=1)[:, :replicas]
    rows = np.empty((partitions, replicas), np.int32)
    for number in range(DATA_CENTRES):
        among = np.flatnonzero(centre == number)
        here = centres == number
        rows[here] = rng.choice(among, int(here.sum()), p=pull[among] / pull[among].sum())
    return rows


def _place_in_turn(
    rng: np.random.Generator,
    rows: npt.NDArray[np.int32],
    topic_of: npt.NDArray[np.int64],
    partition_of: npt.NDArray[np.int64],
    centre: npt.NDArray[np.int64],
) -> None:
    """Place large topics anew, in place: each centre's brokers in turn, from a random one on."""
    large = np.flatnonzero(topic_of <= topic_of[len(rows) // 2 - 1])
    begin = rng.integers(len(centre), size=topic_of[large[-1]] + 1)
    in_use = np.bincount(rows.ravel(), minlength=len(centre)) > 0
    for number in range(DATA_CENTRES):
        among = np.flatnonzero(in_use & (centre == number)).astype(np.int32)
        here = large[:, None], np.arange(rows.shape[1])
        mine = centre[rows[here]] == number
        turn = partition_of[large] + begin[topic_of[large]]
        chosen = np.broadcast_to(among[turn % len(among)][:, None], mine.shape)
        rows[here] = np.where(mine, chosen, rows[here])


def _arrays(
    rows: npt.NDArray[np.int32],
    size: Floats,
    centre: npt.NDArray[np.int64],
    rack: npt.NDArray[np.int64],
) -> ClusterArrays:
    partitions, brokers = len(rows), len(rack)
    topic_of, partition_of = _topics(partitions, len(rack))
    topics = int(topic_of.max()) + 1
    everyone = np.ones(brokers, bool)
    return ClusterArrays(
        brokers=BrokerArrays(
            ids=np.arange(brokers),
            live=everyone,
            takes=everyone,
            rack_paths=tuple((f"dc{d}", f"r{r}") for d, r in zip(centre, rack, strict=True)),
            capacity_bytes=np.zeros(brokers, np.int64),
            headroom_bytes=np.full(brokers, UNLIMITED),
        ),
        topics=tuple(f"t{number:07d}" for number in range(topics)),
        internal=np.zeros(topics, bool),
        topic_of=topic_of,
        partition_of=partition_of,
        rows=rows,
        log_dirs=np.full(rows.shape, -1, np.int32),
        log_dir_names=(),
        size_bytes=np.rint(size).astype(np.int64),
        leader=rows[:, 0].copy(),
        in_flight=np.zeros(partitions, bool),
    )


def _topics(partitions: int, brokers: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(P,) topic and number of each partition."""
    in_large = np.arange(partitions // 2)
    in_small = np.arange(partitions - len(in_large))
    large = -(-len(in_large) // brokers)
    return (
        np.concatenate([in_large // brokers, large + in_small // PER_TOPIC]),
        np.concatenate([in_large % brokers, in_small % PER_TOPIC]),
    )


def snapshot_of(instance: Instance, disks: bool = False) -> Snapshot:
    """The instance as a snapshot taken just now.

    :param disks: whether brokers report their disks: of one size, two fifths full on average; less
        where the fullest broker would not fit.
    """
    arrays = instance.arrays
    brokers, (partitions, replicas) = len(arrays.brokers.ids), arrays.rows.shape
    owner = np.repeat(np.arange(partitions), replicas)
    load = arrays.load(arrays.rows, arrays.size_bytes)
    total = int(max(load.mean() * 2.5, load.max() * 1.1))
    sizes = {"total_bytes": np.full(brokers, total), "usable_bytes": total - load}
    everyone = np.ones(brokers, bool)
    topics = len(arrays.topics)
    of_topic = np.bincount(arrays.topic_of, minlength=topics)
    first = np.tile(np.arange(replicas) == 0, partitions)
    columns = {
        "topic": np.array(arrays.topics)[arrays.topic_of[owner]],
        "partition": arrays.partition_of[owner],
        "broker": arrays.rows.ravel(),
        "position": np.tile(np.arange(replicas), partitions),
        "is_leader": first,
        "in_isr": np.ones(len(owner), bool),
        "adding": np.zeros(len(owner), bool),
        "removing": np.zeros(len(owner), bool),
        "log_dir": ["/data"] * len(owner),
        "size_bytes": arrays.size_bytes[owner],
        "log_end_offset": arrays.size_bytes[owner] // MESSAGE_BYTES,
    }
    table = _table(REPLICAS, len(owner), **columns)
    for name, rate in (("bytes_in_per_s", arrays.bytes_in), ("bytes_out_per_s", arrays.bytes_out)):
        if rate is not None:
            table = table.append_column(name, pa.array(rate[owner]))
    return Snapshot(
        cluster_id="bench",
        taken_at=datetime.now(UTC),
        duration_s=1.0,
        brokers=_table(
            BROKERS,
            brokers,
            broker=arrays.brokers.ids,
            host=[f"broker{number}" for number in range(brokers)],
            port=np.full(brokers, 9092),
            rack=["/" + "/".join(path) for path in arrays.brokers.rack_paths],
            rack_path=[list(path) for path in arrays.brokers.rack_paths],
            live=everyone,
            answered=everyone,
        ),
        log_dirs=_table(
            LOG_DIRS,
            brokers,
            broker=arrays.brokers.ids,
            log_dir=["/data"] * brokers,
            offline=~everyone,
            cordoned=~everyone,
            stray_replicas=np.zeros(brokers, int),
            **(sizes if disks else {}),
        ),
        topics=_table(
            TOPICS,
            topics,
            topic=arrays.topics,
            topic_id=[f"id{number}" for number in range(topics)],
            internal=np.zeros(topics, bool),
            visible=np.ones(topics, bool),
            partitions=of_topic,
            replication_factor=np.full(topics, replicas),
            min_insync_replicas=np.ones(topics, int),
            leader_throttled_replicas=[""] * topics,
            follower_throttled_replicas=[""] * topics,
        ),
        replicas=table,
    )


def _table(schema: pa.Schema, rows: int, **columns: object) -> pa.Table:
    arrays = [
        pa.nulls(rows, field.type)
        if field.name not in columns
        else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.table(arrays, schema=schema)
