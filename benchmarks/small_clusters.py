"""Random small clusters: up to 16 brokers and 150 partitions, of several kinds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.clusters import clipped
from rehome.domain.array_types import NONE, UNLIMITED
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays


@dataclass(frozen=True)
class Kind:
    """A kind of small cluster.

    :param racks: brokers per rack; None = three racks of two to five.
    :param replicas: replication factors that occur.
    :param sigma: of the log-normal sizes.
    :param giant: one partition's size, in shares of a broker; 0 = none.
    :param weighted: whether some brokers are to hold twice as much.
    :param room: free disk of every broker, in shares of a broker; 0 = no limit.
    """

    name: str
    racks: tuple[int, ...] | None = None
    replicas: tuple[int, ...] = (2, 3)
    sigma: float = 1.5
    giant: float = 0.0
    weighted: bool = False
    room: float = 0.0


KINDS = {
    kind.name: kind
    for kind in (
        Kind("plain"),
        Kind("mixed_rf", replicas=(1, 2, 3)),
        Kind("near_equal", sigma=0.05),
        Kind("giant", giant=0.6),
        Kind("uneven_racks", racks=(2, 5, 6, 3), replicas=(3,)),
        Kind("rf_above_racks", racks=(4, 4), replicas=(3,)),
        Kind("weights", weighted=True),
        Kind("caps", room=0.35),
    )
}


@dataclass(frozen=True)
class Small:
    """A cluster, its brokers' racks (B,) and their weights by id."""

    arrays: ClusterArrays
    rack: np.ndarray
    weights: dict[int, float] = field(default_factory=dict)


def small(seed: int, kind: Kind = KINDS["plain"]) -> Small:
    """Up to 16 brokers and 150 partitions: new brokers, skew, rates near the sizes or not."""
    rng = np.random.default_rng(seed)
    racks = kind.racks or (int(rng.integers(2, 6)),) * 3
    rack = np.concatenate([np.arange(max(racks))] * len(racks))
    of = np.repeat(np.arange(len(racks)), max(racks))
    rack = of[rack < np.array(racks)[of]]
    brokers, partitions = len(rack), int(rng.integers(50, 150))
    pull = np.exp(rng.choice([0.1, 0.3]) * rng.standard_normal(brokers))
    if rng.random() < 0.5:
        pull[np.unique(rack, return_index=True)[1][np.array(racks) > 1]] = 0
    factors = kind.replicas if len(kind.replicas) < 3 else None
    factor = rng.choice(kind.replicas, partitions)
    if factors is not None:
        factor[:] = rng.choice(factors)
    rows = np.full((partitions, int(factor.max())), NONE, np.int32)
    for row, count in zip(rows, factor, strict=True):
        row[:count] = _spread(rng, rack, pull, int(count))
    mean = float(factor.sum()) / partitions / brokers
    size = clipped(np.exp(kind.sigma * rng.standard_normal(partitions)), 0.5 * mean)
    heat = np.exp(rng.choice([0.3, 0.8]) * rng.standard_normal(partitions))
    rate = clipped(size * heat, 0.5 * mean)
    if kind.giant:
        size[0] = kind.giant * (size * factor).sum() / brokers
    weights = dict.fromkeys(range(0, brokers, 3), 2.0) if kind.weighted else {}
    room = np.full(brokers, UNLIMITED)
    if kind.room:
        room[:] = int(kind.room * (size * factor).sum() * 1e6 / brokers)
    return Small(_arrays(rows, rack, size, rate, room), rack, weights)


def _spread(rng: np.random.Generator, rack: np.ndarray, pull: np.ndarray, count: int) -> list[int]:
    """Distinct brokers, as evenly over the racks as they allow."""
    chosen: list[int] = []
    racks = int(rack.max()) + 1
    order = rng.permutation(racks)
    while len(chosen) < count:
        for number in order[: count - len(chosen)]:
            among = np.setdiff1d(np.flatnonzero((rack == number) & (pull > 0)), chosen)
            chosen.append(int(rng.choice(among, p=pull[among] / pull[among].sum())))
    return chosen


def _arrays(
    rows: np.ndarray, rack: np.ndarray, size: np.ndarray, rate: np.ndarray, room: np.ndarray
) -> ClusterArrays:
    brokers, partitions = len(rack), len(rows)
    everyone = np.ones(brokers, bool)
    return ClusterArrays(
        brokers=BrokerArrays(
            ids=np.arange(brokers),
            live=everyone,
            takes=everyone,
            rack_paths=tuple((f"r{number}",) for number in rack),
            capacity_bytes=np.zeros(brokers, np.int64),
            headroom_bytes=room,
        ),
        topics=("t",),
        internal=np.zeros(1, bool),
        topic_of=np.zeros(partitions, np.int64),
        partition_of=np.arange(partitions),
        rows=rows,
        log_dirs=np.full(rows.shape, -1, np.int32),
        log_dir_names=(),
        size_bytes=np.rint(size * 1e6).astype(np.int64),
        leader=rows[:, 0].copy(),
        in_flight=np.zeros(partitions, bool),
        bytes_in=np.rint(rate * 1e6),
    )
