"""The cluster in memory with two log dirs per broker: copies between them as KIP-113 has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    LogDir,
    Partial,
    ReplicaId,
    ReplicaOnDisk,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from tests.execution.simulated_cluster import Crash, SimulatedCluster

A, B, C = "/a", "/b", "/c"
DIRS = (A, B, C)
NOT_ALIVE = BrokerError(-195, "NODE_NOT_READY", "not alive")
REPLICA_NOT_AVAILABLE = BrokerError(9, "REPLICA_NOT_AVAILABLE")
LOG_DIR_NOT_FOUND = BrokerError(57, "LOG_DIR_NOT_FOUND")


class LogDirCluster(SimulatedCluster):
    """Replicas begin in log dir A; a broker forgets where new ones should go.

    :ivar log_dirs: of each replica that is not in A.
    :ivar future: replica → log dir that it is being copied to.
    :ivar reported: every log dir move that a broker has accepted and that made it do something.
    """

    def __init__(self, brokers: Collection[BrokerId], moves: Collection[Move]) -> None:
        super().__init__(brokers, moves)
        self.log_dirs: dict[ReplicaId, str] = {}
        self.future: dict[ReplicaId, str] = {}
        self.reported: list[tuple[ReplicaId, str]] = []

    def log_dir(self, replica: ReplicaId) -> str:
        return self.log_dirs.get(replica, A)

    def finish_copies(self) -> None:
        """Every copy on a broker that is alive takes the place of its replica."""
        for replica in [replica for replica in self.future if replica.broker in self.live]:
            self.log_dirs[replica] = self.future.pop(replica)

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaId, str]
    ) -> dict[ReplicaId, BrokerError | None]:
        if self._crash_here():
            raise Crash
        verdicts = {replica: self._place(replica, path) for replica, path in targets.items()}
        if self._crash_here():
            raise Crash
        return verdicts

    def _place(self, replica: ReplicaId, path: str) -> BrokerError | None:
        if replica.broker not in self.live:
            return NOT_ALIVE
        if path not in DIRS:
            return LOG_DIR_NOT_FOUND
        if replica.broker not in self.replicas[replica.topic_partition]:
            return REPLICA_NOT_AVAILABLE
        if self.future.get(replica) == path:
            return None
        if path != self.log_dir(replica) or replica in self.future:
            self.reported.append((replica, path))
        self.future.pop(replica, None)
        if path != self.log_dir(replica):
            self.future[replica] = path
        return None

    def describe_log_dirs(
        self,
        brokers: Collection[BrokerId] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Partial[list[LogDir]]:
        return Partial(
            [
                LogDir(broker, path, None, None, None, None, self._held(broker, path, partitions))
                for broker in sorted(set(brokers or ()) & self.live)
                for path in DIRS
            ]
        )

    def _held(
        self, broker: BrokerId, path: str, partitions: Collection[TopicPartition] | None
    ) -> dict[TopicPartition, ReplicaOnDisk]:
        held = {}
        for partition in partitions or ():
            replica, size = ReplicaId(*partition, broker), self._size(partition, broker)
            if size is not None and self.log_dir(replica) == path:
                held[partition] = ReplicaOnDisk(size, 0, is_future=False)
            elif self.future.get(replica) == path:
                held[partition] = ReplicaOnDisk(size // 2, 7, is_future=True)
        return held
