"""What brokers deliver of a throttle, set as it is, and governed: `make bench-governor`.

Writes benchmarks/results/governor.json and the table in docs/benchmarks.md: bytes that one broker
received on a real cluster, read from its disks once a second, over what was asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.document import DOCS, put, table
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.governor.control_loop import first_rate
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from world.plan_of_moves import plan_of_moves

RESULTS = Path(__file__).parents[1] / "results" / "governor.json"
DESTINATION, SOURCES = 3, (1, 2)
MESSAGE_BYTES = 100_000
SETTLED_S = 60
Received = list[tuple[float, int]]
DOCUMENT = DOCS / "benchmarks.md"
COLUMNS = {
    "of what was asked for": "way",
    "first minute": "first_minute_part",
    "mean after a minute": "mean_part",
    "least minute": "least_minute_part",
    "largest minute": "largest_minute_part",
    "minutes within 5 %": "minutes_within_5_percent",
    "largest 30 s": "largest_30_s_part",
}


class Reading(threading.Thread):
    """Reads once a second what the topic's replicas take on the destination's disks."""

    def __init__(self, gateway: ClusterGateway, plan: Plan) -> None:
        super().__init__(daemon=True)
        self._gateway = gateway
        self._partitions = [move.partition for move in plan.moves]
        self._over = threading.Event()
        self.received: Received = []

    def run(self) -> None:
        """Read until :meth:`end`."""
        begun = time.monotonic()
        while not self._over.wait(1.0):
            dirs = self._gateway.describe_log_dirs([DESTINATION], self._partitions).value
            size = sum(replica.size_bytes for d in dirs for replica in d.replicas.values())
            self.received.append((time.monotonic() - begun, size))

    def end(self) -> Received:
        """What was read; ends the reading."""
        self._over.set()
        self.join()
        return self.received


def parts(received: Received, seconds: float, asked: float, *, after_s: float = 0.0) -> list[float]:
    """Over every span of so many seconds: bytes per second over what was asked for."""
    found = []
    for begin, (at, before) in enumerate(received):
        end = next((one for one in received[begin:] if one[0] - at >= seconds), None)
        if at >= after_s and end is not None:
            found.append((end[1] - before) / (end[0] - at) / asked)
    return found


def figures(received: Received, asked: int, total: int) -> dict[str, Any]:
    """Of the time in which there was plenty to copy."""
    busy = [one for one in received if 0 < one[1] < 0.97 * total]
    minutes = parts(busy, 60, asked, after_s=SETTLED_S)
    return {
        "first_minute_part": round(parts(busy, 60, asked)[0], 3),
        "mean_part": round(sum(minutes) / len(minutes), 3),
        "least_minute_part": round(min(minutes), 3),
        "largest_minute_part": round(max(minutes), 3),
        "minutes_within_5_percent": round(
            sum(abs(part - 1) <= 0.05 for part in minutes) / len(minutes), 3
        ),
        "largest_30_s_part": round(max(parts(busy, 30, asked)), 3),
        "copied_in_s": round(received[-1][0], 1),
    }


def moving(topic: str, cluster_id: str, partitions: int, size_bytes: int) -> Plan:
    """So many partitions, of that size each, move to the destination."""
    moves = tuple(
        Move(
            TopicPartition(topic, number),
            (SOURCES[number % 2],),
            (DESTINATION,),
            size_bytes,
            MoveReason.REQUESTED,
        )
        for number in range(partitions)
    )
    return plan_of_moves(topic, cluster_id, moves)


def fill(cluster: LocalCluster, topic: str, partitions: int, messages: int) -> None:
    """A topic of so many messages in each partition, led by the sources."""
    admin = AdminClient(cluster.client_settings())
    assignment = [[SOURCES[number % 2]] for number in range(partitions)]
    new = NewTopic(topic, num_partitions=partitions, replica_assignment=assignment)
    admin.create_topics([new])[topic].result(30)
    producer = Producer(cluster.client_settings() | {"queue.buffering.max.kbytes": 65536})
    value = os.urandom(MESSAGE_BYTES)
    for at in range(messages * partitions):
        while True:
            try:
                producer.produce(topic, value, partition=at % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(300):
        raise RuntimeError(f"not every message of {topic} was acknowledged")


def as_told(plan: Plan, ledger: Ledger, cluster: OwnCluster, policy: Policy) -> None:
    """Tell brokers the rate that is asked for, and start everything at once."""
    set_up_throttle(plan, ledger, cluster, policy.rate_bytes_per_s)
    refused = cluster.alter_reassignments({move.partition: move.target for move in plan.moves})
    if any(refused.values()):
        raise RuntimeError(f"the controller refuses: {refused}")
    wait_until(lambda: not cluster.list_reassignments(), "the copies to end", 3600)


def governed(plan: Plan, ledger: Ledger, cluster: OwnCluster, policy: Policy) -> None:
    """Drive the plan as in production, a step every five seconds."""
    asked = policy.rate_bytes_per_s
    set_up_throttle(plan, ledger, cluster, first_rate(asked), asked)
    while advance(plan, ledger, cluster, policy).finished is None:
        time.sleep(policy.poll_interval_s)


WAYS: dict[str, Callable[[Plan, Ledger, OwnCluster, Policy], None]] = {
    "as_told": as_told,
    "governed": governed,
}


def run(way: str, cluster: LocalCluster, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one way."""
    topic = f"bench-{way}"
    policy = Policy(
        options.rate,
        max_moves_per_broker=options.slots,
        reaction_s=15.0,
        metadata_grace_s=2,
    )
    partitions = options.partitions
    messages = round(options.rate * options.seconds / partitions / MESSAGE_BYTES)
    fill(cluster, topic, partitions, messages)
    with (
        ClusterGateway(Connection.from_settings(cluster.client_settings())) as gateway,
        ClusterGateway(Connection.from_settings(cluster.client_settings())) as reader,
        Ledger.open(f"sqlite:///{cluster.directory}/{way}.db") as ledger,
    ):
        plan = moving(topic, cluster.cluster_id, partitions, messages * MESSAGE_BYTES)
        ledger.create_plan(plan, {}, "file:///nowhere", way, "bench")
        ledger.approve(plan.plan_id, plan.plan_hash, "bench")
        own = OwnCluster.of(gateway, plan.cluster_id, plan.plan_id)
        reading = Reading(reader, plan)
        reading.start()
        try:
            WAYS[way](plan, ledger, own, policy)
        finally:
            received = reading.end()
            clear_throttle(plan.plan_id, ledger, own)
        found = figures(received, options.rate, partitions * messages * MESSAGE_BYTES)
        rates = [change.rate_bytes_per_s for change in ledger.rate_changes(plan.plan_id)]
        return {**found, "rates_told_bytes_per_s": rates}


