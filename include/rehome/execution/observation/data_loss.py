"""Whether messages of what moves are gone: high watermarks compared from poll to poll.

Nothing but the high watermark tells. Sizes shrink by retention, DeleteRecords and compaction, and
where old segments are tiered; log starts rise; a leader's own log end falls with a clean failover.
The high watermark of a topic falls only where messages are gone that all in-sync replicas had: by
an unclean election, or because the only replica has come back without its data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import BrokerError, HighWatermark, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.ledger_view import DataSeen


def later(
    cluster: ClusterPort,
    moves: Collection[Move],
    before: Mapping[TopicPartition, DataSeen],
    now: Mapping[TopicPartition, HighWatermark | BrokerError],
) -> dict[TopicPartition, DataSeen]:
    """What is new of the messages of these moves' partitions.

    A high watermark that has fallen is believed only of the topic that the move was planned for,
    and of a leader that is no older than the one before: else nothing is concluded, and the next
    poll looks again.

    :param before: what earlier polls have seen, known before ``now`` was read.
    """
    data, fallen = {}, {}
    for move in moves:
        earlier, read = before.get(move.partition), now.get(move.partition)
        if earlier is None or not isinstance(read, HighWatermark):
            continue
        last = earlier.high_watermark
        if last is not None and read.leader_epoch < last.leader_epoch:
            continue  # a leader that does not know yet that another one was elected
        if last is not None and read.offset < last.offset:
            fallen[move.partition] = earlier.then(read)
        elif read != last:
            data[move.partition] = earlier.then(read)
    if fallen:
        same = _still_there(cluster, [move for move in moves if move.partition in fallen])
        data |= {partition: fallen[partition] for partition in same}
    return data


def _still_there(cluster: ClusterPort, moves: Collection[Move]) -> list[TopicPartition]:
    """Those whose topic is the one that they were planned for: ids never come back, so it was when
    their offsets were read.
    """
    try:
        topics = cluster.current_topics({move.partition.topic for move in moves})
    except ClusterError:
        return []
    return [
        move.partition
        for move in moves
        if (topic := topics.get(move.partition.topic)) is not None
        and topic.error is None
        and move.is_of(topic.topic_id)
    ]
