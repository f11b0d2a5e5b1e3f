"""Fixtures on real brokers: one cluster for the session, private ones for tests that break it."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from hypothesis import settings

from local.kafka.cluster import LocalCluster, Security
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.execution.throttle.ownership.marks import DEFAULT
from tests.dags.clusters import Throttles, name_of, throttles_of
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.throttle.on_brokers import marks
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.postgresql import PostgreSQL
from tests.ledger.set_clock import SetClock
from tests.session.needs import Need, needs
from tests.topic_known import wait_until_gone, wait_until_known

pytest_plugins = [
    "tests.session.airflow_home",
    "tests.ledger.migrated_once",
    "tests.session.browser",
    "tests.session.garbage",
    "tests.session.marked_by_needs",
    "tests.session.s3_server",
    "tests.session.shown_elsewhere",
    "tests.metrics.statsd_listener",
    "tests.session.side_by_side",
    "tests.session.tried",
    "tests.versions.parts",
    "tests.versions.whole",
]

# Without a deadline: on a busy machine a case may take longer than 0.2 s.
settings.register_profile("the same cases in every run", derandomize=True, deadline=None)
settings.load_profile("the same cases in every run")

_serial = itertools.count()

LATE_DEAD = {"broker.session.timeout.ms": "180000"}
"""The controller takes a broker for dead that sends no heartbeat for 9 s: on a busy machine one
that lives may be late.
"""
DEAD_AFTER_A_MINUTE = {"broker.session.timeout.ms": "60000"}


@pytest.fixture(scope="session")
@needs(Need.BROKERS)
def cluster() -> Iterator[LocalCluster]:
    """Four real brokers shared by the whole session; leave them as they were found.

    One may be paused: it stays in the metadata for minutes. Kill brokers of a ``mortal`` cluster.
    """
    with _cluster(controller_config=LATE_DEAD) as running:
        yield running


@pytest.fixture(scope="session")
@needs(Need.BROKERS)
def secured_cluster() -> Iterator[LocalCluster]:
    """Four brokers with SASL_SSL, SCRAM-SHA-512 and ACLs; users as in :class:`Security`.

    Take back with ``revoke`` what a test gave with ``allow``. A broker may be paused for less than
    a minute, and one that was killed returns after as long.
    """
    with _cluster(security=Security(), controller_config=DEAD_AFTER_A_MINUTE) as running:
        yield running


@pytest.fixture(scope="session")
@needs(Need.BROKERS)
def mortal_cluster() -> Iterator[LocalCluster]:
    """Four brokers that tests may kill and pause; :func:`revive` them afterwards."""
    with _cluster() as running:
        yield running


@pytest.fixture
def mortal(mortal_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """The same, for one test: its brokers live again afterwards, and no throttle is left."""
    yield mortal_cluster
    revive(mortal_cluster)


def revive(cluster: LocalCluster) -> None:
    """Let every broker live, without a rate or a mark, and no topic but internal ones."""
    for broker in cluster.broker_ids:
        if broker in cluster.pids:
            cluster.resume(broker)
        else:
            cluster.restart(broker)
    everyone = set(cluster.broker_ids)
    wait_until(lambda: cluster.live_brokers() == everyone, "every broker to be back", 240)
    places = [DEFAULT, *map(ConfigResource.broker, cluster.broker_ids)]
    with impatient_gateway(cluster) as gateway:
        rates = itertools.product(places, (LEADER_RATE, FOLLOWER_RATE))
        left = ((DEFAULT, mark) for mark in marks(gateway))
        gone = [ConfigChange(*each, ConfigOperation.DELETE) for each in (*rates, *left)]
        assert not any(gateway.alter_configs(gone).values())
        wait_until(lambda: not any(throttles_of(gateway, []).values()), "rates to go")
    with Topics(cluster) as helper:
        there = helper.admin.list_topics(timeout=60).topics
        helper.created += [topic for topic in there if not topic.startswith("__")]


@pytest.fixture(scope="session")
def gateway(cluster: LocalCluster) -> Iterator[OwnGateway]:
    """A gateway on the shared cluster, as patient as in production."""
    with OwnGateway(Connection.from_settings(cluster.client_settings())) as opened:
        yield opened


def impatient_gateway(cluster: LocalCluster) -> OwnGateway:
    """A gateway that waits 5 s for answers: for clusters with a broker that gives none."""
    connection = Connection.from_settings(cluster.client_settings())
    return OwnGateway(connection, request_timeout_s=5, connect_timeout_s=2)


@pytest.fixture
@needs(Need.BROKERS)
def private_cluster() -> Iterator[Callable[..., LocalCluster]]:
    """Makes clusters that end with the test: ``private_cluster(brokers=3)``, started."""
    started: list[LocalCluster] = []

    def start(*args: Any, **options: Any) -> LocalCluster:
        running = _cluster(*args, **options)
        started.append(running)
        running.start()
        return running

    yield start
    for running in started:
        running.stop()
        shutil.rmtree(running.directory)


class _SelfCleaning(LocalCluster):
    def __exit__(self, *exc_info: Any) -> None:
        super().__exit__(*exc_info)
        shutil.rmtree(self.directory)


def _cluster(*args: Any, **options: Any) -> LocalCluster:
    return _SelfCleaning(Path(tempfile.mkdtemp(prefix="rehome-test-")), *args, **options)


class Topics:
    """Creates topics with explicit assignments, fills them, and deletes them at the end."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        # It lives until its test is forgotten; the brokers' end is no news then.
        self.admin = AdminClient(cluster.client_settings() | {"log_level": "0"})
        self.created: list[str] = []

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.delete_all()

    def create(
        self,
        assignment: Sequence[Sequence[int]],
        name: str = "",
        config: dict[str, str] | None = None,
    ) -> str:
        """A topic whose partition n has the replicas ``assignment[n]``; returns its unique name."""
        topic = f"{name or 'topic'}-{os.getpid()}-{next(_serial)}"
        self.create_as(topic, assignment, config)
        return topic

    def create_as(
        self,
        topic: str,
        assignment: Sequence[Sequence[int]],
        config: dict[str, str] | None = None,
    ) -> None:
        """A topic of exactly this name."""
        future = self.admin.create_topics(
            [
                NewTopic(
                    topic,
                    num_partitions=len(assignment),
                    replica_assignment=[list(row) for row in assignment],
                    config=config or {},
                )
            ]
        )[topic]
        future.result(120)
        self.created.append(topic)

        wait_until_known(self.cluster, topic, assignment)

    def fill(self, topic: str, messages: int, size_bytes: int = 1000, *, acks: str = "all") -> None:
        """Produce ``messages`` to each partition, acknowledged by the whole ISR."""
        producer = Producer(self.cluster.client_settings() | {"acks": acks, "linger.ms": "5"})
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                errors.append(error)

        value = os.urandom(size_bytes)
        partitions = self.admin.list_topics(topic, timeout=60).topics[topic].partitions
        for partition, _ in itertools.product(partitions, range(messages)):
            while True:
                try:
                    producer.produce(topic, value, partition=partition, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(120)
        assert not left, f"{left} messages undelivered"
        assert not errors, errors[0]

    def delete_all(self) -> None:
        """Delete what this helper created and still exists."""
        there = self.admin.list_topics(timeout=60).topics
        names = [topic for topic in dict.fromkeys(self.created) if topic in there]
        if names:
            wait(self.admin.delete_topics(names).values(), 120)
            parts = [TopicPartition(name, n) for name in names for n in there[name].partitions]
            wait_until_gone(self.cluster, parts)


@pytest.fixture(scope="session")
@needs(Need.POSTGRESQL)
def postgresql() -> Iterator[PostgreSQL]:
    """A server for the session, without any ledger in it."""
    with PostgreSQL() as server:
        yield server


@pytest.fixture(scope="session")
def empty_ledgers(tmp_path_factory: pytest.TempPathFactory) -> EmptyLedgers:
    return EmptyLedgers(tmp_path_factory.mktemp("ledger"))


@pytest.fixture
def clock() -> SetClock:
    """What ledgers of tests read the time from."""
    return SetClock()


@pytest.fixture
def topics(cluster: LocalCluster) -> Iterator[Topics]:
    """Topic helper on the shared cluster; what it created is deleted afterwards."""
    with Topics(cluster) as helper:
        yield helper


@pytest.fixture
def secured_topics(secured_cluster: LocalCluster) -> Iterator[Topics]:
    """Topic helper on the secured cluster, as its admin."""
    with Topics(secured_cluster) as helper:
        yield helper


@pytest.fixture
def foreign_throttle(gateway: OwnGateway) -> Iterator[Callable[[str], Throttles]]:
    """Sets what another client might have set: a topic's lists and a broker's rate.

    Returns all throttles there are then: these and no others. ``gateway`` is on ``cluster``.
    """
    rate = ConfigChange(ConfigResource.broker(2), LEADER_RATE, ConfigOperation.SET, "7654321")

    def put(topic: str) -> Throttles:
        lists = {LEADER_REPLICAS: "1:2,0:1", FOLLOWER_REPLICAS: "1:3"}
        changes = [
            ConfigChange(ConfigResource.topic(topic), key, ConfigOperation.SET, value)
            for key, value in lists.items()
        ]
        assert not any(gateway.alter_configs([rate, *changes]).values())
        foreign = {name_of(rate.resource): {LEADER_RATE: "7654321"}}
        foreign[name_of(ConfigResource.topic(topic))] = lists

        def alone() -> Throttles | None:
            found = throttles_of(gateway, [topic])
            set_somewhere = {name: values for name, values in found.items() if values}
            return found if set_somewhere == foreign else None

        found = wait_until(alone, "the foreign throttles, and no others")
        assert found is not None
        return found

    yield put
    gone = ConfigChange(rate.resource, rate.key, ConfigOperation.DELETE)
    assert not any(gateway.alter_configs([gone]).values())