def write_document(result: dict[str, Any]) -> None:
    """Put the table into the document."""
    words = {"as_told": "the rate as it is set", "governed": "governed"}
    rows = [{"way": said} | result[way] for way, said in words.items() if way in result]
    lines = [
        f"Made {result['measured_at'][:10]} on {result['processors']} cores, load average "
        f"{result['load_average']}: {result['asked_bytes_per_s'] / 1e6:.0f} MB/s to one broker.",
        "",
        *table(COLUMNS, rows),
    ]
    put(DOCUMENT, "bench-governor", lines)


def main() -> None:
    """Measure both ways, and write down what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=8_000_000, help="bytes per second")
    parser.add_argument("--seconds", type=float, default=180, help="copying takes at that rate")
    parser.add_argument("--partitions", type=int, default=8, help="of equal size")
    parser.add_argument("--slots", type=int, default=4, help="copied at once, governed")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.seconds < SETTLED_S + 70:
        parser.error(f"--seconds must be {SETTLED_S + 70} at least")
    result: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "asked_bytes_per_s": options.rate,
        "partitions": options.partitions,
    }
    with (
        tempfile.TemporaryDirectory(prefix="rehome-governor-") as directory,
        LocalCluster(Path(directory), 3) as cluster,
    ):
        for way in options.ways:
            result[way] = run(way, cluster, options)
            print(way, json.dumps(result[way]))
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.out == RESULTS:
        write_document(result)


if __name__ == "__main__":
    main()
