"""A plan: moves with reasons, its hash, Kafka's JSON and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.moves_by_partition import IndexedMoves, MovesByPartition
from rehome.domain.plan.summary import PlanSummary


@dataclass(frozen=True)
class Plan:
    """Moves in partition order, and what is known about them.

    :param allow_replication_factor_change: only true when the action is to change it.
    """

    plan_id: str
    cluster_id: str
    action: str
    moves: Sequence[Move]
    summary: PlanSummary
    allow_replication_factor_change: bool = False

    @cached_property
    def by_partition(self) -> Mapping[TopicPartition, Move]:
        """Partition → its move; of moves in columns, made when it is used."""
        if isinstance(self.moves, IndexedMoves):
            return self.moves.by_partition
        return {move.partition: move for move in self.moves}

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """Have the moves of these partitions made at once, where they are in columns."""
        if isinstance(self.by_partition, MovesByPartition):
            self.by_partition.prepare(partitions)

    @cached_property
    def brokers(self) -> frozenset[BrokerId]:
        """Every broker that a replica is moved from or to, or stays on."""
        if isinstance(self.moves, IndexedMoves):
            return self.moves.brokers
        return frozenset(b for move in self.moves for b in (*move.current, *move.target))

    @cached_property
    def bytes_to_copy(self) -> int:
        """Bytes that all of its moves write anew, between brokers and between log dirs."""
        if isinstance(self.moves, IndexedMoves):
            return self.moves.bytes_to_copy
        return sum(move.bytes_to_copy for move in self.moves)

    @property
    def plan_hash(self) -> str:
        """The hash in its summary; :mod:`rehome.domain.plan.plan_hash` computes it."""
        return self.summary.plan_hash
