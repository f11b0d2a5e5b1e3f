"""A source that comes back empty is no move that is done: seen, told, and in the proof."""

from __future__ import annotations

from collections.abc import Callable

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.alerts.due_alerts import data_lost
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.execution.completion.verify import verify
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.execution.lost_disks import lose
from tests.ledger.small_plans import move

MESSAGES, RATE = 3_000, 100_000


def test_a_source_that_returns_empty_is_told_and_its_move_has_failed(
    mortal: LocalCluster, ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    topics = Topics(mortal)
    topic = topics.create([[1]])
    topics.fill(topic, MESSAGES)
    moved = TopicPartition(topic, 0)
    with impatient_gateway(mortal) as gateway:
        plan = approved(move(topic, 0, (1,), (3,)), cluster_id=mortal.cluster_id)
        set_up_throttle(plan, ledger, gateway, RATE)
        policy = Policy(RATE, metadata_grace_s=1)
        assert advance(plan, ledger, gateway, policy).admitted == [moved]
        before = ledger.view(plan.plan_id).data[moved].high_watermark
        assert before is not None
        assert before.offset == MESSAGES
        lose(mortal, gateway, topic, broker=1)

        wait_until(lambda: advance(plan, ledger, gateway, policy).finished, "its end", 120)
        record = ledger.plan(plan.plan_id)
        assert record.state is PlanState.FAILED
        settled = ledger.moves(plan.plan_id)[moved]
        assert settled.state is MoveState.FAILED
        assert f"offsets 0 to {MESSAGES - 1}" in settled.detail
        kinds = [event.kind for event in ledger.events(plan.plan_id)]
        assert kinds.count(EventKind.DATA_LOST) == 1
        (alert,) = data_lost(record, ledger.lost_data(record.plan_id))
        assert alert.facts["lost"] == {str(moved): [0, MESSAGES]}

        proof = verify(plan, gateway, ledger.data_seen(plan.plan_id))
        assert not proof.problems
        assert set(proof.lost) == {moved}
        assert not proof.ok
        clear_throttle(plan.plan_id, ledger, gateway)
