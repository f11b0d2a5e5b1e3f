"""How long a snapshot of a real cluster takes: `make bench-snapshot`.

Appends a line of JSON to benchmarks/results/snapshot.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.snapshot.model import Snapshot
from rehome.cluster.snapshot.take import take_snapshot

REPLICATION_FACTOR = 3
PARTITIONS_PER_TOPIC = 1_000
CROWD = "crowd-0"  # the first topic
RESULTS = Path(__file__).parents[1] / "results" / "snapshot.jsonl"
# A broker creates a log with several flushes to disk: thousands of them belong into memory.
MEMORY = Path("/dev/shm")
SMALL_INDEXES = {"log.index.size.max.bytes": "4096"}


@contextmanager
def crowded_gateway(replicas: int, timeout_s: float, brokers: int = 4) -> Iterator[ClusterGateway]:
    """A gateway onto brokers that hold at least ``replicas`` replicas, all of them on disk."""
    scratch = MEMORY if os.access(MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="rehome-crowd-", dir=scratch) as directory,
        LocalCluster(
            Path(directory) / "c", brokers, heap_mb=384, broker_config=SMALL_INDEXES
        ) as cluster,
        ClusterGateway(Connection.from_settings(cluster.client_settings())) as gateway,
    ):
        partitions = -(-replicas // REPLICATION_FACTOR)
        _create(cluster, partitions, timeout_s)

        def all_on_disk() -> bool:
            dirs = gateway.describe_log_dirs().value
            return sum(len(found.replicas) for found in dirs) == partitions * REPLICATION_FACTOR

        wait_until(all_on_disk, f"{replicas} replicas on disk", timeout_s, interval_s=2)
        yield gateway


def _create(cluster: LocalCluster, partitions: int, timeout_s: float) -> None:
    topics = []
    for first in range(0, partitions, PARTITIONS_PER_TOPIC):
        count = min(PARTITIONS_PER_TOPIC, partitions - first)
        topics.append(NewTopic(f"crowd-{first}", count, REPLICATION_FACTOR))
    admin = AdminClient(cluster.client_settings())
    for future in admin.create_topics(topics, request_timeout=timeout_s).values():
        future.result()


def measured(snapshot: Snapshot, seconds: list[float]) -> dict[str, Any]:
    """What was measured, when, and on what."""
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "memory_gb": round(pages * page_bytes / 1e9, 1),
        "load_average": round(os.getloadavg()[0], 1),
        "brokers": snapshot.brokers.num_rows,
        "replicas": snapshot.replicas.num_rows,
        "runs": len(seconds),
        "median_s": round(median(seconds), 3),
        "worst_s": max(seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with crowded_gateway(options.replicas, timeout_s=600) as gateway:
        snapshots = [take_snapshot(gateway, datetime.now(UTC)) for _ in range(options.runs)]
    line = json.dumps(measured(snapshots[-1], [snapshot.duration_s for snapshot in snapshots]))
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(line + "\n")
    print(line)


if __name__ == "__main__":
    main()
