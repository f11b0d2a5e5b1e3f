"""What one poll of a large plan costs, its reads, records and decision: `make bench-poll`.

Writes benchmarks/results/poll.json. The plan has 100,000 moves: 90,000 are done, 1,000 are copied
on real brokers under a throttle, the others wait. The ledger is a file on disk. Polls of two
kinds take turns: a whole poll, and one that does not read high watermarks, leader epochs and log
start offsets. These three show lost and deleted messages.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Any, cast

from confluent_kafka import Producer
from sqlalchemy import create_engine, update

from benchmarks.document import DOCS, put, table
from benchmarks.snapshots.snapshot import CROWD, REPLICATION_FACTOR, crowded_gateway
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerId, Partial, ReplicaId, TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog
from rehome.execution.poll import poll
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS
from rehome.ledger.base.models import MOVES
from rehome.ledger.store import Ledger
from world.plan_of_moves import plan_of_moves

RESULTS = Path(__file__).parents[1] / "results" / "poll.json"
DOCUMENT = DOCS / "benchmarks.md"
COLUMNS = {
    "moves": "moves",
    "in flight, first and last poll": "in_flight",
    "load of the machine": "load_average",
    "first poll, s": "first_s",
    "a poll, s": "median_s",
    "of the processor, s": "median_cpu_s",
    "without offsets, s": "without_offsets_median_s",
    "of the processor, s ": "without_offsets_median_cpu_s",
    "part of a poll that reads them": "offsets_share",
    "ratio": "ratio",
    "of the processor": "cpu_ratio",
}
PLAN, SIZE_BYTES, RATE_BYTES_PER_S = "bench", 400_000, 50_000


def moves_of(gateway: ClusterGateway, topic: str, moves: int, done: int) -> list[Move]:
    """Done ones and waiting ones of topics that only the plan knows, and one of each partition."""
    brokers = sorted(gateway.describe_cluster().brokers)
    flying = []
    for number, state in gateway.describe_topics([topic])[topic].partitions.items():
        new = next(broker for broker in brokers if broker not in state.replicas)
        target = (*state.replicas[:-1], new)
        partition = TopicPartition(topic, number)
        flying.append(Move(partition, state.replicas, target, SIZE_BYTES, MoveReason.BALANCE))

    def elsewhere(name: str, number: int) -> Move:
        at = number % len(brokers)
        *current, new = (brokers * 2)[at : at + 3]
        target = (*current[:-1], new)
        partition = TopicPartition(f"{name}-{number // 100:04}", number % 100)
        return Move(partition, tuple(current), target, SIZE_BYTES, MoveReason.BALANCE)

    waiting = moves - done - len(flying)
    return [
        *(elsewhere("a-done", number) for number in range(done)),
        *flying,
        *(elsewhere("waiting", number) for number in range(waiting)),
    ]


def in_progress(gateway: ClusterGateway, topic: str, url: str, plan: Plan) -> Ledger:
    """The plan in the ledger, running, with what is done and what is in flight, and that begun."""
    ledger = Ledger.open(url)
    ledger.create_plan(plan, {}, "file:///none", "run", "bench")
    ledger.approve(PLAN, plan.plan_hash, "bench")
    ledger.claim(PLAN)
    engine = create_engine(url)
    with engine.begin() as connection:
        for state, like in ((MoveState.DONE, "a-done-%"), (MoveState.ADMITTED, topic)):
            connection.execute(update(MOVES).where(MOVES.c.topic.like(like)).values(state=state))
    engine.dispose()
    everywhere = ConfigResource.cluster_default(), FOLLOWER_RATE, str(RATE_BYTES_PER_S)
    listed = ConfigResource.topic(topic), FOLLOWER_REPLICAS, "*"
    gateway.alter_configs(
        [ConfigChange(where, key, ConfigOperation.SET, v) for where, key, v in (everywhere, listed)]
    )
    targets = {move.partition: move.target for move in plan.moves if move.partition.topic == topic}
    refused = [error for error in gateway.alter_reassignments(targets).values() if error]
    if refused:
        raise RuntimeError(f"{len(refused)} moves were refused, the first with {refused[0]}")
    wait_until(lambda: len(gateway.list_reassignments()) == len(targets), "moves in flight", 60)
    return ledger


def clean_up(gateway: ClusterGateway, topic: str) -> None:
    """Take back what :func:`in_progress` has begun and set."""
    gateway.alter_reassignments(dict.fromkeys(gateway.list_reassignments()))
    gateway.alter_configs(
        [
            ConfigChange(where, key, ConfigOperation.DELETE, None)
            for where, key in (
                (ConfigResource.cluster_default(), FOLLOWER_RATE),
                (ConfigResource.topic(topic), FOLLOWER_REPLICAS),
            )
        ]
    )


class WithoutOffsets:
    """A cluster of which a poll gets neither high watermarks nor starts of logs, without a call."""

    def __init__(self, gateway: ClusterPort) -> None:
        self._gateway = gateway

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)

    def high_watermarks(self, leaders: Mapping[TopicPartition, BrokerId]) -> Partial[Any]:
        """None is read."""
        return Partial({}, {})

    def log_start_offsets(self, replicas: Collection[ReplicaId]) -> Partial[Any]:
        """None is read."""
        return Partial({}, {})


class TimedOffsets:
    """A cluster that counts the seconds which those two readings take."""

    def __init__(self, gateway: ClusterPort) -> None:
        self._gateway = gateway
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)

    def high_watermarks(self, leaders: Mapping[TopicPartition, BrokerId]) -> Partial[Any]:
        """As the cluster does."""
        return self._counted(lambda: self._gateway.high_watermarks(leaders))

    def log_start_offsets(self, replicas: Collection[ReplicaId]) -> Partial[Any]:
        """As the cluster does."""
        return self._counted(lambda: self._gateway.log_start_offsets(replicas))

    def _counted(self, call: Callable[[], Partial[Any]]) -> Partial[Any]:
        wall_s, _, found = timed(call)
        self.seconds += wall_s
        return found  # type: ignore[no-any-return]


def timed(action: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock and of the processor (this process's, all threads), and the result."""
    began, worked = time.perf_counter(), time.process_time()
    result = action()
    return time.perf_counter() - began, time.process_time() - worked, result


