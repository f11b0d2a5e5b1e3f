"""A real Kafka cluster on this machine: KRaft controllers and some brokers, loopback only.

The demo and the tests share it. Nothing outlives the process that started it (see guard.py),
and single brokers can be killed, paused, resumed, shut down and restarted for fault tests.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from local.kafka.acls import Acls
from local.kafka.jvm import VERSION, ClusterStartError, run_java, write_properties
from local.kafka.node_config import (
    CONTROLLER_ID,
    MoreListener,
    NodeLayout,
    default_rack,
    server_properties,
)
from local.kafka.node_processes import NodeProcesses
from local.kafka.security import ADMIN, Security
from local.kafka.storage import format_broker, format_controller, random_id
from local.process.waiting import wait_until
from rehome.private_files import folder

__all__ = ["CONTROLLER_ID", "ClusterStartError", "LocalCluster", "Security", "default_rack"]

START_TIMEOUT_S = 240.0
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


class LocalCluster:
    """KRaft controllers (ids 100 …) and brokers 1 … n, each with several log dirs.

    :param directory: where data, configs and logs go; must be empty or new.
    :param brokers: number of brokers.
    :param racks: ``broker.rack`` of each broker, in order of id; default :func:`default_rack`.
    :param log_dirs: log dirs per broker.
    :param controllers: number of controllers.
    :param broker_config: further broker settings; ``controller_config``: the controllers'.
    :param node_config: further settings of single nodes, by id.
    :param heap_mb: maximal heap of each JVM, in MB.
    :param security: TLS, SASL and ACLs; without it everything is PLAINTEXT.
    :param release_version: metadata.version of the cluster, like "3.8-IV0"; default the newest.
    :param more_listeners: further listeners of every broker.
    :param version: of Kafka; its jars must be there.
    :param java_options: of each node's JVM.
    """

    def __init__(
        self,
        directory: Path,
        brokers: int = 4,
        *,
        racks: Sequence[str] | None = None,
        log_dirs: int = 2,
        controllers: int = 1,
        broker_config: Mapping[str, str] | None = None,
        controller_config: Mapping[str, str] | None = None,
        node_config: Mapping[int, Mapping[str, str]] | None = None,
        heap_mb: int = 192,
        security: Security | None = None,
        release_version: str | None = None,
        more_listeners: Sequence[MoreListener] = (),
        version: str = VERSION,
        java_options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.security = security
        self.broker_ids = tuple(range(1, brokers + 1))
        self.racks = dict(
            zip(self.broker_ids, racks or map(default_rack, self.broker_ids), strict=True)
        )
        self._layout = NodeLayout.on_free_ports(
            directory, self.racks, log_dirs, more_listeners, controllers
        )
        self._broker_config = dict(broker_config or {})
        self._controller_config = dict(controller_config or {})
        self._node_config = dict(node_config or {})
        self._release_version = release_version
        self._cluster_id = random_id()
        self._nodes = NodeProcesses(self._layout, heap_mb, java_options, version)
        self._acls: Acls | None = None

    def __enter__(self) -> Self:
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
        """host:port of the first controller's own listener."""
        return self._layout.address(CONTROLLER_ID)

    @property
    def controllers(self) -> tuple[int, ...]:
        """Ids of the controllers."""
        return tuple(self._layout.controllers)

    @property
    def certificates(self) -> Path:
        """Where a cluster with TLS keeps its PEM files; ``ca.pem`` is the one to trust."""
        return self._layout.certificates

    @property
    def pids(self) -> dict[int, int]:
        """Process ids of the nodes that run, by node id."""
        return self._nodes.pids

    def address(self, node: int) -> str:
        """host:port of one node; it keeps it over restarts."""
        return self._layout.address(node)

    def servers_of(self, listener: str) -> str:
        """All brokers at one of the further listeners, as host:port,host:port."""
        return ",".join(self._layout.more_address(node, listener) for node in self.broker_ids)

    def log_dirs(self, broker: int) -> tuple[Path, ...]:
        """The broker's log dirs."""
        return self._layout.log_dirs(broker)

    def client_settings(self, user: str = ADMIN) -> dict[str, str]:
        """Librdkafka settings of a client, on a secured cluster one that is ``user``."""
        settings = {"bootstrap.servers": self.bootstrap_servers}
        if self.security is None:
            return settings
        return settings | self.security.client_settings(self.certificates, user)

    def tool_settings(self, user: str = ADMIN) -> dict[str, str]:
        """Java client properties, on a secured cluster those of ``user``."""
        if self.security is None:
            return {"security.protocol": "PLAINTEXT"}
        return self.security.tool_settings(self.certificates, user)

    def start(self) -> None:
        """Format, start everything and wait until every broker serves clients.

        :raises ClusterStartError: with the tail of the log of what did not come up.
        """
        folder(self._layout.directory, 0o700)  # passwords are in it, and what people wrote
        try:
            if self.security is not None:
                self.security.write_files(self.certificates)
            for node in self._layout.ports:
                self._write_config(node)
            # First: a broker that finds no controller looks for it in a busy loop.
            for controller in self._layout.controllers:
                format_controller(
                    *(self._layout, controller, self.cluster_id),
                    *(self.security, self._release_version),
                    version=self._nodes.version,
                )
            for controller in self._layout.controllers:
                self._nodes.launch(controller)
            for broker in self.broker_ids:
                format_broker(self._layout, broker, self.cluster_id)
                self._nodes.launch(broker)
            self.wait_for_brokers(self.broker_ids)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill every process of the cluster. Data stays in ``directory``. Idempotent."""
        if self._acls is not None:
            self._acls.close()
            self._acls = None
        self._nodes.close()

    def kill(self, broker: int) -> None:
        """SIGKILL the broker: it stays in the metadata until its session ends (9 s)."""
        self._nodes.end(broker)

    def pause(self, broker: int) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        self._nodes.pause(broker)

    def resume(self, broker: int) -> None:
        """SIGCONT after :meth:`pause`."""
        self._nodes.resume(broker)

    def shutdown(self, broker: int, timeout_s: float = 120.0) -> None:
        """A clean shutdown: leaders are handed over first."""
        self._nodes.end(broker, signal.SIGTERM, timeout_s)

    def restart(self, broker: int) -> None:
        """Start the broker where it was, killing it first if it runs; wait for its return.

        However it ended, the controller refuses it until its old session ends (9 s).
        """
        if broker in self._nodes.pids:
            self.kill(broker)
        self._nodes.launch(broker)
        self.wait_for_brokers([broker])

    def upgrade(self, node: int, version: str) -> None:
        """A clean shutdown of a node, which then starts with another version of Kafka.

        Returns when it serves clients again.
        """
        self.shutdown(node)
        self._nodes.versions[node] = version
        if node in self._layout.controllers:
            self.start_controller(node)
        else:
            self.restart(node)

    def stop_controller(self, controller: int = CONTROLLER_ID) -> None:
        """SIGKILL a controller. Without the only one data keeps flowing, administration times
        out.
        """
        self.kill(controller)

    def start_controller(self, controller: int = CONTROLLER_ID) -> None:
        """Start a controller again."""
        self._nodes.launch(controller)
        wait_until(
            lambda: self._layout.port_open(controller), "the controller's port", START_TIMEOUT_S
        )

    def active_controller(self) -> int:
        """The controller that leads the others, by Kafka's own tool."""
        said = self.run_tool(QUORUM, "describe", "--status").stdout
        return int(said.partition("LeaderId:")[2].split()[0])

    def wait_for_brokers(self, brokers: Sequence[int], timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until all of ``brokers`` serve clients, and every broker that runs knows them.

        A broker that was killed stays listed until its session ends. It opens its port only once it
        has seen its own new registration, fenced at first.
        """
        several = len(self._layout.controllers) > 1  # one of them may be dead

        def all_there() -> bool:
            self._nodes.raise_if_ended(brokers if several else (CONTROLLER_ID, *brokers))
            return all(map(self._layout.port_open, brokers)) and all(
                set(brokers) <= self.brokers_known_at(self.address(asked))
                for asked in self.answering_brokers
            )

        try:
            wait_until(all_there, f"brokers {list(brokers)} in the metadata", timeout_s, 0.2)
        except TimeoutError as error:
            raise ClusterStartError(f"{error}\n{self._layout.log_tail(brokers[0])}") from None

    @property
    def answering_brokers(self) -> set[int]:
        """Brokers that run and are not paused, whatever the controller takes them for."""
        return self._nodes.able_to_answer - {*self._layout.controllers}

    def live_brokers(self) -> set[int]:
        """Broker ids in a fresh metadata answer; empty when no broker answers."""
        answering = (
            self.address(broker)
            for broker in self.answering_brokers
            if self._layout.port_open(broker)
        )
        addresses = ",".join(answering)
        return self.brokers_known_at(addresses) if addresses else set()

    def allow(
        self,
        user: str,
        operation: str,
        resource_type: str,
        name: str = "*",
        pattern: str = "literal",
    ) -> None:
        """Give ``user`` a right, known to every live broker on return.

        :param operation: as Kafka names it, in any case: describe, alter, alter_configs, …
        :param resource_type: cluster, topic or group; the cluster needs no ``name``.
        :param pattern: literal or prefixed.
        """
        self._administered().allow(user, [(operation, resource_type, name, pattern)])

    def revoke(
        self,
        user: str,
        operation: str,
        resource_type: str,
        name: str = "*",
        pattern: str = "literal",
    ) -> None:
        """Take away what :meth:`allow` gave with the same arguments.

        :raises LookupError: when there was no such right.
        """
        self._administered().revoke(user, [(operation, resource_type, name, pattern)])

    def allow_all(self, user: str, rights: Sequence[tuple[str, str]]) -> None:
        """As :meth:`allow`, by one request: operation and resource type, whatever its name."""
        if rights:
            self._administered().allow(user, [(*right, "*", "literal") for right in rights])

    def revoke_all(self, user: str, rights: Sequence[tuple[str, str]]) -> None:
        """Take away what :meth:`allow_all` gave, by one request."""
        if rights:
            self._administered().revoke(user, [(*right, "*", "literal") for right in rights])

    def run_tool(
        self,
        main_class: str,
        *args: str,
        timeout_s: float = 240.0,
        user: str = ADMIN,
        version: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own command-line tools against the cluster and return its output.

        :param version: of the tool; else the one that the cluster began with.
        """
        config = write_properties(
            self.directory / f"tool-{user}.properties", self.tool_settings(user)
        )
        servers = ("--bootstrap-server", self.bootstrap_servers)
        return run_java(
            *(main_class, *servers, "--command-config", str(config), *args),
            timeout_s=timeout_s,
            version=version or self._nodes.version,
        )

    def _write_config(self, node: int) -> None:
        settings = server_properties(self._layout, node, self.security)
        controls = node in self._layout.controllers
        settings |= self._controller_config if controls else self._broker_config
        settings |= self._node_config.get(node, {})
        self._layout.home(node).mkdir(parents=True, exist_ok=True)
        write_properties(self._layout.config_file(node), settings)

    def brokers_known_at(self, addresses: str) -> set[int]:
        """Broker ids as the first of these brokers that answers knows them; empty: none does."""
        settings = self.client_settings() | {"bootstrap.servers": addresses, "log_level": "0"}
        try:
            return set(AdminClient(settings).list_topics(timeout=10).brokers)
        except KafkaException:
            return set()

    def _administered(self) -> Acls:
        if self._acls is None:
            self._acls = Acls(self.client_settings(ADMIN))
        return self._acls
