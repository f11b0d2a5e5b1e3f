"""Where the nodes of a local cluster live and how each is configured."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local.kafka.security import Security
from local.process.ports import free_ports

CONTROLLER_ID = 100
LISTENER = "CLIENTS"


@dataclass(frozen=True, slots=True)
class MoreListener:
    """A further listener of every broker, beside the one that brokers use among themselves.

    :param name: in capitals.
    :param protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    :param settings: keys without their prefix ``listener.name.<name>.``.
    """

    name: str
    protocol: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def properties(self) -> dict[str, str]:
        """The settings as server.properties has them."""
        prefix = f"listener.name.{self.name.lower()}"
        return {f"{prefix}.{key}": value for key, value in self.settings.items()}


def default_rack(broker: int) -> str:
    """Two data centres in turn, a rack of its own for each broker: /dc1/r0, /dc0/r1, …"""
    return f"/dc{broker % 2}/r{broker // 2}"


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """Places of the nodes: controllers, and a broker for each entry of ``racks``.

    :param directory: of everything the cluster writes.
    :param racks: ``broker.rack`` by broker id.
    :param ports: of each node, by its id; they keep it over restarts.
    :param log_dirs_per_broker: number of log dirs.
    :param controllers: their ids, from CONTROLLER_ID on.
    :param more: further listeners of the brokers; ``more_ports``: theirs, by broker id and name.
    """

    directory: Path
    racks: Mapping[int, str]
    ports: Mapping[int, int]
    log_dirs_per_broker: int
    controllers: Sequence[int] = (CONTROLLER_ID,)
    more: Sequence[MoreListener] = ()
    more_ports: Mapping[tuple[int, str], int] = field(default_factory=dict)

    @classmethod
    def on_free_ports(
        cls,
        directory: Path,
        racks: Mapping[int, str],
        log_dirs: int,
        more: Sequence[MoreListener] = (),
        controllers: int = 1,
    ) -> NodeLayout:
        """A layout on ports that are free now."""
        voters = tuple(range(CONTROLLER_ID, CONTROLLER_ID + controllers))
        nodes = (*voters, *racks)
        further = [(broker, listener.name) for broker in racks for listener in more]
        free = free_ports(len(nodes) + len(further))
        ports = dict(zip(nodes, free[: len(nodes)], strict=True))
        more_ports = dict(zip(further, free[len(nodes) :], strict=True))
        return cls(directory, racks, ports, log_dirs, voters, more, more_ports)

    @property
    def certificates(self) -> Path:
        """Where a secured cluster keeps its certificates."""
        return self.directory / "certificates"

    def home(self, node: int) -> Path:
        """The node's own directory."""
        return self.directory / f"node{node}"

    def config_file(self, node: int) -> Path:
        """The node's server.properties."""
        return self.home(node) / "server.properties"

    def log_file(self, node: int) -> Path:
        """What the node prints."""
        return self.home(node) / "server.log"

    def log_tail(self, node: int, lines: int = 20) -> str:
        """The last lines the node printed."""
        log = self.log_file(node)
        text = log.read_text(errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def metadata_dir(self, node: int) -> Path:
        """Where the node keeps the metadata log."""
        return self.home(node) / "metadata"

    def log_dirs(self, node: int) -> tuple[Path, ...]:
        """Where a broker keeps its partitions; a controller has one, and nothing in it."""
        count = 1 if node in self.controllers else self.log_dirs_per_broker
        return tuple(self.home(node) / f"data{n}" for n in range(count))

    def address(self, node: int) -> str:
        """host:port of the node."""
        return f"127.0.0.1:{self.ports[node]}"

    def more_address(self, broker: int, listener: str) -> str:
        """host:port of a further listener; by name, for tests of certificates and Kerberos."""
        return f"localhost:{self.more_ports[broker, listener]}"

    def port_open(self, node: int) -> bool:
        """Whether the node's port is taken."""
        with socket.socket() as probe:
            probe.settimeout(5.0)
            return probe.connect_ex(("127.0.0.1", self.ports[node])) == 0


def server_properties(layout: NodeLayout, node: int, security: Security | None) -> dict[str, str]:
    """server.properties of one node."""
    role = _controller(layout, node) if node in layout.controllers else _broker(layout, node)
    settings = _common(layout, node) | _protocols(layout, security) | role
    for listener in layout.more:
        settings["listener.security.protocol.map"] += f",{listener.name}:{listener.protocol}"
        if node not in layout.controllers:
            at = f",{listener.name}://{layout.more_address(node, listener.name)}"
            settings["listeners"] += at
            settings["advertised.listeners"] += at
            settings |= listener.properties()
    return settings


def _common(layout: NodeLayout, node: int) -> dict[str, str]:
    copies = str(min(3, len(layout.racks)))
    return {
        "node.id": str(node),
        "controller.quorum.voters": ",".join(
            f"{voter}@{layout.address(voter)}" for voter in layout.controllers
        ),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": LISTENER,
        "metadata.log.dir": str(layout.metadata_dir(node)),
        "log.dirs": ",".join(map(str, layout.log_dirs(node))),
        "offsets.topic.replication.factor": copies,
        # Each partition is looked after all the time, by the cleaner and by checks of the ISR.
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        # A leader that moves by itself would make tests of leadership guess.
        "auto.leader.rebalance.enable": "false",
        "log.retention.ms": "-1",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "log.cleaner.dedupe.buffer.size": str(4 * 2**20),  # 128 MB by default: the whole heap
    }


def _protocols(layout: NodeLayout, security: Security | None) -> dict[str, str]:
    if security is None:
        plain = f"CONTROLLER:PLAINTEXT,{LISTENER}:PLAINTEXT"
        return {"listener.security.protocol.map": plain}
    return security.node_settings(layout.certificates, LISTENER)


def _controller(layout: NodeLayout, node: int) -> dict[str, str]:
    return {
        "process.roles": "controller",
        # Twice a second by default each node writes, fetches and applies a record of nothing.
        "metadata.max.idle.interval.ms": "10000",
        "listeners": f"CONTROLLER://{layout.address(node)}",
    }


def _broker(layout: NodeLayout, node: int) -> dict[str, str]:
    listener = f"{LISTENER}://{layout.address(node)}"
    # 2 s by default. A broker that has heard nothing of the controller for so long looks for
    # another one in a busy loop: half a core for each, as long as the only controller is dead.
    alone = {"controller.quorum.fetch.timeout.ms": "600000"} if len(layout.controllers) == 1 else {}
    return alone | {
        "process.roles": "broker",
        # Also the pause before a refused registration is tried again, and between the steps of
        # a clean shutdown: 2 s by default.
        "broker.heartbeat.interval.ms": "500",
        "listeners": listener,
        "advertised.listeners": listener,
        "broker.rack": layout.racks[node],
    }