def measured(
    gateway: ClusterGateway, topic: str, url: str, moves: int, done: int, runs: int
) -> dict[str, Any]:
    """Of so many pairs of polls, with the first one (which reads all open moves) apart."""
    cluster_id = gateway.describe_cluster().cluster_id
    plan = plan_of_moves(PLAN, cluster_id, moves_of(gateway, topic, moves, done), RATE_BYTES_PER_S)
    policy = Policy(RATE_BYTES_PER_S, max_moves_per_broker=1000, max_partitions_in_flight=1000)
    with in_progress(gateway, topic, url, plan) as ledger:
        backlog = Backlog()
        in_flight: list[int] = []
        shares: list[float] = []
        counting = TimedOffsets(gateway)
        whole = OwnCluster.of_plan(cast(ClusterPort, counting), ledger.plan(PLAN))
        without = whole.behind(lambda port: cast(ClusterPort, WithoutOffsets(port)))

        def polled(cluster: OwnCluster) -> tuple[float, float]:
            counting.seconds = 0.0
            wall_s, cpu_s, found = timed(lambda: poll(plan, ledger, cluster, policy, backlog))
            in_flight.append(len(found.observation.ongoing))
            shares.append(counting.seconds / wall_s)
            return wall_s, cpu_s

        first_s, first_cpu_s = polled(whole)
        polled(without)  # its connections are open
        later: list[tuple[float, float]] = []
        less: list[tuple[float, float]] = []
        for number in range(runs):  # fewer are in flight each time: each comes first in turn
            for cluster in (whole, without) if number % 2 else (without, whole):
                (later if cluster is whole else less).append(polled(cluster))
        live = len(whole.describe_cluster().brokers)
    (walls, cpus), (less_walls, less_cpus) = (zip(*each, strict=True) for each in (later, less))
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "brokers": live,
        "moves": moves,
        "done": done,
        "in_flight_first": in_flight[0],
        "in_flight_last": in_flight[-1],
        "runs": runs,
        "first_s": round(first_s, 3),
        "first_cpu_s": round(first_cpu_s, 3),
        "median_s": round(median(walls), 3),
        "worst_s": round(max(walls), 3),
        "median_cpu_s": round(median(cpus), 3),
        "worst_cpu_s": round(max(cpus), 3),
        "without_offsets_median_s": round(median(less_walls), 3),
        "without_offsets_median_cpu_s": round(median(less_cpus), 3),
        "offsets_share": round(median(share for share in shares[2:] if share), 3),
        "ratio": round(median(map(truediv, walls, less_walls)), 3),
        "cpu_ratio": round(median(map(truediv, cpus, less_cpus)), 3),
    }


def fill(gateway: ClusterGateway, topic: str, size_bytes: int = SIZE_BYTES) -> None:
    """So much to copy in each partition that it is in flight for minutes.

    A follower's first fetch is not throttled yet: up to 1 MiB of a partition, 10 MiB of a leader's.
    Of few partitions each has to be larger than that.
    """
    brokers = gateway.describe_cluster().brokers.values()
    servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": "50"})
    partitions = len(gateway.describe_topics([topic])[topic].partitions)
    message = os.urandom(size_bytes // 10)
    for number in range(10 * partitions):
        producer.produce(topic, message, partition=number % partitions)
        if number % 1000 == 0:
            producer.flush()
    producer.flush()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=5)
    parser.add_argument("--moves", type=int, default=100_000)
    parser.add_argument("--done", type=int, default=90_000)
    parser.add_argument("--in-flight", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    replicas = options.in_flight * REPLICATION_FACTOR
    with (
        tempfile.TemporaryDirectory(prefix="rehome-poll-") as directory,
        crowded_gateway(replicas, 600, options.brokers) as gateway,
    ):
        fill(gateway, CROWD)
        url = f"sqlite:///{directory}/ledger.db"
        result = measured(gateway, CROWD, url, options.moves, options.done, options.runs)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))
    if options.out == RESULTS:
        made = f"Made {result['date'][:10]} on {result['cores']} cores."
        row = {**result, "in_flight": f"{result['in_flight_first']}, {result['in_flight_last']}"}
        put(DOCUMENT, "bench-poll", [made, "", *table(COLUMNS, [row])])


if __name__ == "__main__":
    main()
