"""A Kafka cluster and an Airflow that knows it, on this machine: `make up`, `make down`, demo.

    python -m local.stack up|down

`up` leaves a process of its own behind that holds both, looks after Airflow's components (which
do not restart when they die), and ends everything when it is ended.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from local.airflow.standalone import ROOT, AirflowStandalone
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from local.workload import Workload
from rehome.airflow_settings import AirflowSettings

STATE = ROOT / ".state"
START_TIMEOUT_S = 600.0
WATCH_INTERVAL_S = 10.0


@dataclass(frozen=True)
class DemoTopics:
    """What the demo's cluster holds: partitions and replication factor, and each one's share."""

    partitions: Mapping[str, int] = field(
        default_factory=lambda: {"orders": 12, "payments": 8, "clicks": 12}
    )
    replication_factor: Mapping[str, int] = field(
        default_factory=lambda: {"orders": 2, "payments": 3, "clicks": 2}
    )
    weights: Mapping[str, float] = field(
        default_factory=lambda: {"orders": 1.0, "payments": 0.5, "clicks": 2.0}
    )


TOPICS = DemoTopics()


class Stack:
    """The cluster, and Airflow with a connection to it.

    :param directory: data, logs and Airflow's home go below it.
    """

    def __init__(self, directory: Path, brokers: int = 4) -> None:
        self.directory = directory
        self.cluster = LocalCluster(directory / "kafka", brokers)
        settings = AirflowSettings.read().with_connections(
            {
                "kafka_default": {
                    "conn_type": "kafka",
                    "extra": json.dumps(
                        self.cluster.client_settings()
                        | {"rehome.controller.servers": self.cluster.controller_address}
                    ),
                }
            }
        )
        self.warehouse_uri = (directory / "warehouse").as_uri()
        self.ledger_url = f"sqlite:///{directory / 'ledger.db'}"
        self.airflow = AirflowStandalone(
            directory / "airflow",
            settings=settings,
            env={
                "REHOME_WAREHOUSE": self.warehouse_uri,
                "REHOME_LEDGER_URL": self.ledger_url,
                "REHOME_POLL_INTERVAL_S": "2",
            },
        )

    def __enter__(self) -> Stack:
        self.cluster.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.airflow.stop()
        self.cluster.stop()

    def create_topics(self) -> Workload:
        """The demo's topics, spread over the data centres, and a workload for them."""
        admin = AdminClient(self.cluster.client_settings())
        topics = [
            NewTopic(
                name,
                num_partitions=count,
                replica_assignment=[
                    self._spread(partition, TOPICS.replication_factor[name])
                    for partition in range(count)
                ],
            )
            for name, count in TOPICS.partitions.items()
        ]
        for future in admin.create_topics(topics).values():
            future.result(120)
        return Workload(self.cluster.client_settings(), TOPICS.partitions)

    def _spread(self, partition: int, replicas: int) -> list[int]:
        """Replicas in the data centres by turns. Kafka itself spreads over whole rack names only,
        so that /dc0/r1 and /dc0/r2 would do for it.
        """
        centres: dict[str, list[int]] = {}
        for broker, rack in self.cluster.racks.items():
            centres.setdefault(rack.split("/")[1], []).append(broker)
        groups = [centres[name] for name in sorted(centres)]
        chosen = []
        for replica in range(replicas):
            group = groups[(partition + replica) % len(groups)]
            turn = (partition + replica) // len(groups)
            chosen.append(group[turn % len(group)])
        return chosen


@contextmanager
def alone(state: Path) -> Iterator[None]:
    """Hold a state directory: one demo, or one `make up`, at a time.

    :raises SystemExit: when another process holds it.
    """
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(
                f"A `make demo` or `make up` holds {state} already: wait for the demo, or end "
                "what runs with `make down`."
            ) from None
        yield


def running(state: Path) -> dict[str, Any] | None:
    """What `up` has left running below ``state``, or None."""
    file = state / "stack.json"
    if not file.exists():
        return None
    found: dict[str, Any] = json.loads(file.read_text())
    try:
        process = psutil.Process(found["pid"])
        alive = process.create_time() == found["started"]
    except psutil.NoSuchProcess:
        alive = False
    return found if alive else None


def up(state: Path) -> int:
    """Start the stack in a process of its own and say where everything is."""
    found = running(state)
    if found is None:
        state.mkdir(parents=True, exist_ok=True)
        (state / "stack.json").unlink(missing_ok=True)
        log = state / "up.log"
        with log.open("ab") as output:
            server = subprocess.Popen(
                [sys.executable, "-m", "local.stack", "serve", "--state", str(state)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=ROOT,
            )
        print("starting Kafka and Airflow …")

        def ready() -> bool:
            if server.poll() is not None:
                raise SystemExit(f"It did not start; see {log}")
            return running(state) is not None

        wait_until(ready, "the stack", START_TIMEOUT_S, 0.5)
        found = running(state)
    assert found is not None
    print(f"Page     {found['airflow']}/plugin/reassignments")
    print(f"Kafka    {found['bootstrap_servers']}")
    print(f"Airflow  {found['airflow']}   user {found['user']}, password {found['password']}")
    print("Trigger reassign_partitions there; `make down` ends it all.")
    return 0


def down(state: Path) -> int:
    """End what `up` started; nothing to do when it does not run."""
    found = running(state)
    if found is None:
        with alone(state):
            print("Nothing is running.")
        return 0
    os.kill(found["pid"], signal.SIGTERM)
    wait_until(lambda: running(state) is None, "the stack to end", 240)
    (state / "stack.json").unlink(missing_ok=True)
    print("Ended.")
    return 0


def serve(state: Path) -> int:
    """Hold the stack until SIGTERM; its data goes with it."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with alone(state):
        return _hold(state, stopping)


def _hold(state: Path, stopping: threading.Event) -> int:
    directory = state / "up"
    shutil.rmtree(directory, ignore_errors=True)
    with Stack(directory) as stack:
        workload = stack.create_topics()
        workload.fill(100_000_000, TOPICS.weights)
        stack.airflow.start()
        facts = {
            "pid": os.getpid(),
            "started": psutil.Process().create_time(),
            "bootstrap_servers": stack.cluster.bootstrap_servers,
            "airflow": stack.airflow.url,
            "user": "admin",
            "password": stack.airflow.password,
        }
        file = state / "stack.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(facts))
        with workload:
            while not stopping.wait(WATCH_INTERVAL_S):
                missing = stack.airflow.missing_components()
                if missing:
                    print(f"restarting Airflow: {sorted(missing)} ended", flush=True)
                    stack.airflow.restart()
    shutil.rmtree(directory)
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("up", "down", "serve"))
    parser.add_argument("--state", type=Path, default=STATE)
    options = parser.parse_args()
    state: Path = options.state.resolve()
    return {"up": up, "down": down, "serve": serve}[options.what](state)


if __name__ == "__main__":
    sys.exit(main())
