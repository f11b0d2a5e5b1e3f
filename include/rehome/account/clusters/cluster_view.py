"""A cluster as its newest snapshot shows it: brokers by rack, and what is not well."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from rehome.account.clusters.cluster_brokers import broker_states
from rehome.account.clusters.cluster_facts import BrokerState, ClusterView, KnownLoad, Named
from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.configs import ConfigResource, ResourceType
from rehome.domain.kafka import TopicPartition
from rehome.execution.throttle.foreign import ForeignThrottle
from rehome.execution.throttle.keys import FOLLOWER_REPLICAS, LEADER_REPLICAS, split

_LISTS = {
    LEADER_REPLICAS: "leader_throttled_replicas",
    FOLLOWER_REPLICAS: "follower_throttled_replicas",
}
NAMED = 20
"""Partitions and topics that are named; the others are counted."""


@dataclass(frozen=True)
class Ours:
    """What was Rehome's own on a cluster when a snapshot was taken.

    :param throttles: resource and key → values that it had set.
    :param moving: partitions that it was moving.
    """

    throttles: Mapping[tuple[ConfigResource, str], Collection[str]] = field(default_factory=dict)
    moving: Collection[TopicPartition] = frozenset()


def cluster_view(
    snapshot: Snapshot, load: KnownLoad | None = None, ours: Ours | None = None
) -> ClusterView:
    """What a snapshot shows.

    :param load: by what was before this snapshot; None = there is no history.
    """
    ours = ours or Ours()
    replicas = snapshot.replicas
    by_rack: dict[tuple[str, ...], list[BrokerState]] = {}
    brokers = broker_states(snapshot, load)
    for broker in brokers:
        by_rack.setdefault(broker.rack, []).append(broker)
    racks = tuple(("/".join(("", *rack)), tuple(by_rack[rack])) for rack in sorted(by_rack))
    flying = _partitions(replicas.filter(pc.or_(replicas["adding"], replicas["removing"])))
    leads = replicas.group_by(["topic", "partition"]).aggregate([("is_leader", "max")])
    foreign = [partition for partition in flying if partition not in ours.moving]
    settings = list(_settings(snapshot, brokers))
    not_ours = [foreign_part for setting in settings if (foreign_part := _not_ours(setting, ours))]
    return ClusterView(
        cluster_id=snapshot.cluster_id,
        taken_at=snapshot.taken_at,
        racks=racks,
        topics=int(pc.sum(snapshot.topics["visible"]).as_py() or 0),
        partitions=leads.num_rows,
        under_replicated=_names_of(_partitions(replicas.filter(pc.invert(replicas["in_isr"])))),
        offline=_names_of(_partitions(leads.filter(pc.invert(leads["is_leader_max"])))),
        reassigning=_names_of(foreign),
        moving=len(flying) - len(foreign),
        foreign_throttles=_names_of([foreign_part for foreign_part, _ in not_ours]),
        throttled=len(settings) - sum(whole for _, whole in not_ours),
        hidden_topics=len(snapshot.hidden_topics),
        unknown_load=_unknown_load(load),
    )


def _settings(snapshot: Snapshot, brokers: Iterable[BrokerState]) -> Iterator[ForeignThrottle]:
    """Every throttle that the snapshot saw, of whomever."""
    for broker in brokers:
        for key, rate in broker.throttled.items():
            yield ForeignThrottle(ConfigResource.broker(broker.broker), key, str(rate))
    for key, column in _LISTS.items():
        topics = snapshot.topics
        with_list = topics.filter(pc.fill_null(pc.not_equal(topics[column], ""), False))
        for topic, value in zip(
            *(with_list[name].to_pylist() for name in ("topic", column)), strict=True
        ):
            yield ForeignThrottle(ConfigResource.topic(topic), key, value)


def _not_ours(setting: ForeignThrottle, ours: Ours) -> tuple[ForeignThrottle, bool] | None:
    """What of a setting Rehome has not set, and whether that is all of it; None = it has set it.

    A rate that is in force on a broker may be that of the brokers' default.
    """
    places = {setting.resource}
    if setting.resource.type is ResourceType.BROKER:
        places.add(ConfigResource.cluster_default())
    our_items = {item for place in places for item in ours.throttles.get((place, setting.key), ())}
    items = split(setting.value)
    left = [item for item in items if item not in our_items]
    return (replace(setting, value=",".join(left)), len(left) == len(items)) if left else None


def _unknown_load(load: KnownLoad | None) -> str:
    return "there is no history: collect_snapshots builds it" if load is None else load.problems()


def _partitions(rows: pa.Table) -> list[TopicPartition]:
    keys = rows.group_by(["topic", "partition"]).aggregate([])
    columns = (keys[name].to_pylist() for name in ("topic", "partition"))
    return sorted(TopicPartition(*key) for key in zip(*columns, strict=True))


def _names_of(items: Sequence[object]) -> Named:
    return Named(len(items), tuple(map(str, items[:NAMED])))
