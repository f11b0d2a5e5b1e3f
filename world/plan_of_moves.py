"""A plan of moves that no planner has made: for the simulated world, tests and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import seal
from rehome.domain.plan.summary import PlanSummary


def plan_of_moves(
    plan_id: str, cluster_id: str, moves: Sequence[Move], rate_bytes_per_s: int | None = None
) -> Plan:
    """These moves, with a summary that states only what they copy."""
    summary = PlanSummary(
        plan_id=plan_id,
        plan_hash="",
        cluster_id=cluster_id,
        action="reassign",
        snapshot="",
        partitions=len(moves),
        replica_moves=sum(len(move.adding) for move in moves),
        leader_changes=0,
        bytes_to_move=sum(move.bytes_to_move for move in moves),
        lower_bound_bytes=0,
        rate_bytes_per_s=rate_bytes_per_s,
        predicted_s=None,
        rack_violations_before=0,
        rack_violations_after=0,
        brokers=(),
    )
    return seal(Plan(plan_id, cluster_id, "reassign", tuple(moves), summary))
