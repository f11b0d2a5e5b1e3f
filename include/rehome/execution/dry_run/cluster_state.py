"""One fresh reading of what a dry run judges by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rehome.cluster.interface.port import ClusterPort
from rehome.cluster.interface.rights import Role, missing_rights
from rehome.domain.clock import utc_now
from rehome.domain.kafka import (
    BrokerId,
    ClusterDescription,
    LogDir,
    OngoingReassignment,
    Partial,
    PartitionState,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.observation import Observation
from rehome.execution.dry_run.controller_rules import ControllerFacts, facts_of
from rehome.execution.observation.agreed_topics import agreed_topics
from rehome.execution.observation.min_isr import min_isr_of


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster as it is now, as far as a plan is concerned.

    :param topics: every topic that may be seen, and each topic of the plan, seen or not; without
        those of the plan on which the brokers do not agree.
    :param min_isr: ``min.insync.replicas`` in force, for topics of the plan whose configs were
        read.
    :param sizes: bytes on disk per replica of the plan's partitions.
    """

    taken_at: datetime
    cluster: ClusterDescription
    topics: Mapping[str, TopicDescription]
    ongoing: Mapping[TopicPartition, OngoingReassignment]
    log_dirs: Partial[list[LogDir]]
    missing_rights: tuple[str, ...]
    min_isr: Mapping[str, int]
    sizes: Mapping[ReplicaId, int]

    def controller_facts(self, *, allow: bool) -> ControllerFacts:
        """What the controller would decide by."""
        return facts_of(
            self.cluster, self.topics, self.ongoing, allow_replication_factor_change=allow
        )

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """The partition as metadata shows it; None where it does not."""
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic and not topic.error else None

    def leader(self, move: Move) -> BrokerId | None:
        """Who serves the copies of a move: the partition's leader; None = none now."""
        state = self.state(move.partition)
        return state.leader if state else None

    def followers(self, move: Move) -> int:
        """How many in-sync replicas follow the leader of a move's partition."""
        state = self.state(move.partition)
        return len(state.isr - {state.leader}) if state else 0

    def size_bytes(self, move: Move) -> int:
        """Size of one replica as the leader has it now; as planned where it does not say."""
        leader = self.leader(move)
        if leader is None:
            return move.size_bytes
        return self.sizes.get(ReplicaId(*move.partition, leader), move.size_bytes)

    def observation(self, plan: Plan) -> Observation:
        """What admission would go by if the plan started now."""
        states = ((move.partition, self.state(move.partition)) for move in plan.moves)
        return Observation(
            taken_at=self.taken_at,
            partitions={partition: state for partition, state in states if state is not None},
            ongoing={},
            live_brokers=frozenset(self.cluster.brokers),
            sizes=self.sizes,
        )

    def replica_bytes(self, move: Move, broker: BrokerId) -> int:
        """Size of the replica on a broker; as planned where it does not say."""
        return self.sizes.get(ReplicaId(*move.partition, broker), move.size_bytes)


def read_cluster(plan: Plan, cluster: ClusterPort, role: Role = Role.REASSIGNER) -> ClusterState:
    """Read it; the plan's topics of a broker that is known to be up to date.

    :param role: whose rights are needed.
    :raises ClusterError: it could not be read at all.
    """
    names = {move.partition.topic for move in plan.moves}
    shown = cluster.describe_topics()
    topics = {name: topic for name, topic in shown.items() if name not in names}
    topics |= agreed_topics(cluster, names)
    log_dirs = cluster.describe_log_dirs()
    return ClusterState(
        taken_at=utc_now(),
        cluster=cluster.describe_cluster(),
        topics=topics,
        ongoing=cluster.list_reassignments(),
        log_dirs=log_dirs,
        missing_rights=tuple(missing_rights(cluster, names, role)),
        min_isr=min_isr_of(cluster, names),
        sizes={
            ReplicaId(*partition, log_dir.broker): replica.size_bytes
            for log_dir in log_dirs.value
            for partition, replica in log_dir.replicas.items()
            if partition in plan.by_partition and not replica.is_future
        },
    )
