"""Lists and describes what is in flight on a cluster. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    ConfigValue,
    OngoingReassignment,
    TopicPartition,
)
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ReplicaStatus
from rehome.execution.foreign.in_flight import (
    EVERYTHING,
    Chosen,
    Flight,
    ThrottlesSeen,
    all_in_flight,
    describe,
)
from rehome.execution.observation.observe import moves_of, observe
from rehome.execution.progress.progress import replica_statuses
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE, LISTS, own_value, split
from rehome.ledger.store import Ledger

_RATES = (LEADER_RATE, FOLLOWER_RATE)
_DYNAMIC = ("DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG")


@dataclass(frozen=True)
class DescribedFlights:
    """What is in flight, as one reading shows it.

    :param reassignments: those that were asked about, by partition.
    :param others: how many more are in flight.
    :param statuses: of each of their target replicas (KIP-179).
    """

    cluster_id: str
    taken_at: datetime
    reassignments: tuple[Flight, ...]
    others: int
    statuses: tuple[ReplicaStatus, ...]


def list_reassignments(
    cluster: ClusterPort, chosen: Chosen = EVERYTHING
) -> dict[TopicPartition, OngoingReassignment]:
    """What is in flight of what is asked about.

    :raises ClusterError: the cluster did not answer, or the right to describe it is missing.
    :raises ValueError: a filter of topics is none.
    """
    ongoing = cluster.list_reassignments()
    return {partition: ongoing[partition] for partition in chosen.among(ongoing)}


def describe_reassignments(
    cluster: ClusterPort, ledger: Ledger, now: datetime, chosen: Chosen = EVERYTHING
) -> DescribedFlights:
    """The same with all that is known of each. The ledger remembers everything that is in flight:
    since when it is known, and how far it was, so that a later reading knows the rate.

    A broker that does not answer leaves what it would say unknown.

    :param now: what the reading is dated.
    :raises ClusterError: as :func:`list_reassignments`.
    :raises ValueError: a filter of topics is none.
    """
    cluster_id = cluster.describe_cluster().cluster_id
    observation = read_flights(cluster, now)
    partitions = chosen.among(observation.ongoing)
    starts = ledger.open_starts(cluster_id)
    records = ledger.note_seen(cluster_id, now, all_in_flight(observation))
    moves = moves_of({partition: observation.ongoing[partition] for partition in partitions})
    return DescribedFlights(
        cluster_id,
        now,
        describe(
            partitions,
            observation,
            read_throttles(cluster, partitions, observation),
            starts,
            records,
        ),
        len(observation.ongoing) - len(partitions),
        tuple(replica_statuses(moves, observation)),
    )


def read_flights(cluster: ClusterPort, now: datetime) -> Observation:
    """Everything that is in flight, with its partitions and replicas.

    :raises ClusterError: the cluster as a whole did not answer.
    """
    moves = moves_of(cluster.list_reassignments())
    observation = observe(cluster, moves, now)
    began = {move.partition for move in moves}
    ongoing = {
        partition: entry for partition, entry in observation.ongoing.items() if partition in began
    }
    return Observation(
        taken_at=now,
        partitions=observation.partitions,
        ongoing=ongoing,
        live_brokers=observation.live_brokers,
        topics_missing=observation.topics_missing,
        unreadable=observation.unreadable,
        topic_ids=observation.topic_ids,
        sizes=observation.sizes,
        log_end_offsets=observation.log_end_offsets,
        missing=observation.missing,
    )


def read_throttles(
    cluster: ClusterPort, partitions: Collection[TopicPartition], observation: Observation
) -> ThrottlesSeen:
    """Lists of their topics, and rates of their brokers that are alive.

    :raises ClusterError: the cluster as a whole did not answer.
    """
    involved = {
        broker for partition in partitions for broker in observation.ongoing[partition].replicas
    }
    brokers: dict[ConfigResource, BrokerId] = {
        ConfigResource.broker(broker): broker
        for broker in sorted(involved & observation.live_brokers)
    }
    topics = [ConfigResource.topic(topic) for topic in sorted({p.topic for p in partitions})]
    if not topics:
        return ThrottlesSeen()
    lists: dict[tuple[str, str], tuple[str, ...]] = {}
    rates: dict[tuple[BrokerId, str], int | None] = {}
    answers = cluster.describe_configs([*topics, *brokers], (*LISTS, *_RATES))
    for resource, configs in answers.items():
        if isinstance(configs, BrokerError):
            continue
        if resource not in brokers:
            for key in LISTS:
                lists[resource.name, key] = tuple(split(own_value(resource, configs.get(key))))
            continue
        for key in _RATES:
            rates[brokers[resource], key] = _rate(configs.get(key))
    return ThrottlesSeen(lists, rates)


def _rate(config: ConfigValue | None) -> int | None:
    """Of what a broker has of its own or from the brokers' default; None = no throttle is set."""
    if config is None or config.source not in _DYNAMIC or not config.value:
        return None
    return int(config.value)
