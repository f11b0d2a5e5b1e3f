"""A real Kafka cluster on this machine: one KRaft controller and some brokers, loopback only.

The demo and the tests share it. Nothing outlives the process that started it (see guard.py),
and single brokers can be killed, paused, resumed, shut down and restarted for fault tests.
"""

from __future__ import annotations

import base64
import shutil
import signal
import socket
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from local.guard import Guard
from local.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
JARS = ROOT / ".cache" / "kafka-4.3.1"
CONTROLLER_ID = 100
START_TIMEOUT_S = 90.0
_LOG4J = Path(__file__).with_name("log4j2.properties")


class ClusterStartError(RuntimeError):
    """A process of the cluster did not come up; carries the tail of its log."""


def default_rack(broker: int) -> str:
    """Two data centres in turn, a rack of its own for each broker: /dc1/r0, /dc0/r1, …"""
    return f"/dc{broker % 2}/r{broker // 2}"


class LocalCluster:
    """One KRaft controller (id 100) and brokers 1 … n, each with several log dirs.

    :param directory: where data, configs and logs go; must be empty or new.
    :param brokers: number of brokers.
    :param racks: ``broker.rack`` of each broker, in order of id; default :func:`default_rack`.
    :param log_dirs: log dirs per broker.
    :param broker_config: further broker settings.
    :param heap_mb: maximal heap of each JVM, in MB.
    """

    def __init__(
        self,
        directory: Path,
        brokers: int = 4,
        *,
        racks: Sequence[str] | None = None,
        log_dirs: int = 2,
        broker_config: Mapping[str, str] | None = None,
        heap_mb: int = 192,
    ) -> None:
        self.directory = directory
        self.broker_ids = tuple(range(1, brokers + 1))
        self.racks = dict(
            zip(self.broker_ids, racks or map(default_rack, self.broker_ids), strict=True)
        )
        self._log_dirs = log_dirs
        self._broker_config = dict(broker_config or {})
        self._heap_mb = heap_mb
        self._cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        nodes = (CONTROLLER_ID, *self.broker_ids)
        self._ports = dict(zip(nodes, _free_ports(len(nodes)), strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._guard: Guard | None = None

    def __enter__(self) -> LocalCluster:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def cluster_id(self) -> str:
        """Kafka's cluster id."""
        return self._cluster_id

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, as host:port,host:port."""
        return ",".join(self.address(broker) for broker in self.broker_ids)

    @property
    def controller_address(self) -> str:
        """host:port of the controller's own listener."""
        return f"127.0.0.1:{self._ports[CONTROLLER_ID]}"

    def address(self, broker: int) -> str:
        """host:port of one broker; it keeps it over restarts."""
        return f"127.0.0.1:{self._ports[broker]}"

    def log_dirs(self, broker: int) -> tuple[Path, ...]:
        """The broker's log dirs."""
        return tuple(self._home(broker) / f"data{n}" for n in range(self._log_dirs))

    def client_settings(self) -> dict[str, str]:
        """librdkafka settings of a client."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def start(self) -> None:
        """Format, start everything and wait until every broker is in the metadata.

        :raises ClusterStartError: with the tail of the log of what did not come up.
        """
        if not JARS.is_dir():
            raise ClusterStartError("Kafka's jars are missing: run `make setup` first.")
        self._guard = Guard()
        try:
            for node in self._ports:
                self._write_config(node)
            with ThreadPoolExecutor() as pool:
                list(pool.map(self._format, self._ports))
            for node in self._ports:
                self._launch(node)
            self.wait_for_brokers(self.broker_ids)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill every process of the cluster. Data stays in ``directory``. Idempotent."""
        for node in list(self._processes):
            self._signal(node, signal.SIGKILL)
            self._reap(node)
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def kill(self, broker: int) -> None:
        """SIGKILL the broker: it stays in the metadata until its session ends (9 s)."""
        self._signal(broker, signal.SIGKILL)
        self._reap(broker)

    def pause(self, broker: int) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        self._signal(broker, signal.SIGSTOP)

    def resume(self, broker: int) -> None:
        """SIGCONT after :meth:`pause`."""
        self._signal(broker, signal.SIGCONT)

    def shutdown(self, broker: int, timeout_s: float = 30.0) -> None:
        """A clean shutdown: leaders are handed over first."""
        self._signal(broker, signal.SIGTERM)
        self._reap(broker, timeout_s)

    def restart(self, broker: int) -> None:
        """Start the broker again where it was (killing it first if it runs), wait until it is back."""
        if broker in self._processes:
            self.kill(broker)
        self._launch(broker)
        self.wait_for_brokers([broker])

    def stop_controller(self) -> None:
        """SIGKILL the controller: data keeps flowing, administration times out."""
        self.kill(CONTROLLER_ID)

    def start_controller(self) -> None:
        """Start the controller again."""
        self._launch(CONTROLLER_ID)
        wait_until(lambda: self._port_open(CONTROLLER_ID), "the controller's port", 30)

    def wait_for_brokers(self, brokers: Sequence[int], timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until a fresh metadata answer lists all of ``brokers``."""

        def all_there() -> bool:
            self._raise_if_ended(brokers)
            return set(brokers) <= self.live_brokers()

        try:
            wait_until(all_there, f"brokers {list(brokers)} in the metadata", timeout_s, 0.2)
        except TimeoutError as error:
            raise ClusterStartError(f"{error}\n{self._log_tail(brokers[0])}") from None

    def live_brokers(self) -> set[int]:
        """Broker ids in a fresh metadata answer; empty when no broker answers."""
        if not any(self._port_open(broker) for broker in self._processes):
            return set()
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self.client_settings() | {"log_level": "0"})
        try:
            return set(admin.list_topics(timeout=3).brokers)
        except KafkaException:
            return set()

    def run_tool(
        self, main_class: str, *args: str, timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own command-line tools against the cluster and return its output."""
        config = self.directory / "tool.properties"
        config.write_text(_properties(self.tool_settings()))
        return subprocess.run(
            [
                *self._java(256),
                main_class,
                "--bootstrap-server",
                self.bootstrap_servers,
                "--command-config",
                str(config),
                *args,
            ],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def tool_settings(self) -> dict[str, str]:
        """Java client settings for :meth:`run_tool`."""
        return {"security.protocol": "PLAINTEXT"}

    def node_settings(self, node: int) -> dict[str, str]:
        """server.properties of a node; a secured cluster adds its listeners' settings."""
        home = self._home(node)
        settings = {
            "node.id": str(node),
            "process.roles": "controller" if node == CONTROLLER_ID else "broker",
            "controller.quorum.voters": f"{CONTROLLER_ID}@{self.controller_address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "metadata.log.dir": str(home / "metadata"),
            "log.dirs": str(home / "controller-data"),
            "offsets.topic.replication.factor": str(min(3, len(self.broker_ids))),
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": str(min(3, len(self.broker_ids))),
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            # A leader that moves by itself would make tests of leadership guess.
            "auto.leader.rebalance.enable": "false",
            "log.retention.ms": "-1",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "log.cleaner.dedupe.buffer.size": str(4 * 2**20),  # 128 MB by default: the whole heap
        }
        address = f"127.0.0.1:{self._ports[node]}"
        if node == CONTROLLER_ID:
            return settings | {"listeners": f"CONTROLLER://{address}"}
        return (
            settings
            | {
                "listeners": f"PLAINTEXT://{address}",
                "advertised.listeners": f"PLAINTEXT://{address}",
                "broker.rack": self.racks[node],
                "log.dirs": ",".join(map(str, self.log_dirs(node))),
            }
            | self._broker_config
        )

    def format_arguments(self, node: int) -> list[str]:
        """Further arguments of StorageTool format for a node."""
        return []

    def _home(self, node: int) -> Path:
        return self.directory / f"node{node}"

    def _write_config(self, node: int) -> None:
        home = self._home(node)
        home.mkdir(parents=True, exist_ok=True)
        (home / "server.properties").write_text(_properties(self.node_settings(node)))

    def _format(self, node: int) -> None:
        result = subprocess.run(
            [
                *self._java(128),
                "kafka.tools.StorageTool",
                "format",
                "--ignore-formatted",
                "-t",
                self._cluster_id,
                "-c",
                str(self._home(node) / "server.properties"),
                *self.format_arguments(node),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if result.returncode:  # the output may hold SCRAM keys: its last line only
            last = (result.stderr or result.stdout).strip().splitlines()[-1:]
            raise ClusterStartError(f"Formatting node {node} failed: {' '.join(last)}")

    def _launch(self, node: int) -> None:
        assert self._guard is not None, "the cluster is not running"
        config = self._home(node) / "server.properties"
        self._processes[node] = self._guard.spawn(
            [*self._java(self._heap_mb), "kafka.Kafka", str(config)], self._log_file(node)
        )

    def _java(self, heap_mb: int) -> list[str]:
        java = shutil.which("java")
        if java is None:
            raise ClusterStartError("java is missing: run `make setup` first.")
        return [
            java,
            f"-Xmx{heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={_LOG4J}",
            "-cp",
            f"{JARS}/*",
        ]

    def _signal(self, node: int, number: int) -> None:
        process = self._processes[node]
        if process.poll() is None:
            process.send_signal(number)

    def _reap(self, node: int, timeout_s: float = 10.0) -> None:
        process = self._processes[node]
        if self._guard is None or not self._guard.reap(process, timeout_s):
            raise TimeoutError(f"node {node} (pid {process.pid}) did not end in {timeout_s:g} s")
        del self._processes[node]

    def _raise_if_ended(self, brokers: Sequence[int]) -> None:
        for node in {CONTROLLER_ID, *brokers} & self._processes.keys():
            code = self._processes[node].poll()
            if code is not None:
                raise ClusterStartError(
                    f"Node {node} ended with code {code}:\n{self._log_tail(node)}"
                )

    def _log_file(self, node: int) -> Path:
        return self._home(node) / "server.log"

    def _log_tail(self, node: int, lines: int = 20) -> str:
        log = self._log_file(node)
        return (
            "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""
        )

    def _port_open(self, node: int) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex(("127.0.0.1", self._ports[node])) == 0


def _free_ports(count: int) -> list[int]:
    """Ports free now, below the ephemeral range so that no outgoing connection takes one later."""
    import random

    ports: list[int] = []
    candidates = random.sample(range(20_000, 32_000), 500)
    for port in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise ClusterStartError(f"No {count} free ports on the loopback interface.")


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())
