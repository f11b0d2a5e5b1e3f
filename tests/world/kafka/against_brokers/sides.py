"""The two sides of a comparison: real brokers, and the model of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from random import Random

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from local.kafka.cluster import LocalCluster
from local.kafka.jvm import VERSION
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import MIN_ISR, ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition as Partition
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.kafka.nodes import BrokerSpec

TIMEOUT_S = 60.0
OWN_SOURCES = {True: "DYNAMIC_BROKER_CONFIG", False: "DYNAMIC_DEFAULT_BROKER_CONFIG"}


class RealSide:
    """A cluster on this machine."""

    def __init__(self, cluster: LocalCluster, gateway: ClusterGateway) -> None:
        self.cluster = cluster
        self.gateway = gateway
        self._admin = AdminClient(cluster.client_settings() | {"log_level": "0"})
        self._producer: Producer | None = None

    @property
    def port(self) -> ClusterPort:
        return self.gateway

    def log_dir(self, broker: int, number: int) -> str:
        return str(self.cluster.log_dirs(broker)[number])

    def fill(self, topic: str, partition: int, messages: int, size: int) -> None:
        if self._producer is None:
            settings = {"acks": "all", "linger.ms": "5", "log_level": "0"}
            self._producer = Producer(self.cluster.client_settings() | settings)
        producer = self._producer
        wait_until(
            lambda: partition in producer.list_topics(topic, TIMEOUT_S).topics[topic].partitions,
            "the producer to know the partition",
        )
        for _ in range(messages):
            self._producer.produce(topic, bytes(size), partition=partition)
            self._producer.poll(0)
        left = self._producer.flush(TIMEOUT_S)
        assert not left, f"{left} messages undelivered"

    def delete_topic(self, topic: str) -> int:
        try:
            self._admin.delete_topics([topic])[topic].result(TIMEOUT_S)
        except KafkaException as error:
            return int(error.args[0].code())
        return 0

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        for answer in self._admin.delete_records(
            [TopicPartition(topic, partition, before)]
        ).values():
            answer.result(TIMEOUT_S)

    def forget_configs(self) -> None:
        """Delete every dynamic config of the brokers, but the cluster's own min ISR."""
        places = [
            ConfigResource.cluster_default(),
            *map(ConfigResource.broker, self.cluster.broker_ids),
        ]
        changes = [
            ConfigChange(place, key, ConfigOperation.DELETE)
            for place, found in self.gateway.describe_configs(places).items()
            if isinstance(found, dict)
            for key, value in found.items()
            if value.source == OWN_SOURCES[bool(place.name)] and key != MIN_ISR
        ]
        assert not any(self.gateway.alter_configs(changes).values())

    def kill(self, broker: int) -> None:
        self.cluster.kill(broker)

    def stop(self, broker: int) -> None:
        self.cluster.shutdown(broker)

    def start(self, broker: int, empty: bool) -> None:
        if empty:
            for path in self.cluster.log_dirs(broker):
                for found in path.iterdir():
                    if found.is_dir():
                        shutil.rmtree(found)
        self.cluster.restart(broker)


class ModelSide:
    """The model of such a cluster, in whose time every step has settled."""

    def __init__(
        self,
        racks: Mapping[int, str],
        log_dirs: Mapping[int, tuple[str, ...]],
        seed: int,
        version: tuple[int, int] = (4, 3),
    ) -> None:
        self.clock = SetClock()
        static = {"log.retention.ms": "-1", "num.io.threads": "4"}
        specs = {
            broker: BrokerSpec(
                rack=rack, log_dirs=dict.fromkeys(log_dirs[broker], 1e12), static=static
            )
            for broker, rack in racks.items()
        }
        self.model = KafkaModel(self.clock, Random(seed), specs, version)
        self._port = self.model.port()
        self.settle()

    @property
    def port(self) -> ClusterPort:
        return self._port

    def settle(self, seconds: float = 12.0) -> None:
        self.clock.wait(seconds)
        self.model.catch_up_with_clock()

    def log_dir(self, broker: int, number: int) -> str:
        return list(self.model.world.nodes[broker].disks)[number]

    def fill(self, topic: str, partition: int, messages: int, size: int) -> None:
        self.model.actions.fill(Partition(topic, partition), messages * size, size)

    def delete_topic(self, topic: str) -> int:
        error = self.model.actions.delete_topic(topic)
        return error.code if error is not None else 0

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.model.actions.delete_records(Partition(topic, partition), before)

    def kill(self, broker: int) -> None:
        self.model.actions.kill(broker)

    def stop(self, broker: int) -> None:
        self.model.actions.stop(broker)

    def start(self, broker: int, empty: bool) -> None:
        self.model.actions.start(broker, empty=empty)


def model_of(cluster: LocalCluster, seed: int) -> ModelSide:
    """The model of a local cluster: its brokers, racks, log dirs and settings."""
    dirs = {broker: tuple(map(str, cluster.log_dirs(broker))) for broker in cluster.broker_ids}
    major, minor, *_ = map(int, VERSION.split("."))
    return ModelSide(cluster.racks, dirs, seed, (major, minor))
