"""Made-up clusters of the sizes that most people have: 1 to 60 brokers, up to 10,000 replicas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rehome.domain.actions import Action
from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Rows
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays

MEDIAN_BYTES = 1e9


@dataclass(frozen=True)
class People:
    """One cluster, and what is requested.

    :param racks: brokers of each rack; empty = as many brokers as ``brokers``, without racks.
    :param topics: partitions of each topic.
    :param new: brokers that hold nothing yet: the last ones.
    :param dead: brokers that are not live: the first ones.
    :param skew: how unevenly replicas were placed (sigma of a log-normal pull).
    :param sigma: of the log-normal sizes of partitions; topics differ as much again.
    :param empty: fraction of the partitions that hold nothing.
    :param giant: size of one partition, in shares of a broker; 0 = none.
    :param large: every so many brokers one has four times the capacity; 0 = none.
    :param free: free disk of every broker, in shares of a broker; 0 = no limit.
    :param rates: whether bytes in and out are known.
    """

    name: str
    brokers: int = 0
    racks: tuple[int, ...] = ()
    topics: tuple[int, ...] = (12,) * 10
    replicas: int = 3
    new: int = 0
    dead: int = 0
    skew: float = 0.15
    sigma: float = 1.0
    empty: float = 0.0
    giant: float = 0.0
    large: int = 0
    free: float = 0.0
    rates: bool = False
    action: Action = Action.REBALANCE
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of brokers."""
        return sum(self.racks) or self.brokers

    def request(self) -> ReassignmentRequest:
        """What is requested; an expansion names the new brokers."""
        params = dict(self.params)
        if self.action is Action.EXPAND:
            params["brokers"] = tuple(range(self.count - self.new, self.count))
        if self.large:
            params["weights"] = dict.fromkeys(range(0, self.count, self.large), 4.0)
        return ReassignmentRequest(self.action, **params)


def people(case: People, seed: int = 0) -> ClusterArrays:
    """The cluster of a case. Same case and seed: same cluster."""
    rng = np.random.default_rng([seed, *case.name.encode()])
    brokers, partitions = case.count, sum(case.topics)
    rack = np.repeat(np.arange(len(case.racks)), case.racks) if case.racks else np.arange(brokers)
    topic_of = np.repeat(np.arange(len(case.topics)), case.topics)
    capacity = np.ones(brokers)
    if case.large:
        capacity[:: case.large] = 4.0
    pull = capacity * np.exp(case.skew * rng.standard_normal(brokers))
    pull[brokers - case.new :] = 0
    rows = _rows(rng, rack, pull, topic_of, case.replicas)
    of_topic = case.sigma * rng.standard_normal(len(case.topics))
    size = np.exp(of_topic[topic_of] + case.sigma * rng.standard_normal(partitions))
    share = size.sum() * case.replicas / brokers
    size = np.minimum(size, 0.2 * share)
    size[rng.random(partitions) < case.empty] = 0
    share = size.sum() * case.replicas / brokers
    if case.giant:
        size[0] = case.giant * share
    rate = size * np.exp(0.5 * rng.standard_normal(partitions))
    free = np.full(brokers, UNLIMITED)
    if case.free:
        free[:] = int(case.free * share * MEDIAN_BYTES)
    arrays = _arrays(rows, rack, topic_of, size * MEDIAN_BYTES, free, bool(case.racks))
    live = np.arange(brokers) >= case.dead
    arrays = replace(arrays, brokers=replace(arrays.brokers, live=live, takes=live))
    if case.dead:  # what it led is led by a replica that is in sync
        first = np.argmax(live[rows], axis=1)
        leader = np.take_along_axis(rows, first[:, None], axis=1)[:, 0]
        arrays = replace(arrays, offline=(rows != NONE) & ~live[rows], leader=leader)
    if case.rates:
        rates = np.rint(rate * 1e5)
        arrays = replace(arrays, bytes_in=rates, bytes_out=rates * 2)
    return arrays


