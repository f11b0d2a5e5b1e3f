"""Findings of the dry run about a plan's brokers: from data, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime

from include.domain.kafka import Broker, ClusterDescription, Partial
from include.execution.dry_run.cluster_state import ClusterState
from include.execution.dry_run.replica_checks import broker_findings
from tests.ledger.small_plans import make_plan, move


def test_another_order_of_replicas_needs_its_preferred_leader_alone_to_be_alive() -> None:
    """Broker 9 is dead. A target that keeps its replica could never be complete."""
    brokers = {n: Broker(n, "localhost", 9092, None) for n in (1, 2, 3)}
    now = ClusterState(
        taken_at=datetime(2030, 1, 1, tzinfo=UTC),
        cluster=ClusterDescription("c1", 1, brokers, None),
        topics={},
        ongoing={},
        log_dirs=Partial([], {}),
        missing_rights=(),
        min_isr={},
        sizes={},
    )
    for target, refused in (((2, 9, 1), False), ((9, 2, 1), True), ((2, 9, 3), True)):
        plan = make_plan("p", move("t", 0, (1, 2, 9), target))
        reported = [finding.message for finding in broker_findings(plan, now)]
        assert reported == (["is not alive, and is to hold t-0"] if refused else [])
