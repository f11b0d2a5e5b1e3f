"""A cluster as its newest snapshot shows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rehome.account.clusters.cluster_facts import Named
from rehome.account.clusters.cluster_view import NAMED, Ours, cluster_view
from rehome.cluster.snapshot.model import BROKERS, TOPICS
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.time_range import DAY_S
from rehome.execution.throttle.keys import LEADER_RATE, LEADER_REPLICAS
from rehome.load_history.broker_loads import BrokerLoads
from rehome.load_history.known_rates import Demands, LoadHistory
from tests.load_history.recorded import RATE, START, Cluster
from tests.planning import clusters
from tests.quality.snapshots import Rows

PARTITIONS = [TopicPartition("t", number) for number in range(30)]
CLUSTER = clusters.Cluster(
    racks={1: "/dc0/r0", 2: "/dc0/r1", 3: "/dc1/r0", 4: "/dc1/r0"},
    replicas=dict.fromkeys(PARTITIONS, (1, 2, 3)),
    sizes=dict.fromkeys(PARTITIONS, 100),
    disks={1: (10_000, 4_000), 2: (10_000, 10_000), 3: (10_000, 5_000), 4: (10_000, 9_000)},
)


def test_brokers_are_drawn_in_their_racks_with_their_loads() -> None:
    view = cluster_view(CLUSTER.snapshot())
    racks = [(rack, [each.broker for each in brokers]) for rack, brokers in view.racks]
    assert racks == [("/dc0/r0", [1]), ("/dc0/r1", [2]), ("/dc1/r0", [3, 4])]
    one, two, _, four = view.brokers
    assert (one.replicas, one.leaders, one.size_bytes, one.used) == (30, 30, 3000, 0.6)
    assert (two.replicas, two.leaders, two.used) == (30, 0, 0.0)
    assert (four.replicas, four.size_bytes, four.problem) == (0, 0, "")
    assert (view.topics, view.partitions) == (1, 30)
    for well in (view.under_replicated, view.offline, view.reassigning, view.foreign_throttles):
        assert well == Named(0, ())
    assert (view.moving, view.throttled) == (0, 0)
    assert view.unknown_load == "there is no history: collect_snapshots builds it"


def test_unhealthy_partitions_are_counted_and_the_first_are_named() -> None:
    lagging = frozenset((partition, 3) for partition in PARTITIONS[:25])
    view = cluster_view(replace(CLUSTER, lagging=lagging).snapshot())
    assert view.under_replicated.count == 25
    assert view.under_replicated.first == tuple(f"t-{number}" for number in range(NAMED))
    assert [each.out_of_sync for each in view.brokers] == [0, 0, 25, 0]


def test_reassignments_of_other_clients_are_named_and_rehomes_own_counted() -> None:
    flying = frozenset({(PARTITIONS[7], 3), (PARTITIONS[9], 3)})
    snapshot = replace(CLUSTER, adding=flying).snapshot()
    view = cluster_view(snapshot)
    assert (view.reassigning, view.moving) == (Named(2, ("t-7", "t-9")), 0)
    view = cluster_view(snapshot, ours=Ours(moving={PARTITIONS[9]}))
    assert (view.reassigning, view.moving) == (Named(1, ("t-7",)), 1)


def test_dead_brokers_and_cordoned_dirs_are_shown() -> None:
    view = cluster_view(replace(CLUSTER, dead=frozenset({2}), cordoned=frozenset({4})).snapshot())
    _, dead, _, cordoned = view.brokers
    assert (dead.live, bool(dead.problem)) == (False, True)
    assert (dead.used, dead.size_bytes) == (None, None)
    assert cordoned.cordoned_log_dirs == 1


def test_throttles_that_rehome_has_not_set_are_named() -> None:
    snapshot = CLUSTER.snapshot()
    (topic,), brokers = snapshot.topics.to_pylist(), snapshot.brokers.to_pylist()
    lists = {"leader_throttled_replicas": "0:1,1:1", "follower_throttled_replicas": ""}
    brokers[1]["leader_throttled_rate"] = 5_000_000
    brokers[2]["config_error"] = "it did not answer"
    snapshot = replace(
        snapshot,
        topics=pa.Table.from_pylist([topic | lists], schema=TOPICS),
        brokers=pa.Table.from_pylist(brokers, schema=BROKERS),
    )
    view = cluster_view(snapshot)
    rate = f"broker 2 {LEADER_RATE}=5000000"
    assert view.foreign_throttles == Named(2, (rate, f"topic t {LEADER_REPLICAS}=0:1,1:1"))
    assert view.throttled == 0
    assert [broker.throttled for broker in view.brokers] == [{}, {LEADER_RATE: 5_000_000}, {}, {}]
    assert view.brokers[2].config_problem == "it did not answer"
    ours = Ours(
        throttles={
            (ConfigResource.broker(2), LEADER_RATE): {"4000000", "5000000"},
            (ConfigResource.topic("t"), LEADER_REPLICAS): {"0:1"},
        }
    )
    view = cluster_view(snapshot, ours=ours)
    assert view.foreign_throttles == Named(1, (f"topic t {LEADER_REPLICAS}=1:1",))
    assert view.throttled == 2, "the list is partly Rehome's"
    default = Ours(throttles={(ConfigResource.cluster_default(), LEADER_RATE): {"5000000"}})
    view = cluster_view(snapshot, ours=default)
    assert view.foreign_throttles.first == (f"topic t {LEADER_REPLICAS}=0:1,1:1",)
    assert view.throttled == 1


def test_traffic_and_growth_are_those_that_plans_are_made_by(tmp_path: Path) -> None:
    recorded = Cluster(f"memory://{tmp_path.name}")
    for number in range(5):
        recorded.snapshot(20 * number)
    recorded.roll_up()
    rows = Rows()
    snapshot = replace(rows.snapshot(), taken_at=START + timedelta(minutes=81))
    known = LoadHistory.read(recorded.warehouse, snapshot, Demands(min_hours=1.0))
    view = cluster_view(snapshot, BrokerLoads(known))
    assert view.unknown_load == ""
    for broker in view.brokers:
        held = [row for row in rows.replicas if row["broker"] == broker.broker]
        grows = sum(row["partition"] * RATE for row in held)
        assert broker.written_bytes_per_s == pytest.approx(grows, rel=0.05)
        led = sum(row["partition"] * RATE for row in held if row["is_leader"])
        assert broker.sent_bytes_per_s == pytest.approx(led, rel=0.05)
        days = broker.usable_bytes / grows / DAY_S if grows else None
        assert broker.days_until_full == (None if days is None else pytest.approx(days, abs=0.01))
    young = cluster_view(snapshot, BrokerLoads(LoadHistory.read(recorded.warehouse, snapshot)))
    assert young.unknown_load == "the history covers 1.3 h of the 24 h it takes"
    assert [broker.written_bytes_per_s for broker in young.brokers] == [None] * 4
