"""What brokers of this version can, and what they lack, on real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.run.findings import Severity
from rehome.execution.dry_run.version_checks import lacking
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.dry_run.checked import check, found
from tests.ledger.small_plans import move
from tests.versions.parts import LEVEL
from tests.versions.since import RELEASE

LEVELS = {
    (3, 7): 19,
    (3, 9): 21,
    (4, 0): 25,
    (4, 1): 27,
    (4, 2): 29,
    (4, 3): 30,
    (4, 4): 33,
}
"""Highest level of metadata.version by release."""


def test_each_broker_says_what_it_can_and_what_it_lacks_follows(
    gateway: OwnGateway, cluster: LocalCluster, record_property: Callable[[str, object], None]
) -> None:
    level = gateway.finalized_features()["metadata.version"]
    record_property(LEVEL, level)
    answers = gateway.supported_versions(cluster.broker_ids)
    assert not answers.missing
    assert answers.value.keys() == set(cluster.broker_ids)
    assert {able.features["metadata.version"] for able in answers.value.values()} == {
        LEVELS[RELEASE]
    }
    assert level == LEVELS[RELEASE]
    lacks, everyone = lacking(answers.value), cluster.broker_ids
    assert lacks.checked_replicas == (everyone if RELEASE < (4, 1) else ())
    assert lacks.waiting == (everyone if RELEASE < (3, 8) else ())
    assert lacks.ending_copies == (everyone if RELEASE < (3, 9) else ())


def test_a_dead_broker_says_nothing_and_the_others_do(mortal: LocalCluster) -> None:
    with impatient_gateway(mortal) as gateway:
        mortal.kill(4)
        answers = gateway.supported_versions([1, 4])
    assert set(answers.value) == {1}
    assert set(answers.missing) == {4}


@dataclass(frozen=True)
class OneBroker:
    """A broker with two log dirs, and topics of one replica each."""

    cluster: LocalCluster
    gateway: OwnGateway

    def place(self, topic: str) -> dict[str, str]:
        """Where the topic's replica is, and where it is being copied to."""
        read = self.gateway.describe_log_dirs([1], [TopicPartition(topic, 0)]).value
        return {
            "future" if replica.is_future else "current": log_dir.path
            for log_dir in read
            for replica in log_dir.replicas.values()
        }

    def copied(self, topic: str) -> bool:
        """Whether its copy has every message, or has taken the replica's place."""
        read = self.gateway.describe_log_dirs([1], [TopicPartition(topic, 0)]).value
        found = [replica for log_dir in read for replica in log_dir.replicas.values()]
        return len({replica.size_bytes for replica in found}) == 1

    def other(self, topic: str) -> str:
        """The log dir in which it is not."""
        here = self.place(topic)["current"]
        (there,) = {str(path) for path in self.cluster.log_dirs(1)} - {here}
        return there

    def send(self, topic: str, log_dir: str) -> None:
        replica = ReplicaId(topic, 0, 1)
        assert self.gateway.alter_replica_log_dirs({replica: log_dir}) == {replica: None}


@pytest.fixture
def one_broker(private_cluster: Callable[..., LocalCluster]) -> Iterator[OneBroker]:
    cluster = private_cluster(brokers=1)
    with impatient_gateway(cluster) as gateway:
        yield OneBroker(cluster, gateway)


def _within(one: OneBroker, topic: str) -> list[tuple[Severity, str]]:
    """What a dry run of a move to the other log dir finds of versions."""
    snapshot = take_snapshot(one.gateway, datetime.now(UTC))
    log_dirs = (one.place(topic)["current"],), (one.other(topic),)
    planned = move(topic, 0, (1,), (1,), 100, *log_dirs)
    result = check(one.gateway, planned, snapshot=snapshot)
    return [(each.severity, each.subject) for each in found(result, "versions")]


def test_copies_between_log_dirs_end_or_a_dry_run_says_that_they_may_not(
    one_broker: OneBroker,
) -> None:
    """A copy is cancelled within the half second in which the broker waits to tell the controller
    of it: on brokers before 3.9 no copy ends from then on.
    """
    topics = Topics(one_broker.cluster)
    cancelled, later = topics.create([[1]]), topics.create([[1]])
    topics.fill(cancelled, 100)
    ends = RELEASE >= (3, 9)
    warned = [] if ends else [(Severity.WARNING, "broker 1")]
    assert _within(one_broker, later) == warned
    back, there = one_broker.place(cancelled)["current"], one_broker.other(cancelled)
    one_broker.send(cancelled, there)
    wait_until(lambda: one_broker.copied(cancelled), "the copy to have every message", 30, 0.01)
    one_broker.send(cancelled, back)
    wait_until(lambda: one_broker.place(cancelled) == {"current": back}, "the cancel")
    target = one_broker.other(later)
    one_broker.send(later, target)
    if ends:
        wait_until(lambda: one_broker.place(later) == {"current": target}, "the copy to end")
        return
    wait_until(lambda: one_broker.place(later).get("future") == target, "the copy")
    with pytest.raises(TimeoutError):
        wait_until(lambda: one_broker.place(later) == {"current": target}, "its end", 10)
    assert _within(one_broker, cancelled) == [(Severity.ERROR, "broker 1")]
    one_broker.cluster.shutdown(1)
    one_broker.cluster.restart(1)
    wait_until(lambda: one_broker.place(later) == {"current": target}, "its end after a restart")
    assert _within(one_broker, cancelled) == warned
