"""A broker that comes back without the data of a topic."""

from __future__ import annotations

import shutil

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import HighWatermark, TopicPartition


def lose(cluster: LocalCluster, gateway: ClusterGateway, topic: str, broker: int) -> None:
    """Kill the broker, and take the topic's directories from its disks before it returns."""
    cluster.kill(broker)
    for log_dir in cluster.log_dirs(broker):
        for directory in log_dir.glob(f"{topic}-*"):
            shutil.rmtree(directory)
    cluster.restart(broker)
    cluster.wait_for_brokers([broker])
    partition = TopicPartition(topic, 0)

    def empty() -> bool:
        state = gateway.describe_topics([topic])[topic].partitions[0]
        if state.leader is None:
            return False
        found = gateway.high_watermarks({partition: state.leader}).value.get(partition)
        return isinstance(found, HighWatermark) and found.offset == 0

    wait_until(empty, "the leader to be empty", 120)
