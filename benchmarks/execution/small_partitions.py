"""Thousands of empty partitions, by Rehome and by Kafka's own tool: `make bench-small`.

Writes benchmarks/results/small_partitions.json and the table in docs/benchmarks.md: the time from
the first reassignment to the last, and what a producer felt meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.document import DOCS, put, table
from benchmarks.execution.contenders import (
    CONTENDERS,
    Ground,
    Watcher,
    check_all_moved,
    take_back,
    warm_up,
)
from benchmarks.execution.execute import MEMORY, Probe, create_topics, felt
from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.settings import Settings
from world.plan_of_moves import plan_of_moves

RESULTS = Path(__file__).parents[1] / "results" / "small_partitions.json"
DOCUMENT = DOCS / "benchmarks.md"
RATE_BYTES_PER_S = 50_000_000
WAYS = ("rehome", "kafka_tool")
COLUMNS = {"": "way", "seconds": "seconds", "producer p99 ms": "producer_p99_ms"}
WORDS = {"rehome": "Rehome", "kafka_tool": "kafka-reassign-partitions, all at once"}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Both ways in turn, on one cluster: broker 1 is drained of all of them."""
    scratch = MEMORY if os.access(MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="rehome-small-", dir=scratch) as directory,
        LocalCluster(
            Path(directory) / "cluster", options.brokers, heap_mb=options.heap_mb
        ) as cluster,
        ClusterGateway(Connection.from_settings(cluster.client_settings())) as gateway,
    ):
        drained, *others = cluster.broker_ids
        each = options.partitions // options.topics
        rows = [[drained, others[n % len(others)]] for n in range(each)]
        topics = [f"small-{number:03}" for number in range(options.topics)]
        create_topics(cluster, dict.fromkeys(topics, rows))
        moves = tuple(
            Move(
                TopicPartition(topic, n),
                (first, second),
                (others[(n + 1) % len(others)], second),
                0,
                MoveReason.BALANCE,
            )
            for topic in topics
            for n, (first, second) in enumerate(rows)
        )
        plan = plan_of_moves("small", cluster.cluster_id, moves, RATE_BYTES_PER_S)
        ground = Ground(
            *(cluster, gateway, plan, RATE_BYTES_PER_S, Path(directory)),
            timeout_s=1200,
            settings=Settings(),
            wake_s=options.wake_s,
        )
        probe = Probe(cluster, options)
        result: dict[str, Any] = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "cores": os.cpu_count(),
            "load_average": round(os.getloadavg()[0], 1),
            "partitions": len(moves),
            "topics": options.topics,
            "brokers": options.brokers,
        }
        warm_up(ground)
        for name in WAYS:
            with probe.latency() as latency, Watcher(cluster) as watcher:
                CONTENDERS[name](ground)
            check_all_moved(ground)
            result[name] = {"seconds": round(watcher.makespan_s, 1), **felt(latency)}
            print(json.dumps({name: result[name]}), flush=True)
            take_back(ground)
    rehome_s, tool_s = (result[name]["seconds"] for name in WAYS)
    return result | {"rehome_s": rehome_s, "over_kafka_tool": round(rehome_s / tool_s, 2)}


def write_document(result: dict[str, Any]) -> None:
    """Put the table into the document."""
    rows = [{"way": WORDS[name]} | result[name] for name in WAYS]
    lines = [
        f"Made {result['date'][:10]} on {result['cores']} cores: {result['partitions']:,} empty "
        f"partitions of {result['topics']:,} topics leave one of {result['brokers']} brokers.",
        "",
        *table(COLUMNS, rows),
    ]
    put(DOCUMENT, "bench-small", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=5_000)
    parser.add_argument("--topics", type=int, default=50, help="of as many partitions each")
    parser.add_argument(
        "--heap-mb",
        type=int,
        default=1_000,
        help="of each broker: with too little, it collects garbage all the time",
    )
    parser.add_argument("--wake-s", type=float, default=2.5, help="what Airflow takes to wake")
    parser.add_argument("--messages-per-s", type=float, default=100.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    result = measured(options)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.out == RESULTS:
        write_document(result)


if __name__ == "__main__":
    main()
