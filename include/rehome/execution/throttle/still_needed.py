"""Which throttles copies of ours in flight depend on: those stay.

A plan may end while a copy of it goes on: the controller refuses to cancel what would leave no
replica in sync (error 39). And the running plan may rely on what an ended plan owes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, ReplicaId, TopicPartition
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE, LISTS, LOG_DIR_RATE
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.ledger.base.records import Reassignment, ThrottleEntry
from rehome.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class SlowedCopy:
    """A copy that a throttle slows.

    :param silent: the broker that does not say whether it is still under way; None = it is.
    """

    partition: TopicPartition
    silent: BrokerId | None = None

    def __str__(self) -> str:
        if self.silent is None:
            return f"{self.partition} is still being copied, and relies on it"
        return f"broker {self.silent} does not say whether {self.partition} is still being copied"


@dataclass(frozen=True)
class NeededThrottles:
    """What is in flight, as the ledger knows it and the cluster shows it.

    :param copying: reassignments that the controller lists.
    :param within: replicas that are copied between log dirs of their broker.
    :param silent: replicas that may be: their broker is alive, but does not report its log dirs.
    """

    copying: tuple[Reassignment, ...] = ()
    within: tuple[ReplicaId, ...] = ()
    silent: tuple[ReplicaId, ...] = ()

    def slowed_by(self, entry: ThrottleEntry) -> SlowedCopy | None:
        """A copy in flight that an entry of the throttle journal slows; None = there is none."""
        if entry.key == LOG_DIR_RATE:
            return self._within_brokers(entry)
        partition = next(self._relying_on(entry), None)
        return None if partition is None else SlowedCopy(partition)

    def _within_brokers(self, entry: ThrottleEntry) -> SlowedCopy | None:
        def of(replicas: Collection[ReplicaId]) -> ReplicaId | None:
            where = entry.resource
            slowed = (r for r in replicas if where in (DEFAULT, ConfigResource.broker(r.broker)))
            return next(slowed, None)

        certain, possible = of(self.within), of(self.silent)
        if certain is not None:
            return SlowedCopy(certain.topic_partition)
        return None if possible is None else SlowedCopy(possible.topic_partition, possible.broker)

    def _relying_on(self, entry: ThrottleEntry) -> Iterator[TopicPartition]:
        for start in self.copying:
            brokers = {*start.replicas_before, *start.replicas_target}
            if entry.key in LISTS:
                on_it = {item.partition(":")[0] for item in entry.asked_values}
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
    return NeededThrottles(tuple(copying), *_within(cluster, rest))


def _within(
    cluster: ClusterPort, starts: Collection[Reassignment]
) -> tuple[tuple[ReplicaId, ...], tuple[ReplicaId, ...]]:
    """Replicas that are copied within their brokers, and those of which that is not known."""
    if not starts:
        return (), ()
    brokers = {broker for start in starts for broker in start.replicas_target}
    live = sorted(brokers & set(cluster.describe_cluster().brokers))
    answer = cluster.describe_log_dirs(live, [start.partition for start in starts])
    copied = tuple(
        ReplicaId(*partition, log_dir.broker)
        for log_dir in answer.value
        for partition, replica in log_dir.replicas.items()
        if replica.is_future
    )
    silent = tuple(
        ReplicaId(*start.partition, broker)
        for start in starts
        for broker in start.replicas_target
        if broker in answer.missing
    )
    return copied, silent
