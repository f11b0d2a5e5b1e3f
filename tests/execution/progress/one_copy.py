"""One partition that is copied to a third broker, as a poll sees it."""

from __future__ import annotations

from datetime import UTC, datetime

from rehome.domain.kafka import OngoingReassignment, PartitionState, ReplicaId, TopicPartition
from rehome.domain.run.observation import Observation
from tests.ledger.small_plans import move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
TP = TopicPartition("payments", 7)
MOVE = move("payments", 7, (1, 2), (4, 2), 1000)
SEEN = Observation(
    taken_at=T0,
    partitions={TP: PartitionState(1, (4, 2, 1), frozenset({1, 2}))},
    ongoing={TP: OngoingReassignment((4, 2, 1), (4,), (1,))},
    live_brokers=frozenset({1, 2, 4}),
    sizes={ReplicaId(*TP, 1): 2000, ReplicaId(*TP, 2): 2000, ReplicaId(*TP, 4): 500},
    log_end_offsets={ReplicaId(*TP, 1): 100, ReplicaId(*TP, 2): 100, ReplicaId(*TP, 4): 25},
)
