"""A cluster as its newest snapshot shows it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from include.cluster.snapshot.model import TOPICS
from include.domain.kafka import TopicPartition
from include.page.cluster_view import NAMED, Named, cluster_view
from tests.planning.clusters import Cluster

PARTITIONS = [TopicPartition("t", number) for number in range(30)]
CLUSTER = Cluster(
    racks={1: "/dc0/r0", 2: "/dc0/r1", 3: "/dc1/r0", 4: "/dc1/r0"},
    replicas=dict.fromkeys(PARTITIONS, (1, 2, 3)),
    sizes=dict.fromkeys(PARTITIONS, 100),
    disks={1: (10_000, 4_000), 2: (10_000, 10_000), 3: (10_000, 5_000), 4: (10_000, 9_000)},
)


def test_brokers_stand_in_their_racks_with_what_they_hold() -> None:
    view = cluster_view(CLUSTER.snapshot())
    racks = [(rack, [each.broker for each in brokers]) for rack, brokers in view.racks]
    assert racks == [("/dc0/r0", [1]), ("/dc0/r1", [2]), ("/dc1/r0", [3, 4])]
    one, two, _, four = view.brokers
    assert (one.replicas, one.leaders, one.size_bytes, one.used) == (30, 30, 3000, 0.6)
    assert (two.replicas, two.leaders, two.used) == (30, 0, 0.0)
    assert (four.replicas, four.size_bytes, four.problem) == (0, 0, "")
    assert (view.topics, view.partitions) == (1, 30)
    for well in (view.under_replicated, view.offline, view.reassigning, view.throttled):
        assert well == Named(0, ())


def test_what_is_not_well_is_counted_and_the_first_are_named() -> None:
    lagging = frozenset((partition, 3) for partition in PARTITIONS[:25])
    view = cluster_view(replace(CLUSTER, lagging=lagging).snapshot())
    assert view.under_replicated.count == 25
    assert view.under_replicated.first == tuple(f"t-{number}" for number in range(NAMED))
    assert [each.out_of_sync for each in view.brokers] == [0, 0, 25, 0]
    flying = frozenset({(PARTITIONS[7], 3)})
    assert cluster_view(replace(CLUSTER, adding=flying).snapshot()).reassigning == Named(
        1, ("t-7",)
    )


def test_dead_brokers_cordoned_dirs_and_throttled_topics_are_told() -> None:
    view = cluster_view(replace(CLUSTER, dead=frozenset({2}), cordoned=frozenset({4})).snapshot())
    _, dead, _, cordoned = view.brokers
    assert (dead.live, bool(dead.problem)) == (False, True)
    assert (dead.used, dead.size_bytes) == (None, None)
    assert cordoned.cordoned_log_dirs == 1
    snapshot = CLUSTER.snapshot()
    (topic,) = snapshot.topics.to_pylist()
    for lists, count in (({}, 0), ({"leader_throttled_replicas": "0:1"}, 1)):
        topics = pa.Table.from_pylist([topic | lists], schema=TOPICS)
        assert cluster_view(replace(snapshot, topics=topics)).throttled.count == count
