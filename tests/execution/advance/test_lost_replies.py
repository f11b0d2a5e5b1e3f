"""Requests that are carried out though their answer is lost: on a cluster in memory."""

from __future__ import annotations

from typing import Any, cast

from rehome.cluster.clients.clients import UNANSWERED
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import move

MOVE, OTHER = move("t", 0, (1, 2), (3, 2)), move("u", 0, (1, 2), (3, 2))
TP = TopicPartition("t", 0)
POLICY = Policy(1000, metadata_grace_s=0)


class Silent(SimulatedCluster):
    """Applies the first reassignments, and does not answer."""

    answers = False

    def alter_reassignments(self, targets: Any, **options: Any) -> Any:
        verdicts = super().alter_reassignments(targets, **options)
        if self.answers:
            return verdicts
        self.answers = True
        raise ClusterError("no answer")


class HalfHeard(SimulatedCluster):
    """Accepts everything, and answers for a part of it only."""

    def alter_reassignments(self, targets: Any, **options: Any) -> Any:
        verdicts = super().alter_reassignments(targets, **options)
        return verdicts | {OTHER.partition: UNANSWERED}


def test_unanswered_requests_of_a_batch_are_settled_by_the_next_poll(
    ledger: Ledger, approved: Any
) -> None:
    plan = approved(MOVE, OTHER, cluster_id="sim")
    port = cast(OwnCluster, HalfHeard([1, 2, 3], plan.moves))
    done = advance(plan, ledger, port, POLICY)
    assert (done.admitted, done.errors) == ([TP], {OTHER.partition: UNANSWERED})
    assert set(ledger.view(plan.plan_id).moves.values()) == {MoveState.ADMITTED}
    assert list(ledger.view(plan.plan_id).sent) == [TP]
    assert advance(plan, ledger, port, POLICY).in_flight == 2
    assert ledger.view(plan.plan_id).sent.keys() == {TP, OTHER.partition}, "the controller lists it"


def test_a_move_that_others_cancelled_is_not_sent_again_though_its_answer_was_lost(
    ledger: Ledger, approved: Any
) -> None:
    plan = approved(MOVE, cluster_id="sim")
    cluster = Silent([1, 2, 3], plan.moves)
    port = cast(OwnCluster, cluster)
    assert advance(plan, ledger, port, POLICY).holds == ["1 move is to be sent again: no answer."]
    assert ledger.view(plan.plan_id).sent == {}
    advance(plan, ledger, port, POLICY)
    assert list(ledger.view(plan.plan_id).sent) == [TP], "the controller lists it"
    assert cluster.alter_reassignments({TP: None}) == {TP: None}

    done = advance(plan, ledger, port, POLICY)
    assert cluster.started == [TP]
    assert done.cancelled == [TP]
    assert ledger.view(plan.plan_id).moves == {TP: MoveState.CANCELLED}
    assert cluster.replicas[TP] == MOVE.current
