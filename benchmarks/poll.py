"""How long one look at a plan takes, its reads and all: `make bench-poll`.

Writes benchmarks/results/poll.json. Every partition of the cluster has a move that is to be
measured: the most that a poll ever reads.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.snapshot import crowded_gateway
from include.cluster.gateway import ClusterGateway
from include.cluster.model import TopicPartition
from include.execution.observe import observe
from include.planning.plan import Move, MoveReason

RESULTS = Path(__file__).parent / "results" / "poll.json"


def moves_of_all(gateway: ClusterGateway) -> list[Move]:
    """A move of each partition, from its last replica to a broker that has none."""
    brokers = sorted(gateway.describe_cluster().brokers)
    moves = []
    for topic in gateway.describe_topics().values():
        for number, state in topic.partitions.items():
            new = next(broker for broker in brokers if broker not in state.replicas)
            target = (*state.replicas[:-1], new)
            partition = TopicPartition(topic.name, number)
            moves.append(Move(partition, state.replicas, target, 0, MoveReason.BALANCE))
    return moves


def measured(gateway: ClusterGateway, runs: int) -> dict[str, Any]:
    """Seconds of so many looks, the first one (which connects) apart."""
    moves = moves_of_all(gateway)
    seconds = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        seen = observe(gateway, moves, datetime.now(UTC))
        seconds.append(time.perf_counter() - began)
    replicas = sum(len(move.current) for move in moves)
    if len(seen.sizes) != replicas:
        raise RuntimeError(f"{len(seen.sizes)} of {replicas} replicas were seen")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "brokers": len(seen.live_brokers),
        "replicas": replicas,
        "runs": runs,
        "first_s": round(seconds[0], 3),
        "median_s": round(median(seconds[1:]), 3),
        "worst_s": round(max(seconds[1:]), 3),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=5)
    parser.add_argument("--replicas", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    with crowded_gateway(options.replicas, 600, options.brokers) as gateway:
        result = measured(gateway, options.runs)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
