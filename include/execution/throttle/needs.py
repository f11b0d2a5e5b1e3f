"""Which throttles copies of ours in flight depend on: those stay.

A plan may end while a copy of it goes on: the controller refuses to cancel what would leave no
replica in sync (error 39). And what an ended plan owes may be what the running one relies on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from include.cluster.interface.port import ClusterPort
from include.domain.configs import ConfigResource
from include.domain.kafka import ReplicaId, TopicPartition
from include.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE, LISTS, LOG_DIR_RATE
from include.execution.throttle.rate_scope import DEFAULT
from include.ledger.base.records import Reassignment, ThrottleEntry
from include.ledger.store import Ledger


@dataclass(frozen=True)
class NeededThrottles:
    """What is in flight, as the ledger knows it and the cluster shows it.

    :param copying: reassignments that the controller lists.
    :param within: replicas that are copied between log dirs of their broker.
    """

    copying: tuple[Reassignment, ...] = ()
    within: tuple[ReplicaId, ...] = ()

    def relying_on(self, entry: ThrottleEntry) -> TopicPartition | None:
        """A partition in flight that an entry of the throttle journal slows; None = none does."""
        return next(self._relying_on(entry), None)

    def _relying_on(self, entry: ThrottleEntry) -> Iterator[TopicPartition]:
        if entry.key == LOG_DIR_RATE:
            for replica in self.within:
                if entry.resource in (DEFAULT, ConfigResource.broker(replica.broker)):
                    yield replica.topic_partition
            return
        for start in self.copying:
            brokers = {*start.replicas_before, *start.replicas_target}
            if entry.key in LISTS:
                on_it = {item.partition(":")[0] for item in entry.ours}
                topic = ConfigResource.topic(start.partition.topic)
                if entry.resource == topic and str(start.partition.partition) in on_it:
                    yield start.partition
            elif entry.key in (LEADER_RATE, FOLLOWER_RATE) and (
                entry.resource in {DEFAULT, *map(ConfigResource.broker, brokers)}
            ):
                yield start.partition


def needs(ledger: Ledger, cluster: ClusterPort, cluster_id: str) -> NeededThrottles:
    """What of any plan is in flight on the cluster.

    :raises ClusterError: the cluster could not be read.
    """
    starts = ledger.open_starts(cluster_id)
    if not starts:
        return NeededThrottles()
    ongoing = cluster.list_reassignments()
    copying: list[Reassignment] = []
    rest: list[Reassignment] = []
    for start in starts:
        entry = ongoing.get(start.partition)
        listed = entry is not None and entry.leads_to(start.replicas_target)
        (copying if listed else rest).append(start)
    return NeededThrottles(tuple(copying), tuple(_within(cluster, rest)))


def _within(cluster: ClusterPort, starts: Collection[Reassignment]) -> list[ReplicaId]:
    if not starts:
        return []
    wanted = {broker for start in starts for broker in start.replicas_target}
    live = sorted(wanted & set(cluster.describe_cluster().brokers))
    answer = cluster.describe_log_dirs(live, [start.partition for start in starts])
    return [
        ReplicaId(*partition, log_dir.broker)
        for log_dir in answer.value
        for partition, replica in log_dir.replicas.items()
        if replica.is_future
    ]
