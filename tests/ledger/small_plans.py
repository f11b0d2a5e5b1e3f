"""Small plans for tests of the ledger and of the execution."""

from __future__ import annotations

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from world.plan_of_moves import plan_of_moves


def move(
    topic: str,
    partition: int,
    current: tuple[int, ...],
    target: tuple[int, ...],
    size_bytes: int = 100,
    current_log_dirs: tuple[str, ...] = (),
    target_log_dirs: tuple[str, ...] = (),
) -> Move:
    return Move(
        TopicPartition(topic, partition),
        current,
        target,
        size_bytes,
        MoveReason.REQUESTED,
        current_log_dirs=current_log_dirs,
        target_log_dirs=target_log_dirs,
    )


def make_plan(plan_id: str, *moves: Move, cluster_id: str = "c1") -> Plan:
    chosen = moves or (move("t", 0, (1, 2), (3, 2)), move("t", 1, (2, 1), (2, 3)))
    return plan_of_moves(plan_id, cluster_id, chosen)
