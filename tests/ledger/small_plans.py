"""Small plans for tests of the ledger and of the execution."""

from __future__ import annotations

from include.domain.kafka import TopicPartition
from include.domain.plan.move import Move, MoveReason
from include.domain.plan.plan import Plan
from include.domain.plan.plan_hash import sealed
from include.domain.plan.summary import PlanSummary


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
    summary = PlanSummary(
        plan_id=plan_id,
        plan_hash="",
        cluster_id=cluster_id,
        action="reassign",
        snapshot="",
        partitions=len(chosen),
        replica_moves=sum(len(item.adding) for item in chosen),
        leader_changes=0,
        bytes_to_move=sum(item.bytes_to_move for item in chosen),
        lower_bound_bytes=0,
        rate_bytes_per_s=None,
        predicted_s=None,
        rack_violations_before=0,
        rack_violations_after=0,
        brokers=(),
    )
    return sealed(Plan(plan_id, cluster_id, "reassign", tuple(chosen), summary))
