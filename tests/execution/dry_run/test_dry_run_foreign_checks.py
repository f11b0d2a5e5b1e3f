"""What the dry run says of other clients' reassignments: from data, without a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from rehome.domain.actions import Action
from rehome.domain.kafka import (
    Broker,
    ClusterDescription,
    OngoingReassignment,
    Partial,
    PartitionState,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.findings import Finding, Severity
from rehome.execution.dry_run.active_plan import ActivePlan
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.dry_run import foreign_findings
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.ledger.store import Ledger
from tests.execution.observed import seen
from tests.ledger.small_plans import make_plan, move

HUNG = TopicPartition("hung", 0)
PLAN = make_plan("p", move("mine", 0, (1, 2), (3, 2)))
MOVES_HUNG = make_plan("p", move("hung", 0, (1, 2), (3, 2)))


def finding(
    *adding: int, leader: int | None = 1, isr: tuple[int, ...] = (1,), plan: object = PLAN
) -> Finding:
    """Of a foreign reassignment of hung-0, on a cluster whose broker 4 is dead."""
    brokers = {n: Broker(n, "localhost", 9092, None) for n in (1, 2, 3)}
    state = PartitionState(leader, (1, *adding), frozenset(isr))
    now = ClusterState(
        taken_at=datetime(2030, 1, 1, tzinfo=UTC),
        cluster=ClusterDescription("c1", 1, brokers, None),
        topics={"hung": TopicDescription("hung", "id", False, {0: state})},
        ongoing={HUNG: OngoingReassignment((1, *adding), adding, ())},
        log_dirs=Partial([], {}),
        missing_rights=(),
        min_isr={},
        sizes={},
    )
    request = ReassignmentRequest(Action.REBALANCE)
    (found,) = foreign_findings(plan, request, now, ())  # type: ignore[arg-type]
    return put_in_words(found)


def test_a_move_in_steps_of_the_active_plan_is_known_by_its_step(
    ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    whole, stepped = move("whole", 0, (1, 2), (3, 2)), move("stepped", 0, (1, 2), (3, 4))
    plan = approved(whole, stepped, cluster_id="c1")
    ledger.claim(plan.plan_id)
    assert ledger.admit(plan.plan_id, plan.moves, seen(plan), 1000, {stepped.partition: (1, 3, 2)})
    found = ActivePlan.of(ledger, plan.plan_id).targets()
    assert found == {whole.partition: (3, 2), stepped.partition: (1, 3, 2)}


def test_one_whose_target_is_alive_is_waited_for() -> None:
    found = finding(3)
    assert found.severity is Severity.ERROR
    assert found.remedy.startswith("Wait for it to end")


def test_one_whose_target_is_dead_is_not_waited_for_and_kafkas_command_is_named() -> None:
    for plan in (PLAN, MOVES_HUNG):
        found = finding(3, 4, plan=plan)
        assert found.severity is Severity.ERROR
        assert "cannot end: it adds a replica on broker 4, which is not alive" in found.message
        assert "Wait" not in found.remedy
        assert "kafka-reassign-partitions.sh --cancel --preserve-throttles" in found.remedy
        file = json.loads(found.remedy[found.remedy.index("{") : found.remedy.rindex("}") + 1])
        assert file["partitions"] == [{"topic": "hung", "partition": 0, "replicas": [1, 3, 4]}]


def test_one_without_a_leader_has_nothing_to_copy_from() -> None:
    assert "cannot end: the partition has no leader" in finding(3, leader=None).message


def test_one_whose_cancel_the_controller_refuses_names_what_else_ends_it() -> None:
    found = finding(3, 4, leader=3, isr=(3,))
    assert "cannot end: it adds a replica on broker 4, which is not alive" in found.message
    assert "--cancel" not in found.remedy
    assert found.remedy.startswith(
        "Have it ended by another target: kafka-reassign-partitions.sh --execute --additional, to "
        "as many live brokers as the partition is to have replicas, among them broker 3 (in sync) "
        "and at least one that has no replica of it. It also ends when that broker is back."
    )
    several = finding(3, 4, 5, leader=3, isr=(3,))
    assert "adds replicas on brokers 4 and 5, which are not alive" in several.message
    assert "It also ends when those brokers are back." in several.remedy
    without_source = finding(3, leader=None, isr=(3,)).remedy
    assert without_source.startswith("It ends when a broker with a complete replica is back.")
    assert "--execute" not in finding(3, leader=None, isr=(3,)).remedy