def _rows(
    rng: np.random.Generator, rack: Ints, pull: Floats, topic_of: Ints, replicas: int
) -> Rows:
    """Distinct brokers, as evenly over the racks as they allow, drawn by their pull."""
    racks = int(rack.max()) + 1
    rows = np.full((len(topic_of), replicas), NONE, np.int32)
    for row in rows:
        chosen: list[int] = []
        while len(chosen) < replicas:
            usable = np.setdiff1d(np.flatnonzero(pull > 0), chosen)
            by_rack = np.bincount(rack[usable], pull[usable], racks)
            order = np.argsort(-np.log(rng.random(racks)) / np.maximum(by_rack, 1e-12))
            for number in order[by_rack[order] > 0][: replicas - len(chosen)].tolist():
                among = usable[rack[usable] == number]
                chosen.append(int(rng.choice(among, p=pull[among] / pull[among].sum())))
        row[:] = chosen
    return rows


def _arrays(
    rows: Rows, rack: Ints, topic_of: Ints, size: Floats, free: Ints, has_racks: bool
) -> ClusterArrays:
    brokers, partitions = len(rack), len(rows)
    everyone, topics = np.ones(brokers, bool), int(topic_of.max()) + 1
    first = np.searchsorted(topic_of, np.arange(topics))
    return ClusterArrays(
        brokers=BrokerArrays(
            ids=np.arange(brokers),
            live=everyone,
            takes=everyone,
            rack_paths=tuple((f"r{number}",) if has_racks else () for number in rack),
            capacity_bytes=np.zeros(brokers, np.int64),
            headroom_bytes=free,
        ),
        topics=tuple(f"t{number:04d}" for number in range(topics)),
        internal=np.zeros(topics, bool),
        topic_of=topic_of,
        partition_of=np.arange(partitions) - first[topic_of],
        rows=rows,
        log_dirs=np.full(rows.shape, -1, np.int32),
        log_dir_names=(),
        size_bytes=np.rint(size).astype(np.int64),
        leader=rows[:, 0].copy(),
        in_flight=np.zeros(partitions, bool),
    )


