"""Time without a poll, because Airflow was down, does not count as a stall: in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.access.lease import hold
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import Advance, advance
from rehome.execution.stall import overdue
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import Crash, SimulatedCluster
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import move

LEASE_S, STALL_S, OUTAGE_S = 60.0, 600.0, 7200.0
POLICY = Policy(1000, max_moves_per_broker=1, metadata_grace_s=0, stall_timeout_s=STALL_S)


THEIRS = move("x", 0, (1, 2), (4, 2), 2)


@pytest.fixture
def plan(approved: Callable[..., Plan]) -> Plan:
    return approved(*[move("t", at, (1, 2), (3, 2), 2) for at in range(2)], cluster_id="sim")


@pytest.fixture
def simulated(plan: Plan) -> SimulatedCluster:
    return SimulatedCluster([1, 2, 3, 4], [*plan.moves, THEIRS])


@pytest.fixture
def step(
    plan: Plan, simulated: SimulatedCluster, ledger: Ledger, clock: SetClock
) -> Callable[[], Advance]:
    """A step of the run's worker."""

    def one() -> Advance:
        own = OwnCluster.of(cast(ClusterPort, simulated), "sim")
        with hold(ledger, own, "run-1", LEASE_S, plan_id=plan.plan_id) as held:
            return advance(plan, held.ledger, held.cluster, POLICY, clock)

    return one


@contextmanager
def killed_at(cluster: SimulatedCluster, call: int) -> Iterator[None]:
    """The process dies at this call from now on."""
    cluster.crash_at = cluster.calls + call
    with pytest.raises(Crash):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("call", [1, 2], ids=["before the request", "after it"])
def test_a_run_that_comes_back_after_an_outage_goes_on(
    call: int,
    plan: Plan,
    simulated: SimulatedCluster,
    clock: SetClock,
    step: Callable[[], Advance],
) -> None:
    with killed_at(simulated, call):
        step()
    clock.pass_s(OUTAGE_S)
    for _ in range(10):
        done = step()
        simulated.step(1)
        clock.pass_s(5)
        if done.finished:
            break
    assert (done.finished, done.cause) == (PlanState.DONE, "every move is done")
    assert simulated.started == sorted(plan.by_partition), "each move once"


@pytest.mark.slow
def test_a_move_without_progress_stalls_once_it_was_polled_for_the_timeout_after_an_outage(
    simulated: SimulatedCluster,
    ledger: Ledger,
    clock: SetClock,
    step: Callable[[], Advance],
) -> None:
    step()
    clock.pass_s(OUTAGE_S)
    assert ledger.heartbeat("sim", "run-1", LEASE_S)
    for _ in range(int((STALL_S - LEASE_S) / LEASE_S) * 2 - 1):  # the lease had lasted for a while
        clock.pass_s(LEASE_S / 2)
        assert ledger.heartbeat("sim", "run-1", LEASE_S)
    assert step().finished is None
    clock.pass_s(LEASE_S / 2)
    assert step().finished is PlanState.FAILED
    assert not simulated.targets, "what was in flight is taken back"


def test_polls_that_are_a_little_late_delay_the_stall_by_as_little(
    simulated: SimulatedCluster,
    ledger: Ledger,
    clock: SetClock,
    step: Callable[[], Advance],
) -> None:
    step()
    for _ in range(int(STALL_S / LEASE_S)):
        clock.pass_s(LEASE_S + 1)
        assert ledger.heartbeat("sim", "run-1", LEASE_S)
    assert step().finished is PlanState.FAILED
    assert not simulated.targets, "what was in flight is taken back"


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_after_a_long_hold_gets_the_usual_time(
    plan: Plan,
    simulated: SimulatedCluster,
    ledger: Ledger,
    clock: SetClock,
    step: Callable[[], Advance],
) -> None:
    """Another client's reassignment, then an hour without Airflow, then a cluster that is away."""
    simulated.targets[THEIRS.partition] = THEIRS.target
    for _ in range(int(4 * STALL_S / LEASE_S)):
        assert step().holds == ["another client's reassignment runs"]
        clock.pass_s(LEASE_S / 2)
    clock.pass_s(OUTAGE_S)
    own = OwnCluster.of(cast(ClusterPort, simulated), "sim")
    with hold(ledger, own, "run-1", LEASE_S, plan_id=plan.plan_id):
        view = ledger.view(plan.plan_id)
    assert not overdue(view, clock(), STALL_S)
    clock.pass_s(STALL_S)
    assert overdue(view, clock(), STALL_S)
