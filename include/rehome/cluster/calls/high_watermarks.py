"""High watermarks: below which offset a partition's leader shows messages to consumers.

What all in-sync replicas have lies below it. A leader's own log end may fall with a clean failover,
for what only the old leader had was never acknowledged to ``acks=all``. A high watermark does not
fall from one leader to the next (KIP-207: a leader that does not know it yet answers
OFFSET_NOT_AVAILABLE), unless messages are gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from rehome.cluster.clients.clients import Clients
from rehome.cluster.interface.errors import broker_error
from rehome.cluster.interface.rights import Call, naming_right
from rehome.cluster.messages.admin import LATEST, list_offsets_request
from rehome.domain.kafka import BrokerError, BrokerId, HighWatermark, Partial, TopicPartition

CONSUMER = -1
MIN_VERSION = 5
"""From version 4 on with the leader epoch, from 5 on with OFFSET_NOT_AVAILABLE (KIP-207)."""

Found = dict[TopicPartition, HighWatermark | BrokerError]


def high_watermarks(
    clients: Clients, leaders: Mapping[TopicPartition, BrokerId], timeout_ms: int
) -> Partial[Found]:
    """The high watermark of each partition, from its leader; all leaders are asked at once.

    A broker that does not lead a partition answers NOT_LEADER_OR_FOLLOWER.
    """
    by_leader: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
    for partition, leader in leaders.items():
        by_leader[leader].append(partition)
    requests = {
        leader: list_offsets_request(led, LATEST, timeout_ms, CONSUMER, min_version=MIN_VERSION)
        for leader, led in by_leader.items()
    }
    answers, missing = clients.ask(Call.LIST_OFFSETS, lambda: clients.reads.ask_each(requests))
    watermarks: Found = {}
    for answer in answers.values():
        for topic in answer.topics:
            for part in topic.partitions:
                error = broker_error(part.error_code) if part.error_code else None
                watermarks[TopicPartition(topic.name, part.partition_index)] = naming_right(
                    error or HighWatermark(part.offset, part.leader_epoch),
                    Call.LIST_OFFSETS,
                    topic.name,
                )
    return Partial(watermarks, missing)
