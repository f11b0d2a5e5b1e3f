"""What befalls a cluster: disks, log dirs, rights; and that all of it is fixed in the end."""

from __future__ import annotations

from random import Random

import pytest

from rehome.domain.kafka import TopicPartition
from world.fate import FULL_BUT, Fate
from world.history import History
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.kafka.port import ModelPort
from world.script import Do, What

PART = TopicPartition("t", 0)


class Cluster:
    def __init__(self, *, secured: bool = False) -> None:
        self.clock = SetClock()
        self.model = KafkaModel(self.clock, Random(1), 3, secured=secured)
        self.fate = Fate(self.model, History(self.model.world.log), ["t"])
        self.model.actions.create_topic("t", [(1, 2)])
        self.pass_by(1.0)

    def pass_by(self, seconds: float) -> None:
        self.clock.wait(seconds)
        self.model.catch_up_with_clock()

    def does(self, what: What, *args: object) -> bool:
        return self.fate.does(Do(0.0, "fate", what, args))

    @property
    def ours(self) -> ModelPort:
        return self.model.port("User:rehome")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_log_dir_that_fails_is_whole_again_in_the_end(cluster: Cluster) -> None:
    assert cluster.does(What.LOG_DIR_FAILED, 1, 0)
    disks = cluster.model.world.nodes[1].disks
    assert [disk.online for _, disk in sorted(disks.items())] == [False, True]
    cluster.fate.fix()
    cluster.pass_by(60.0)
    assert all(disk.online for disk in disks.values())
    assert cluster.model.world.nodes[1].running


def test_a_disk_that_others_fill_has_little_left_until_the_end(cluster: Cluster) -> None:
    cluster.does(What.DISK_FILLED, 2, 1)
    node = cluster.model.world.nodes[2]
    path = sorted(node.disks)[1]
    assert node.disks[path].capacity - node.used(path) == pytest.approx(FULL_BUT)
    cluster.fate.fix()
    assert node.disks[path].other_bytes == 0.0


@pytest.mark.parametrize(("operation", "hidden"), [("ALL", True), ("ALTER_CONFIGS", False)])
def test_rights_to_a_topic_go_and_come_back(operation: str, hidden: bool) -> None:
    cluster = Cluster(secured=True)
    cluster.fate.all_rights()
    cluster.pass_by(1.0)
    assert cluster.ours.describe_topics()["t"].partitions
    cluster.does(What.RIGHTS_REVOKED, "t", operation)
    cluster.pass_by(1.0)
    assert ("t" not in cluster.ours.describe_topics()) is hidden
    cluster.does(What.RIGHTS_GIVEN_BACK, "t")
    cluster.pass_by(1.0)
    assert cluster.ours.describe_topics()["t"].partitions


def test_what_a_client_does_is_nothing_of_fates(cluster: Cluster) -> None:
    assert not cluster.does(What.SET_RATE, 1, "leader.replication.throttled.rate", 5)
