"""Runs inside kafka-utils' own environment: a cluster from stdin, its balance on stdout.

The tool's own classes do all the work; only its reading of the cluster is left out. Its balancer
is the argument: PartitionCountBalancer (its default) or GeneticBalancer (which weighs sizes).
"""

import argparse
import json
import sys
import time

from kafka_utils.kafka_cluster_manager.cluster_info.cluster_topology import ClusterTopology
from kafka_utils.kafka_cluster_manager.cluster_info.genetic_balancer import GeneticBalancer
from kafka_utils.kafka_cluster_manager.cluster_info.partition_count_balancer import (
    PartitionCountBalancer,
)

BALANCERS = {of.__name__: of for of in (PartitionCountBalancer, GeneticBalancer)}


class Sizes:
    """What the tool asks of a partition measurer."""

    def __init__(self, sizes):
        self._sizes = sizes

    def get_weight(self, name):
        return self._sizes[name[1]]

    get_size = get_weight


def main():
    given = json.load(sys.stdin)
    sizes = [max(1.0, size / 1e6) for size in given["sizes"]]
    racks = given["racks"]
    brokers = {number: {"host": f"broker{number}"} for number in range(len(racks))}
    rows = {("t", number): row for number, row in enumerate(given["rows"])}
    topology = ClusterTopology(rows, brokers, Sizes(sizes), lambda broker: racks[broker.id])
    args = argparse.Namespace(
        brokers=True,
        leaders=False,
        replication_groups=True,
        max_partition_movements=100,
        max_movement_size=None,
        max_leader_changes=100,
        balancer_args=[],
    )
    started = time.perf_counter()
    BALANCERS[sys.argv[1]](topology, args).rebalance()
    took = time.perf_counter() - started
    after = topology.assignment
    json.dump({"seconds": took, "rows": [after[name] for name in rows]}, sys.stdout)


if __name__ == "__main__":
    main()
