"""What brokers of this version can, and what they lack, on real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

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

    def rests(self, topic: str, log_dir: str) -> bool:
        """Whether it is there, and is not being copied."""
        return self.place(topic) == {"current": log_dir}

    def has_all(self, topic: str) -> bool:
        """Whether a copy of it has every message, or has ended."""
        read = self.gateway.describe_log_dirs([1], [TopicPartition(topic, 0)]).value
        copies = [r for each in read for r in each.replicas.values() if r.is_future]
        return all(copy.offset_lag == 0 for copy in copies)

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


def _cancel_until_copies_stand(one: OneBroker, cancelled: str, later: str) -> bool:
    """Cancel copies that have every message, until another one does not end.

    The broker waits half a second before it tells the controller of such a copy.
    """
    for _ in range(8):
        back, there = one.place(cancelled)["current"], one.other(cancelled)
        one.send(cancelled, there)
        wait_until(partial(one.has_all, cancelled), "the copy to have every message")
        one.send(cancelled, back)
        wait_until(partial(one.rests, cancelled, back), "the cancel")
        target = one.other(later)
        one.send(later, target)
        try:
            wait_until(partial(one.rests, later, target), "its end", 5)
        except TimeoutError:
            return True
    return False


def test_copies_between_log_dirs_end_or_a_dry_run_says_that_they_may_not(
    one_broker: OneBroker,
) -> None:
    topics = Topics(one_broker.cluster)
    cancelled, later = topics.create([[1]]), topics.create([[1]])
    ends = RELEASE >= (3, 9)
    warned = [] if ends else [(Severity.WARNING, "broker 1")]
    assert _within(one_broker, later) == warned
    assert _cancel_until_copies_stand(one_broker, cancelled, later) is not ends
    if ends:
        return
    assert _within(one_broker, cancelled) == [(Severity.ERROR, "broker 1")]
    target = one_broker.place(later)["future"]
    one_broker.cluster.shutdown(1)
    one_broker.cluster.restart(1)
    wait_until(partial(one_broker.rests, later, target), "its end after a restart")
    assert _within(one_broker, cancelled) == warned
