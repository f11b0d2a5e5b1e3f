"""Runs inside kafka-tools' own environment: a cluster from stdin, its balance on stdout.

The tool's own classes do all the work; only its reading of ZooKeeper and of sizes is left out.
"""

import argparse
import json
import random
import sys
import time

from kafka.tools.assigner.actions.balancemodules.rackaware import ActionBalanceRackAware
from kafka.tools.assigner.actions.balancemodules.size import ActionBalanceSize
from kafka.tools.models.broker import Broker
from kafka.tools.models.cluster import Cluster
from kafka.tools.models.topic import Topic


def main():
    given = json.load(sys.stdin)
    random.seed(0)
    cluster = Cluster()
    for number, rack in enumerate(given["racks"]):
        broker = Broker(f"broker{number}", id=number)
        broker.rack = rack
        cluster.add_broker(broker)
    topic = Topic("t", len(given["rows"]))
    cluster.add_topic(topic)
    for partition, row, size in zip(topic.partitions, given["rows"], given["sizes"], strict=True):
        for broker in row:
            partition.add_replica(cluster.brokers[broker])
        partition.set_size(max(5, size // 1024))
    args = argparse.Namespace(exclude_topics=[])
    started = time.perf_counter()
    ActionBalanceSize(args, cluster).process_cluster()
    ActionBalanceRackAware(args, cluster).process_cluster()
    took = time.perf_counter() - started
    rows = [[broker.id for broker in partition.replicas] for partition in topic.partitions]
    json.dump({"seconds": took, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main()