def cases() -> Iterator[People]:
    """All cases of `make bench-people`."""
    expand, drain = Action.EXPAND, Action.DRAIN
    three = (3, 3, 3)
    yield People("1 broker", 1, replicas=1)
    yield People("2 brokers, rf 1", 2, replicas=1, skew=0.6)
    yield People("3 brokers", 3)
    yield People("3 brokers, rf 2", 3, replicas=2, skew=0.6)
    yield People("3 + 1", 4, new=1, sigma=0, action=expand)
    yield People("3 + 1, rebalance", 4, new=1, sigma=0)
    yield People("3 + 1, sizes", 4, new=1, action=expand)
    yield People("4 + 1", 5, new=1, topics=(6, 12, 24, 3, 1, 1), action=expand)
    yield People("5 + 1, rf 2", 6, new=1, replicas=2, action=expand)
    yield People("6 + 3", 9, new=3, action=expand)
    yield People("9 + 3, sizes", 12, new=3, topics=(18,) * 12, action=expand)
    yield People("9 + 3 in racks", 0, (4, 4, 4), (18,) * 12, new=3)
    yield People("drain of 6", 6, action=drain, params={"brokers": (0,)})
    yield People("drain of 9 in racks", 0, three, action=drain, params={"brokers": (0, 4)})
    yield People("after a failure", 0, three, dead=1, action=Action.FIX_OFFLINE_REPLICAS)
    yield People(
        "rf 2 to 3",
        0,
        three,
        replicas=2,
        action=Action.SET_REPLICATION_FACTOR,
        params={"replication_factor": 3},
    )
    yield People(
        "rf 3 to 2",
        0,
        three,
        action=Action.SET_REPLICATION_FACTOR,
        params={"replication_factor": 2},
    )
    yield People("drain of 2 of 12, rf 2", 12, replicas=2, action=drain, params={"brokers": (3, 8)})
    for rf in (1, 2, 4, 5):
        yield People(f"8 brokers, rf {rf}", 8, replicas=rf, skew=0.3)
    yield People("racks 7 7 6", 0, (7, 7, 6), (20,) * 20, skew=0.3)
    yield People("racks 2 2 1", 0, (2, 2, 1), skew=0.3)
    yield People("racks 4 4, rf 3", 0, (4, 4), skew=0.3)
    yield People("racks 2 5 6 3", 0, (2, 5, 6, 3), (16,) * 12, skew=0.3)
    yield People("five racks", 0, (3, 3, 3, 3, 3), (30,) * 8, skew=0.3)
    yield People("capacity 1:4", 8, large=4, topics=(16,) * 12)
    yield People("capacity 1:4, new", 9, large=4, topics=(16,) * 12, new=1)
    yield People("giant 0.6", 6, giant=0.6)
    yield People("giant 1.3", 6, giant=1.3)
    yield People("two thirds empty", 6, empty=0.66, topics=(12,) * 20)
    yield People("all empty", 6, empty=1.0, topics=(12,) * 20, skew=0.4)
    yield People("nearly full", 6, free=0.15, skew=0.3)
    yield People("nearly full, new", 7, free=0.3, new=1, skew=0.1)
    yield People("many small topics", 12, topics=(1, 2, 3, 6) * 40, skew=0.3)
    yield People("many small topics, racks", 0, (10, 10, 10), (1, 3, 6, 8) * 60, skew=0.3)
    yield People("a large topic", 12, topics=(240, *(3,) * 20), skew=0.3)
    yield People("traffic known", 9, rates=True, topics=(18,) * 12, skew=0.3)
    yield People(
        "traffic known, strict",
        9,
        rates=True,
        topics=(18,) * 12,
        skew=0.3,
        params={"tolerances": {"replicas": 0.05, "leaders": 0.05}},
    )
    yield People("counts strict", 9, topics=(18,) * 12, params={"tolerances": {"replicas": 0.05}})
    yield People("tolerance 0", 6, params={"tolerance": 0.0})
    yield People("one-sided", 9, skew=0.4, params={"one_sided": True})
    yield People("12 + 1", 13, new=1, topics=(24,) * 12)
    yield People("13 + 1", 14, new=1, topics=(24,) * 12)
    yield People("14 + 1, expand", 15, new=1, topics=(24,) * 12, action=expand)
    yield People("leaders", 6, rates=True, skew=0.4, action=Action.BALANCE_LEADERS)
    for brokers, topics in ((19, 24), (19, 36), (30, 48), (40, 40), (60, 100)):
        name = f"{brokers} brokers" if topics != 36 else "19 brokers, more topics"
        yield People(name, brokers, topics=(brokers,) * 4 + (12,) * topics)
    for racks in ((7, 7, 5), (20, 20, 20)):
        yield People(f"racks of {racks[0]}", 0, racks, (60,) * 10 + (12,) * 80, skew=0.3)
    yield People("tolerance 0, 20 brokers", 20, topics=(60,) * 35, params={"tolerance": 0.0})
    yield People("tolerance 0, racks", 0, (7, 7, 6), (60,) * 35, params={"tolerance": 0.0})
    yield People("3 racks + 3", 0, (11, 11, 11), (60,) * 20 + (6,) * 60, new=3, action=expand)
    yield People("60 brokers, 10,000 replicas", 0, (20, 20, 20), (60,) * 30 + (12,) * 125)
    yield People("60 brokers, rates", 0, (20, 20, 20), (60,) * 30 + (12,) * 125, rates=True)
    yield People(
        "60 brokers, strict",
        0,
        (20, 20, 20),
        (60,) * 30 + (12,) * 125,
        rates=True,
        params={"tolerances": {"replicas": 0.05, "leaders": 0.05}},
    )
