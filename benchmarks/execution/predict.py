"""Predicted times and ETAs against the truth, on real brokers under a real Airflow:
`make bench-predict`.

Writes benchmarks/results/predict.json and the table in docs/benchmarks.md. Clusters side by side
share one Airflow and one ledger; on each of them runs follow one another, so that from the third
one on it is known how soon Airflow acts. The truth is seen from outside: when the controller lists
the first reassignment, and when the last one is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.document import DOCS, put, table
from benchmarks.execution.contenders import Watcher
from benchmarks.execution.execute import MEMORY, busiest_bytes, create_topics
from local.airflow.standalone import AirflowStandalone
from local.kafka.cluster import LocalCluster
from local.workload import Workload
from rehome.airflow_settings import AirflowSettings
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory

RESULTS = Path(__file__).parents[1] / "results" / "predict.json"
DOCUMENT = DOCS / "benchmarks.md"
DAG = "reassign_partitions"
MESSAGE_BYTES = 10_000
RUN_TIMEOUT_S = 1800.0
SPANS = ((0, 60), (60, 180), (180, 3600))
COLUMNS = {
    "a run took": "took",
    "runs": "runs",
    "inside the range": "inside",
    "most / least, median": "width",
    "taken / least, median": "over_least",
    "taken / most, median": "of_most",
    "ETA off by, median": "eta_median",
    "ETA off by, at most": "eta_worst",
}


class Lane:
    """One cluster, on which one run follows another.

    :param written: whether producers write to the partitions that move.
    """

    def __init__(
        self,
        name: str,
        cluster: LocalCluster,
        airflow: AirflowStandalone,
        ledger: Ledger,
        options: argparse.Namespace,
        *,
        written: bool,
    ) -> None:
        self._name = name
        self._cluster = cluster
        self._airflow = airflow
        self._ledger = ledger
        self._options = options
        self._written = written
        self._random = np.random.default_rng([options.seed, *name.encode()])
        self._topics = [f"moved-{number:03}" for number in range(options.partitions)]
        settings = cluster.client_settings()
        self._workload = Workload(
            settings,
            dict.fromkeys(self._topics, 1),
            message_bytes=MESSAGE_BYTES,
            messages_per_s=options.messages_per_s,
            consume=False,
        )
        self._connection = Connection.from_settings(settings)

    def fill(self) -> None:
        """Partitions of unequal sizes, two replicas each."""
        brokers, random = self._cluster.broker_ids, self._random
        rows = {topic: [random.permutation(brokers)[:2].tolist()] for topic in self._topics}
        create_topics(self._cluster, rows)
        weights = random.lognormal(0.0, self._options.sigma, len(self._topics)).tolist()
        shares = dict(zip(self._topics, weights, strict=True))
        self._workload.fill(self._options.megabytes * 1_000_000, shares)

    def runs(self) -> Iterator[dict[str, Any]]:
        """Each run as it ends."""
        with self._workload if self._written else nullcontext():
            for _ in range(self._options.runs):
                yield self._run()

    def _run(self) -> dict[str, Any]:
        with ClusterGateway(self._connection) as gateway:
            moves = self._drawn(gateway)
        least, most = np.log([self._options.least_s, self._options.most_s])
        rate = round(busiest_bytes(moves) / np.exp(self._random.uniform(least, most)))
        partitions = [
            {"topic": m.partition.topic, "partition": 0, "replicas": list(m.target)} for m in moves
        ]
        conf = {
            "kafka_config_id": self._name,
            "action": "reassign",
            "reassignment": {"version": 1, "partitions": partitions},
            "throttle": rate,
        }
        with Watcher(self._cluster) as watcher:
            run = self._airflow.api.trigger(DAG, conf)
            state = self._airflow.api.wait_for_run(DAG, run, RUN_TIMEOUT_S)
        if state != "success":
            raise RuntimeError(f"the run {run} on {self._name} ended as {state}")
        return self._judged(run, rate, moves, watcher)

    def _drawn(self, gateway: ClusterGateway) -> tuple[Move, ...]:
        """Some partitions, each with one replica that goes to a broker that has none of it."""
        held = gateway.describe_topics(self._topics)
        sizes = {
            (partition.topic, log_dir.broker): replica.size_bytes
            for log_dir in gateway.describe_log_dirs().value
            for partition, replica in log_dir.replicas.items()
        }
        random = self._random
        count = int(random.integers(self._options.partitions // 4, self._options.partitions))
        moves = []
        for topic in random.permutation(self._topics)[:count].tolist():
            state = held[topic].partitions[0]
            kept, gone = random.permutation(state.replicas).tolist()
            free = [b for b in self._cluster.broker_ids if b not in (kept, gone)]
            target = (kept, int(random.choice(free)))
            leader = state.leader
            if leader is None:
                raise RuntimeError(f"{topic} has no leader")
            current = (leader, *(b for b in state.replicas if b != leader))
            size = sizes[topic, leader]
            moves.append(
                Move(TopicPartition(topic, 0), current, target, size, MoveReason.REQUESTED)
            )
        return tuple(moves)

    def _judged(
        self, run: str, rate: int, moves: Sequence[Move], watcher: Watcher
    ) -> dict[str, Any]:
        record = next(plan for plan in self._ledger.plans() if plan.run_id == run)
        if record.started_at is None or record.ended_at is None:
            raise RuntimeError(f"plan {record.plan_id} has no end")
        tried = PlanDirectory(record.plan_dir).read_json("dry_run.json")
        taken_s = (record.ended_at - record.started_at).total_seconds()
        if taken_s < watcher.makespan_s:
            raise RuntimeError(f"plan {record.plan_id} claims to have been faster than it was seen")
        least_s, most_s = tried["predicted"]["least_s"], tried["predicted"]["most_s"]
        result = {
            "cluster": self._name,
            "written_to": self._written,
            "partitions": len(moves),
            "bytes": sum(move.bytes_to_copy for move in moves),
            "rate_bytes_per_s": rate,
            "runs_measured": tried["runs_measured"],
            "least_s": round(least_s, 1),
            "most_s": round(most_s, 1),
            "taken_s": round(taken_s, 1),
            "listed_s": round(watcher.makespan_s, 1),
            "inside": least_s <= taken_s <= most_s,
            "eta_off_by": round(self._eta_off_by(record.plan_id, watcher), 3),
        }
        print(json.dumps(result), flush=True)
        return result

    def _eta_off_by(self, plan_id: str, watcher: Watcher) -> float:
        """The worst ETA after the first tenth of the bytes, as a part of the whole time."""
        errors = [0.0]
        for sample in self._ledger.samples(plan_id):
            early = 10 * sample.bytes_done < sample.bytes_total
            if sample.eta_s is None or early or sample.sampled_at >= watcher.ended_at:
                continue
            expected_end = sample.sampled_at + timedelta(seconds=sample.eta_s)
            errors.append(abs((expected_end - watcher.ended_at).total_seconds()))
        return max(errors) / watcher.makespan_s


@contextmanager
def lanes(directory: Path, options: argparse.Namespace) -> Iterator[list[Lane]]:
    """Clusters that one Airflow knows, filled."""
    with ExitStack() as stack:
        names = [f"cluster_{number}" for number in range(options.clusters)]
        clusters = {
            name: stack.enter_context(LocalCluster(directory / name, options.brokers))
            for name in names
        }
        connections = {
            name: {"conn_type": "kafka", "extra": json.dumps(cluster.client_settings())}
            for name, cluster in clusters.items()
        }
        ledger_url = f"sqlite:///{directory / 'ledger.db'}"
        environment = {
            "REHOME_WAREHOUSE": (directory / "warehouse").as_uri(),
            "REHOME_LEDGER_URL": ledger_url,
        }
        airflow = AirflowStandalone(
            directory / "airflow",
            settings=AirflowSettings.read().with_connections(connections),
            env=environment,
        )
        ledger = stack.enter_context(Ledger.open(ledger_url))
        made = [
            Lane(name, cluster, airflow, ledger, options, written=number % 2 == 1)
            for number, (name, cluster) in enumerate(clusters.items())
        ]
        for lane in made:
            lane.fill()
        stack.enter_context(airflow)
        yield made


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Every run on every cluster."""
    facts = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
        "clusters": options.clusters,
        "brokers": options.brokers,
    }
    scratch = MEMORY if os.access(MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="rehome-predict-", dir=scratch) as directory,
        lanes(Path(directory), options) as made,
        ThreadPoolExecutor(len(made)) as pool,
    ):
        found = [run for runs in pool.map(lambda lane: list(lane.runs()), made) for run in runs]
    return facts | {"runs": found}


