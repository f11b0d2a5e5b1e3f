"""How evenly a snapshot's replicas and loads lie, over racks and brokers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.kafka import BrokerId
from rehome.domain.request.limits import BrokerSet, set_of_topic
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.planning.limits.set_trees import max_min_fair
from rehome.watching.judging.columns import Columns

MOST_NAMED = 20
"""The most partitions, topics or brokers that are named; the count covers all."""


@dataclass(frozen=True)
class TopicGroups:
    """Topics that may use the same brokers: one group per broker set, and first the one of all
    other topics.

    :param of_partition: (P,) the group of each partition.
    :param brokers: of each group; None = all. ``closed``: brokers that group 0 may not use.
    """

    of_partition: Any
    brokers: tuple[frozenset[BrokerId] | None, ...]
    closed: frozenset[BrokerId]

    @classmethod
    def of(cls, snapshot: Snapshot, columns: Columns, sets: Sequence[BrokerSet]) -> TopicGroups:
        """Of a snapshot's topics, by the broker sets of its cluster."""
        internal = set(snapshot.topics.filter(snapshot.topics["internal"])["topic"].to_pylist())
        group_of = np.zeros(len(columns.topics), np.int64)
        if sets:
            for code, topic in enumerate(columns.topics):
                broker_set = set_of_topic(sets, topic, internal=topic in internal)
                group_of[code] = 0 if broker_set is None else 1 + sets.index(broker_set)
        closed = frozenset(broker for each in sets if each.exclusive for broker in each.brokers)
        bound = tuple(frozenset(each.brokers) for each in sets)
        return cls(group_of[columns.topic_of], (None, *bound), closed)

    @property
    def several(self) -> bool:
        """Whether there are broker sets."""
        return len(self.brokers) > 1

    def allowed_of(self, group: int, brokers: Collection[BrokerId]) -> list[BrokerId]:
        """Those of some brokers that a group may use."""
        bound = self.brokers[group]
        if bound is None:
            return [broker for broker in brokers if broker not in self.closed]
        return [broker for broker in brokers if broker in bound]


def badly_spread(
    snapshot: Snapshot, columns: Columns, groups: TopicGroups, usable: Collection[BrokerId]
) -> Any:
    """(P,) partitions of which one rack holds at least two replicas more than a sibling rack that
    has a usable broker without one. Of a broker set, only its own brokers count.

    :param usable: brokers that could take a replica.
    """
    rows = snapshot.brokers.select(["broker", "rack_path", "live"]).to_pylist()
    # Of a dead broker the rack is not known: it is in none.
    rows_with_rack = [row for row in rows if row["live"] or row["rack_path"]]
    paths = {row["broker"]: tuple(row["rack_path"]) for row in rows_with_rack}
    bad = np.zeros(len(columns.factor), bool)
    for group in range(len(groups.brokers)):
        mine = groups.of_partition == group
        if mine.any():
            ours = {broker: paths[broker] for broker in groups.allowed_of(group, list(paths))}
            bad |= mine & _uneven(columns, ours, usable)
    return bad


def _uneven(
    columns: Columns, paths: Mapping[BrokerId, tuple[str, ...]], usable: Collection[BrokerId]
) -> Any:
    """(P,) as :func:`badly_spread`, over these brokers.

    :param paths: rack path of each broker.
    """
    bad = np.zeros(len(columns.factor), bool)
    depth = max(map(len, paths.values()), default=0)
    # A path that ends above a level is a rack of its own there; brokers without one are in another.
    paths = {broker: (*path, *[""] * (depth - len(path))) for broker, path in paths.items()}
    for level in range(depth):
        parents: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for path in paths.values():
            parents.setdefault(path[:level], set()).add(path[: level + 1])
        for racks in parents.values():
            counts, least = [], []
            for rack in sorted(racks):
                inside = [b for b, path in paths.items() if path[: level + 1] == rack]
                replicas = columns.held_by(inside)
                counts.append(replicas)
                free = [broker for broker in inside if broker in usable]
                least.append(np.where(columns.held_by(free) < len(free), replicas, 1 << 20))
            bad |= np.max(counts, axis=0) - np.min(least, axis=0) >= 2
    return bad


def off_their_share(
    snapshot: Snapshot,
    columns: Columns,
    groups: TopicGroups,
    usable: Collection[BrokerId],
    rules: WatchRules,
    traffic: Mapping[str, Mapping[BrokerId, float]],
) -> Iterator[Seen]:
    """Imbalance of usable brokers that hold something; empty brokers are a finding of their own.

    With broker sets a broker's share is what it holds when each set's topics are as even on its
    brokers as can be.

    :param usable: brokers that are alive, and are not meant to be empty.
    """
    chosen = np.isin(columns.ids, list(usable)) & (columns.replicas > 0)
    if chosen.sum() < 2:
        return
    ids = columns.ids[chosen]
    of_broker = _capacity(snapshot)
    capacity = np.array([of_broker.get(broker, 0.0) for broker in ids.tolist()])
    share = capacity if capacity.all() else np.ones(len(ids))
    there = chosen[columns.broker]
    group_of = groups.of_partition[columns.part[there]]

    def fair(values: Any, share: Any, totals: Any) -> Any:
        if not groups.several:
            return values.sum() * share / share.sum()
        return max_min_fair(
            totals.astype(float), _allowed_brokers(groups, ids), share.astype(float)
        )

    count = len(groups.brokers)
    sizes = columns.bytes[chosen]
    totals = np.bincount(group_of, columns.size[there], minlength=count)
    yield from _off("bytes", ids, sizes, fair(sizes, share, totals), rules.balance_tolerance)
    if rules.traffic_tolerance is not None:
        for name, rates in traffic.items():
            values = np.array([rates.get(broker, 0.0) for broker in ids.tolist()])
            even = values.sum() * share / share.sum()
            yield from _off(name, ids, values, even, rules.traffic_tolerance)


def _allowed_brokers(groups: TopicGroups, ids: Any) -> Any:
    """(G, B) brokers that each group may use; all of them for a group that may use none."""
    allowed = np.stack(
        [
            np.isin(ids, groups.allowed_of(group, ids.tolist()))
            for group in range(len(groups.brokers))
        ]
    )
    allowed[~allowed.any(axis=1)] = True
    return allowed


def _off(name: str, ids: Any, values: Any, fair: Any, tolerance: float) -> Iterator[Seen]:
    """Brokers off their share by more than the tolerance.

    :param fair: (B,) the share of each broker.
    """
    if not values.sum():
        return
    outside = (np.abs(values - fair) > tolerance * fair) & (fair > 0)
    if outside.any():
        deviation = values[outside] / fair[outside] - 1
        pairs = zip(ids[outside].tolist(), deviation.tolist(), strict=True)
        worst = sorted(pairs, key=lambda each: -abs(each[1]))[:MOST_NAMED]
        off = {str(broker): round(by, 4) for broker, by in worst}
        yield Seen(FindingKind.IMBALANCE, name, {"count": int(outside.sum()), "deviation": off})


def _capacity(snapshot: Snapshot) -> dict[int, float]:
    """Bytes of each broker's log dirs; 0 where one does not report them."""
    capacities: dict[int, float] = {}
    unknown = set()
    for row in snapshot.log_dirs.to_pylist():
        if row["total_bytes"] is None:
            unknown.add(row["broker"])
        else:
            capacities[row["broker"]] = capacities.get(row["broker"], 0.0) + row["total_bytes"]
    return {broker: 0.0 if broker in unknown else total for broker, total in capacities.items()}
