"""What copies have to bring, where sizes on disk mislead.

After DeleteRecords a leader's log begins at a later offset at once, while what lies below stays on
its disk until a whole segment goes. A copy begins at that offset: of 20 MB on the leader's disk it
may have to bring 0.2 MB.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation

MISLEADS = 0.5
"""Sizes count as misleading where less than this part of them is to be copied. What a segment
holds of deleted records is normal, and the estimate from offsets takes messages for equally large.
"""
ASKED_AGAIN_AFTER = timedelta(seconds=60)


class LogStarts:
    """Where the logs of leaders begin, of partitions in flight: asked once, and again each minute.

    An offset that could not be read is not known until then.
    """

    def __init__(self) -> None:
        self._starts: dict[TopicPartition, int] = {}
        self._asked_at: dict[TopicPartition, datetime] = {}

    def of(
        self, cluster: ClusterPort, moves: Collection[Move], observation: Observation
    ) -> Mapping[TopicPartition, int]:
        """The offsets that are known, of partitions whose copies have begun.

        :raises ClusterError: as of any reading.
        """
        begun = [move.partition for move in moves if _furthest(move, observation) is not None]
        self._asked_at = {p: self._asked_at[p] for p in begun if p in self._asked_at}
        due = {
            ReplicaId(*partition, leader)
            for partition in begun
            if self._is_due(partition, observation.taken_at)
            and (leader := observation.partitions[partition].leader) is not None
        }
        if due:
            for replica, start in cluster.log_start_offsets(sorted(due)).value.items():
                self._asked_at[replica.topic_partition] = observation.taken_at
                self._starts[replica.topic_partition] = start if isinstance(start, int) else 0
        return {p: self._starts[p] for p in begun if p in self._asked_at}

    def _is_due(self, partition: TopicPartition, now: datetime) -> bool:
        asked_at = self._asked_at.get(partition)
        return asked_at is None or now - asked_at >= ASKED_AGAIN_AFTER


def to_copy(
    moves: Collection[Move], observation: Observation, starts: Mapping[TopicPartition, int]
) -> Mapping[ReplicaId, int]:
    """Sizes of replicas; of leaders whose size misleads, what a copy of theirs comes to.

    That is what the copy that is furthest has, and for each message that it lacks as much as one
    of its own takes.

    :param starts: where the leaders' logs begin; 0 = nothing was ever deleted.
    """
    sizes = dict(observation.sizes)
    for move in moves:
        start, furthest = starts.get(move.partition, 0), _furthest(move, observation)
        if not start or furthest is None:
            continue
        leader, copied, end, leader_end = furthest
        if end <= start:
            continue
        whole = copied + max(0, leader_end - end) * copied / (end - start)
        if whole < MISLEADS * sizes.get(leader, 0):
            sizes[leader] = round(whole)
    return sizes


def _furthest(move: Move, observation: Observation) -> tuple[ReplicaId, int, int, int] | None:
    """The leader; bytes and end of the copy that has most; and the leader's end. None = no copy has
    begun, or that is not known.
    """
    state = observation.partitions.get(move.partition)
    if state is None or state.leader is None:
        return None
    leader = ReplicaId(*move.partition, state.leader)
    leader_end, best = observation.log_end_offsets.get(leader), None
    for broker in move.adding:
        replica = ReplicaId(*move.partition, broker)
        end, size = observation.log_end_offsets.get(replica), observation.sizes.get(replica, 0)
        if isinstance(end, int) and size and replica != leader and (not best or end > best[1]):
            best = size, end
    if best is None or not isinstance(leader_end, int):
        return None
    return leader, *best, leader_end
