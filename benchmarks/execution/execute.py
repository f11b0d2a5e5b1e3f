"""The same moves at the same rate by several ways, on a real cluster: `make bench-execute`.

Writes benchmarks/results/execute.json and the table in docs/benchmarks.md: time from the first
reassignment to the last over the least time possible, and what a producer felt meanwhile. With
``ARGS=--long``, execute_long.json: moves of ten minutes, by Rehome and by Kafka's own tool.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.document import DOCS, put, table
from benchmarks.execution.contenders import CONTENDERS, Ground, Watcher, check_all_moved, take_back
from benchmarks.execution.latency import LatencyProbe
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from local.workload import Workload
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.settings import Settings
from world.plan_of_moves import plan_of_moves

RESULTS = Path(__file__).parents[1] / "results" / "execute.json"
LONG_RESULTS = RESULTS.with_name("execute_long.json")
TABLES = {RESULTS: "bench-execute", LONG_RESULTS: "bench-execute ARGS=--long"}
"""What the marks of each result's table in the document name."""
DOCUMENT = DOCS / "benchmarks.md"
MEMORY = Path("/dev/shm")
MOVED, PROBED = "moved", "probed"
MESSAGE_BYTES = 10_000
REPLICAS_PROBED = 3
COLUMNS = {
    "": "way",
    "makespan s": "makespan_s",
    "bound s": "bound_s",
    "makespan / bound": "makespan_over_bound",
    "producer p99 ms": "producer_p99_ms",
}
WAYS = {
    "rehome": "Rehome",
    "kafka_tool": "kafka-reassign-partitions, all at once",
    "barrier": "barrier batches of 10",
    "idle": "nothing moves",
}
LONG_WAYS = ["rehome", "kafka_tool"]


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Every way in turn, on one cluster."""
    scratch = MEMORY if os.access(MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="rehome-execute-", dir=scratch) as directory,
        LocalCluster(Path(directory) / "cluster", options.brokers) as cluster,
        ClusterGateway(Connection.from_settings(cluster.client_settings())) as gateway,
    ):
        moves = _filled(cluster, gateway, options)
        busiest = busiest_bytes(moves)
        rate = options.rate or round(busiest / options.bound_s)
        plan = plan_of_moves("execute", cluster.cluster_id, moves, rate)
        ground = Ground(
            cluster,
            gateway,
            plan,
            rate,
            Path(directory),
            timeout_s=20 * busiest / rate + 120,
            settings=Settings(),
            wake_s=options.wake_s,
        )
        probe = Probe(cluster, options)
        probe.idle(options.warm_up_s)
        result = _facts(plan, rate) | {"idle": probe.idle(options.idle_s)}
        for name in options.ways:
            result[name] = _raced(name, ground, probe, busiest / rate)
            print(json.dumps({name: result[name]}), flush=True)
            take_back(ground)
    return result


def _raced(name: str, ground: Ground, probe: Probe, bound_s: float) -> dict[str, Any]:
    with probe.latency() as latency, Watcher(ground.cluster) as watcher:
        measured = CONTENDERS[name](ground)
    check_all_moved(ground)
    return {
        "makespan_s": round(watcher.makespan_s, 1),
        "bound_s": round(bound_s, 1),
        "makespan_over_bound": round(watcher.makespan_s / bound_s, 3),
        **felt(latency),
        **measured,
    }


class Probe:
    """A topic on every broker that does not move, with a producer."""

    def __init__(self, cluster: LocalCluster, options: argparse.Namespace) -> None:
        self._cluster = cluster
        self._per_s = options.messages_per_s
        brokers = cluster.broker_ids
        rows = [[*brokers[n:], *brokers[:n]][:REPLICAS_PROBED] for n in range(len(brokers))]
        create_topics(cluster, {PROBED: rows})

    def latency(self) -> LatencyProbe:
        """To be entered for as long as it is to run."""
        settings, brokers = self._cluster.client_settings(), len(self._cluster.broker_ids)
        return LatencyProbe(settings, PROBED, brokers, self._per_s)

    def idle(self, seconds: float) -> dict[str, Any]:
        """What it measures while nothing moves."""
        with self.latency() as latency:
            time.sleep(seconds)
        return felt(latency)


def felt(latency: LatencyProbe) -> dict[str, Any]:
    """What a producer felt."""
    return {
        "producer_p99_ms": round(latency.percentile_ms(99), 1),
        "producer_p50_ms": round(latency.percentile_ms(50), 1),
        "messages": latency.messages,
    }


def _filled(
    cluster: LocalCluster, gateway: ClusterGateway, options: argparse.Namespace
) -> tuple[Move, ...]:
    """Partitions of unequal sizes, filled; each is to move one replica to another broker."""
    random = np.random.default_rng(options.seed)
    rows = [random.permutation(cluster.broker_ids).tolist() for _ in range(options.partitions)]
    weights = random.lognormal(0.0, options.sigma, options.partitions)
    topics = {f"{MOVED}-{number:03}": row for number, row in enumerate(rows)}
    create_topics(cluster, {topic: [row[:2]] for topic, row in topics.items()})
    workload = Workload(
        cluster.client_settings(), dict.fromkeys(topics, 1), message_bytes=MESSAGE_BYTES
    )
    workload.fill(options.megabytes * 1_000_000, dict(zip(topics, weights.tolist(), strict=True)))
    sizes = {
        partition: replica.size_bytes
        for log_dir in gateway.describe_log_dirs().value
        for partition, replica in log_dir.replicas.items()
        if partition.topic in topics and log_dir.broker == topics[partition.topic][0]
    }
    return tuple(
        Move(part, (row[0], row[1]), (row[0], row[2]), sizes[part], MoveReason.BALANCE)
        for part, row in ((TopicPartition(topic, 0), row) for topic, row in topics.items())
    )


def create_topics(
    cluster: LocalCluster, topics: Mapping[str, Sequence[Sequence[BrokerId]]]
) -> None:
    """Topics with these replicas of each partition, led and in sync."""
    admin = AdminClient(cluster.client_settings())
    new = [
        NewTopic(topic, len(rows), replica_assignment=[list(row) for row in rows])
        for topic, rows in topics.items()
    ]
    for future in admin.create_topics(new).values():
        future.result(30)

    def led() -> bool:
        found = admin.list_topics(timeout=5).topics
        return all(
            topic in found
            and len(found[topic].partitions) == len(rows)
            and all(
                len(part.isrs) == len(part.replicas) for part in found[topic].partitions.values()
            )
            for topic, rows in topics.items()
        )

    wait_until(led, "the topics to be led")


def busiest_bytes(moves: Sequence[Move]) -> int:
    """Bytes in, or out as leader, of the most loaded broker: no way is faster at a rate."""
    load: Counter[tuple[str, BrokerId]] = Counter()
    for move in moves:
        load["out", move.current[0]] += move.bytes_to_move
        for broker in move.adding:
            load["in", broker] += move.size_bytes
    return max(load.values())


def _facts(plan: Plan, rate: int) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "partitions": len(plan.moves),
        "bytes": plan.summary.bytes_to_move,
        "rate_bytes_per_s": rate,
    }


def write_document(result: dict[str, Any], target: str) -> None:
    """Put the table into the document, between the marks of a target."""
    rows = [{"way": words} | result[name] for name, words in WAYS.items() if name in result]
    errors = result.get("rehome", {}).get("eta_error_by_bytes_done", {})
    later = [abs(error) for tenth, error in errors.items() if tenth != "0 %"]
    lines = [
        f"Made {result['date'][:10]} on {result['cores']} cores: {result['bytes'] / 1e9:.2f} GB in "
        f"{result['partitions']} partitions at {result['rate_bytes_per_s'] / 1e6:.2f} MB/s.",
        "",
        *table(COLUMNS, rows),
    ]
    if later:
        lines += ["", f"After the first tenth of the bytes the ETA was off by {max(later):.1%} of "
                  "the whole time at most."]  # fmt: skip
    put(DOCUMENT, target, lines)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=5)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=1_200, help="to fill and to move")
    parser.add_argument("--sigma", type=float, default=0.5, help="of the sizes' logarithm")
    parser.add_argument("--bound-s", type=float, default=66.0, help="the least time possible")
    parser.add_argument("--rate", type=int, help="bytes per second; instead of --bound-s")
    parser.add_argument("--wake-s", type=float, default=2.5, help="what Airflow takes to wake")
    parser.add_argument("--messages-per-s", type=float, default=100.0)
    parser.add_argument("--warm-up-s", type=float, default=10.0)
    parser.add_argument("--idle-s", type=float, default=60.0)
    parser.add_argument("--ways", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--long", action="store_true", help="ten minutes, by Rehome and by Kafka's own tool"
    )
    options = parser.parse_args(arguments)
    if options.long:
        options.bound_s, options.ways, options.out = 600.0, LONG_WAYS, LONG_RESULTS
    return options


def main() -> None:
    options = parsed()
    result = measured(options)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.out in TABLES:
        write_document(result, TABLES[options.out])


if __name__ == "__main__":
    main()
