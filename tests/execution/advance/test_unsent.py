"""Moves that were journalled before a crash and never sent, and cannot start now: in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import Advance, advance
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import Crash, SimulatedCluster
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import move

POLICY = Policy(1000, metadata_grace_s=0)
OURS, THEIRS = move("t", 0, (1, 2), (3, 2), 5), move("x", 0, (1, 2), (4, 2), 5)


class Crashed:
    """A run that died between the ledger and its first request."""

    def __init__(self, plan: Plan, ledger: Ledger, clock: SetClock) -> None:
        self.plan, self.ledger, self._clock = plan, ledger, clock
        self.cluster = SimulatedCluster([1, 2, 3, 4], [*plan.moves, THEIRS])
        self.cluster.crash_at = 1
        with pytest.raises(Crash):
            self.step()
        assert self.state is MoveState.ADMITTED
        assert self.cluster.started == []

    def step(self) -> Advance:
        """The next poll of the next process."""
        self._clock.pass_s(5)
        return advance(self.plan, self.ledger, cast(OwnCluster, self.cluster), POLICY, self._clock)

    def end(self) -> Advance:
        for _ in range(10):
            done = self.step()
            if done.finished:
                return done
            self.cluster.step(5)
        raise AssertionError(f"the plan does not end: {done}")

    @property
    def state(self) -> MoveState:
        return self.ledger.view(self.plan.plan_id).moves[OURS.partition]


@pytest.fixture
def crashed(approved: Callable[..., Plan], ledger: Ledger, clock: SetClock) -> Crashed:
    return Crashed(approved(OURS, cluster_id="sim"), ledger, clock)


@pytest.mark.slow
def test_moves_go_on_when_another_clients_reassignment_is_over(
    crashed: Crashed, clock: SetClock
) -> None:
    crashed.cluster.targets[THEIRS.partition] = THEIRS.target
    assert crashed.step().holds == ["another client's reassignment runs"]
    assert crashed.state is MoveState.PENDING
    for _ in range(2):
        clock.pass_s(2 * POLICY.stall_timeout_s)
        assert crashed.step().finished is None
    crashed.cluster.step(5)
    assert crashed.end().finished is PlanState.DONE
    assert crashed.cluster.started == [OURS.partition]


def test_the_same_move_made_by_another_client_is_not_counted_as_ours(crashed: Crashed) -> None:
    crashed.cluster.targets[THEIRS.partition] = THEIRS.target
    crashed.step()
    crashed.cluster.targets[OURS.partition] = OURS.target
    assert crashed.step().finished is PlanState.FAILED
    assert crashed.state is MoveState.SUPERSEDED
    assert OURS.partition in crashed.cluster.targets, "what is not ours goes on"


def test_a_pause_leaves_them_to_the_next_run(crashed: Crashed, ledger: Ledger) -> None:
    ledger.request_pause(crashed.plan.plan_id, "ann")
    assert crashed.step().finished is PlanState.PAUSED
    assert (crashed.state, crashed.cluster.started) == (MoveState.PENDING, [])
    ledger.withdraw_pause(crashed.plan.plan_id, "ann")
    ledger.claim(crashed.plan.plan_id)
    assert crashed.end().finished is PlanState.DONE
    assert crashed.cluster.started == [OURS.partition]


class Refusing(SimulatedCluster):
    """A controller that refuses every move for good."""

    asked = 0

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, Any], **_: Any
    ) -> dict[TopicPartition, BrokerError | None]:
        self.asked += 1
        refusal = BrokerError(39, "INVALID_REPLICA_ASSIGNMENT", "no such broker is registered")
        return dict.fromkeys(targets, refusal)


def test_a_step_asks_once_however_many_moves_are_refused(
    approved: Callable[..., Plan], ledger: Ledger
) -> None:
    moves = [move("t", number, (1, 2), (3, 2), 5) for number in range(6)]
    plan = approved(*moves, cluster_id="sim")
    cluster = Refusing([1, 2, 3], moves)
    policy = Policy(1000, metadata_grace_s=0, max_partitions_in_flight=2)
    for steps in (1, 2, 3):
        done = advance(plan, ledger, cast(OwnCluster, cluster), policy)
        assert cluster.asked == steps
        assert list(done.settled.values()) == [MoveState.FAILED] * 2
        assert done.finished is None
    done = advance(plan, ledger, cast(OwnCluster, cluster), policy)
    assert (done.finished, done.cause) == (
        PlanState.FAILED,
        "not every move is done: 6 failed",
    )


def test_what_several_log_dirs_refuse_is_taken_back_in_one_go(
    approved: Callable[..., Plan], ledger: Ledger
) -> None:
    moves = [
        replace(move("t", number, (1, 2), (3, 2), 5), target_log_dirs=(f"/d{number}", "any"))
        for number in range(2)
    ]
    plan = approved(*moves, cluster_id="sim")

    class FailedDisks(SimulatedCluster):
        def alter_replica_log_dirs(
            self, targets: Mapping[ReplicaId, str]
        ) -> dict[ReplicaId, BrokerError | None]:
            return dict.fromkeys(targets, BrokerError(56, "KAFKA_STORAGE_ERROR"))

    cluster = FailedDisks([1, 2, 3], moves)
    cancels: list[int] = []
    original = cluster.alter_reassignments

    def noting(targets: Mapping[TopicPartition, Any], **options: Any) -> Any:
        cancels.extend([len(targets)] if None in targets.values() else [])
        return original(targets, **options)

    cluster.alter_reassignments = noting  # type: ignore[method-assign]
    done = advance(plan, ledger, cast(OwnCluster, cluster), POLICY)
    assert cancels == [2]
    assert done.cancelled == [each.partition for each in moves]
    assert set(ledger.view(plan.plan_id).moves.values()) == {MoveState.FAILED}
    details = [record.detail for record in ledger.moves(plan.plan_id).values()]
    assert ["/d0" in details[0], "/d1" in details[1]] == [True, True], "each names its own"