def row(name: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What some runs have in common."""
    return {
        "took": name,
        "runs": len(runs),
        "inside": f"{sum(run['inside'] for run in runs) / len(runs):.0%}",
        "width": round(median(run["most_s"] / run["least_s"] for run in runs), 2),
        "over_least": round(median(run["taken_s"] / run["least_s"] for run in runs), 2),
        "of_most": round(median(run["taken_s"] / run["most_s"] for run in runs), 2),
        "eta_median": f"{median(run['eta_off_by'] for run in runs):.1%}",
        "eta_worst": f"{max(run['eta_off_by'] for run in runs):.1%}",
    }


def write_document(result: Mapping[str, Any]) -> None:
    """Put the table into the document."""
    rows = []
    for least, most in SPANS:
        runs = [run for run in result["runs"] if least <= run["taken_s"] < most]
        name = f"less than {most} s" if not least else f"{least} s and more"
        rows += [row(name if most != SPANS[1][1] else f"{least} to {most} s", runs)] if runs else []
    rows.append(row("all", result["runs"]))
    facts = (
        f"Made {result['date'][:10]} on {result['cores']} cores: {result['clusters']} clusters of "
        f"{result['brokers']} brokers side by side under one Airflow, every other one written to."
    )
    put(DOCUMENT, "bench-predict", [facts, "", *table(COLUMNS, rows)])


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=4)
    parser.add_argument("--brokers", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5, help="on each cluster")
    parser.add_argument("--partitions", type=int, default=32, help="of each cluster")
    parser.add_argument("--megabytes", type=int, default=250, help="to fill each cluster with")
    parser.add_argument("--sigma", type=float, default=0.8, help="of the sizes' logarithm")
    parser.add_argument("--least-s", type=float, default=20.0, help="of the busiest broker's bytes")
    parser.add_argument("--most-s", type=float, default=450.0)
    parser.add_argument("--messages-per-s", type=float, default=3.0, help="of 10 kB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args(arguments)


def main() -> None:
    options = parsed()
    result = measured(options)
    options.out.write_text(json.dumps(result, indent=2) + "\n")
    if options.out == RESULTS:
        write_document(result)


if __name__ == "__main__":
    main()
