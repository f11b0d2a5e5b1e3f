"""Findings of the dry run about a plan's brokers: from data, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.domain.actions import Action
from rehome.domain.kafka import Broker, ClusterDescription, Partial
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.findings import Severity
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.replica_checks import broker_findings, redundancy_findings
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from tests.ledger.small_plans import make_plan, move

RACKED = {
    n: Broker(n, "localhost", 9092, f"/dc{n // 3}/r{n % 2}") for n in range(1, 5)
}  # 1 and 2 in dc0, 3 and 4 in dc1


@pytest.mark.parametrize(
    ("target", "action", "refuse", "severities"),
    [
        ((1, 2), Action.DRAIN, False, [Severity.WARNING]),
        ((1, 2), Action.DRAIN, True, [Severity.ERROR]),
        ((2, 4), Action.DRAIN, True, []),
        ((4, 3), Action.REASSIGN, True, [Severity.ERROR]),
        ((1,), Action.SET_REPLICATION_FACTOR, False, [*[Severity.WARNING] * 2, Severity.INFO]),
        ((3,), Action.REASSIGN, True, [Severity.ERROR] * 3),
    ],
)
def test_what_a_plan_weakens_is_measured_against_what_was_there(
    target: tuple[int, ...], action: Action, refuse: bool, severities: list[Severity]
) -> None:
    plan = make_plan("p", move("t", 0, (1, 3), target))
    request = ReassignmentRequest(action)
    reported = list(redundancy_findings(plan, request, state(RACKED), refuse=refuse))
    assert [finding.severity for finding in reported] == severities
    weakened = [each.weakened for each in reported]
    assert all(w is not None and (w.partitions, w.example) == (1, "t-0") for w in weakened)


def state(brokers: dict[int, Broker]) -> ClusterState:
    return ClusterState(
        taken_at=datetime(2030, 1, 1, tzinfo=UTC),
        cluster=ClusterDescription("c1", 1, brokers, None),
        topics={},
        ongoing={},
        log_dirs=Partial([], {}),
        missing_rights=(),
        min_isr={},
        sizes={},
    )


def test_another_order_of_replicas_needs_its_preferred_leader_alone_to_be_alive() -> None:
    """Broker 9 is dead. A target that keeps its replica could never be complete."""
    brokers = {n: Broker(n, "localhost", 9092, None) for n in (1, 2, 3)}
    now = state(brokers)
    for target, refused in (((2, 9, 1), False), ((9, 2, 1), True), ((2, 9, 3), True)):
        plan = make_plan("p", move("t", 0, (1, 2, 9), target))
        reported = [*broker_findings(plan, now)]
        dead = TypedFinding(FoundKind.BROKER_DEAD, "broker 9", partitions=("t-0",))
        assert reported == ([dead] if refused else [])
