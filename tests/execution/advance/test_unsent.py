"""Moves that were journalled before a crash and never sent, and cannot start now: in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from include.cluster.interface.port import ClusterPort
from include.domain.plan.plan import Plan
from include.domain.run.run_policy import Policy
from include.domain.run.states import MoveState, PlanState
from include.execution.advance import Advance, advance
from include.ledger.store import Ledger
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
        return advance(self.plan, self.ledger, cast(ClusterPort, self.cluster), POLICY, self._clock)

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
