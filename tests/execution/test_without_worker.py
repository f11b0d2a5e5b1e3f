"""Stops where no task of the run comes: the trigger's, and the sweep's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.execution.without_worker import keep_window, stop_now
from rehome.ledger.base.fencing import LeaseHeldError, LeaseLostError
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import move

MOVES = move("t", 0, (1, 2), (3, 2)), move("t", 1, (1, 2), (4, 2))
FIRST, SECOND = (m.partition for m in MOVES)


class Flying:
    """A plan of run-1 that is in flight under a throttle."""

    def __init__(
        self, ledger: Ledger, approved: Any, clock: SetClock, *, started: int = len(MOVES)
    ) -> None:
        self.ledger, self.clock = ledger, clock
        self.plan = approved(*MOVES, cluster_id="sim")
        self.memory = SimulatedCluster([1, 2, 3, 4], self.plan.moves)
        self.cluster = OwnCluster.itself(cast(Any, self.memory))
        self.ends = clock() + timedelta(seconds=100)
        self.policy = Policy(1000, metadata_grace_s=0, window_end=self.ends)
        ledger.claim(self.plan.plan_id)
        ledger.acquire_lease("sim", "run-1", 60.0)
        set_up_throttle(self.plan, ledger, self.cluster, 1000)
        no_window = Policy(1000, metadata_grace_s=0)
        if started:
            done = advance(self.plan, ledger, self.cluster, no_window, clock)
            assert len(done.admitted) == started

    def stop(self, owner: str = "run-1") -> PlanState | None:
        stopped = (self.plan, self.ledger, self.cluster, self.policy, owner, 60.0, self.clock)
        return stop_now(*stopped).finished

    def check_stopped(self) -> None:
        record = self.ledger.plan(self.plan.plan_id)
        assert (record.state, record.cause) == (PlanState.PAUSED, "the window has ended")
        assert (self.memory.targets, self.memory.configs) == ({}, {})
        assert set(self.ledger.view(record.plan_id).moves.values()) == {MoveState.PENDING}
        assert self.ledger.holder("sim") is None


@pytest.fixture
def flying(ledger: Ledger, approved: Any, clock: SetClock) -> Flying:
    return Flying(ledger, approved, clock)


@pytest.mark.slow
def test_at_its_windows_end_a_plan_is_stopped_its_throttles_taken_back_and_its_lease_given_back(
    flying: Flying,
) -> None:
    flying.clock.pass_s(100)
    assert flying.stop() is PlanState.PAUSED
    flying.check_stopped()


def test_a_stop_that_is_due_no_more_starts_nothing(
    ledger: Ledger, approved: Any, clock: SetClock
) -> None:
    """A pause is withdrawn between the trigger's poll and what it does."""
    pending = Flying(ledger, approved, clock, started=0)
    assert pending.stop() is None
    assert pending.memory.targets == {}
    assert set(ledger.view(pending.plan.plan_id).moves.values()) == {MoveState.PENDING}
    assert ledger.holder("sim") is not None, "its run goes on"


@pytest.mark.slow
def test_another_runs_plan_is_stopped_only_once_that_run_is_silent(flying: Flying) -> None:
    flying.clock.pass_s(50)
    flying.ledger.heartbeat("sim", "run-1", 60.0)
    flying.clock.pass_s(50)
    with pytest.raises(LeaseHeldError):
        flying.stop("sweep_throttles/1")
    assert len(flying.memory.targets) == 2
    flying.clock.pass_s(11)
    assert flying.stop("sweep_throttles/1") is PlanState.PAUSED
    flying.check_stopped()


@pytest.mark.slow
def test_of_two_triggers_the_second_fences_the_first_off(flying: Flying) -> None:
    first = flying.ledger.acquire_lease("sim", "run-1", 60.0)
    flying.clock.pass_s(100)
    assert flying.stop() is PlanState.PAUSED
    with pytest.raises(LeaseLostError):
        flying.ledger.under(first).transition(flying.plan.plan_id, PlanState.FAILED, "late")


def kept(flying: Flying, within_s: float) -> PlanState | None:
    what = (flying.plan, flying.ledger, flying.cluster, flying.policy, "sweep_throttles/1", 60.0)
    done = keep_window(*what, within_s, flying.clock)
    return None if done is None else done.finished


@pytest.mark.slow
def test_the_sweep_waits_for_a_windows_end_that_comes_before_the_next_sweep(
    flying: Flying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehome.execution.without_worker.sleep", flying.clock.pass_s)
    assert kept(flying, 30.0) is None, "the next sweep comes in time"
    assert len(flying.memory.targets) == 2
    flying.ledger.acquire_lease("sim", "run-1", 1000.0)
    assert kept(flying, 600.0) is None, "its run lives"
    assert flying.ledger.plan(flying.plan.plan_id).state is PlanState.RUNNING
    flying.ledger.acquire_lease("sim", "run-1", 0.0)
    assert kept(flying, 600.0) is PlanState.PAUSED
    flying.check_stopped()
