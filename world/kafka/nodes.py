"""Brokers as the world has them: processes, disks, and the replicas on them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rehome.domain.kafka import BrokerId
from world.kafka.log import Log
from world.kafka.metadata import PartitionKey, View
from world.kafka.quota import Quota

DISK_BYTES = 100e9


class Process(enum.Enum):
    """What the broker's process does."""

    RUNNING = "running"
    PAUSED = "paused"  # SIGSTOP: connections stay open, nothing answers
    DEAD = "dead"
    REGISTERING = "registering"  # started; the controller has not taken it in yet


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """A broker to begin with.

    :param log_dirs: capacity in bytes, by path.
    :param static: further entries of its server.properties.
    :param version: Kafka's, as (major, minor).
    """

    rack: str | None = None
    log_dirs: Mapping[str, float] = field(
        default_factory=lambda: {"/data/0": DISK_BYTES, "/data/1": DISK_BYTES}
    )
    static: Mapping[str, str] = field(default_factory=dict)
    version: tuple[int, int] = (4, 3)
    network_bytes_per_s: float = 100e6
    metadata_lag_s: float | None = None


@dataclass(slots=True)
class Disk:
    """A log dir. ``other_bytes`` are taken by files that are none of Kafka's."""

    path: str
    capacity: float
    other_bytes: float = 0.0
    online: bool = True


@dataclass(slots=True)
class FutureReplica:
    """A copy that a broker makes of a replica into another of its log dirs."""

    path: str
    log: Log


@dataclass(slots=True)
class Replica:
    """A replica on a broker: what is on its disk, whatever the metadata says.

    :param epoch: the leader epoch that it follows, or leads in.
    :param fetching_from: the leader it copies from; None = it leads, or does not fetch.
    :param behind_since: when it last had all that its leader had; meant for followers.
    """

    key: PartitionKey
    topic: str
    path: str
    log: Log = field(default_factory=Log)
    epoch: int = -1
    fetching_from: BrokerId | None = None
    behind_since: float = 0.0
    future: FutureReplica | None = None
    high_watermark: float = 0.0
    """The highest that it has shown as leader."""


@dataclass(slots=True)
class Node:
    """A broker. What it knows of the cluster is its ``view``."""

    id: BrokerId
    spec: BrokerSpec
    view: View
    disks: dict[str, Disk]
    leader_quota: Quota
    follower_quota: Quota
    log_dirs_quota: Quota
    process: Process = Process.RUNNING
    cut_off: bool = False
    """Whether it does not reach the controllers; it reaches the other brokers all the same."""
    incarnation: int = 0
    clean_shutdown: bool = True
    silent_since: float | None = None
    """When the controllers heard its last heartbeat; None = they hear it."""
    replicas: dict[PartitionKey, Replica] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    preferred_dirs: dict[PartitionKey, str] = field(default_factory=dict)
    """Where AlterReplicaLogDirs wants a replica that is still to come."""
    wake: Callable[[], None] = lambda: None
    """Reads the metadata log, if it can, and does what that asks for."""

    @property
    def running(self) -> bool:
        """Whether it serves clients and other brokers."""
        return self.process is Process.RUNNING

    def used(self, path: str) -> float:
        """Bytes that are used in a log dir."""
        total = self.disks[path].other_bytes
        for replica in self.replicas.values():
            if replica.path == path:
                total += replica.log.size
            if replica.future is not None and replica.future.path == path:
                total += replica.future.log.size
        return total

    def hosts(self, replica: Replica) -> bool:
        """Whether the replica's log dir is online."""
        return self.disks[replica.path].online
