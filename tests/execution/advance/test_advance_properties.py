"""`advance` with a real ledger over a cluster in memory: crashes, dead brokers, aborts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from rehome.domain.kafka import ReplicaId
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.ledger.store import Ledger
from tests.examples import examples
from tests.execution.simulated_cluster import Crash, SimulatedCluster
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
BROKERS = (1, 2, 3, 4, 5)


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a disk's fsyncs take most of it


PROPERTY = examples(20, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    moves = []
    for number in range(draw(st.integers(1, 5))):
        brokers = draw(st.permutations(BROKERS))
        factor = draw(st.integers(1, 3))
        target = draw(st.permutations(brokers))[:factor]
        size = draw(st.integers(0, 3))
        moves.append(move("t", number, tuple(brokers[:factor]), tuple(target), size))
    return make_plan("p", *moves, cluster_id="sim")


def stopped_at(now: datetime) -> Callable[[], datetime]:
    """A clock."""
    return lambda: now


def check_slots(plan: Plan, cluster: SimulatedCluster, slots: int) -> None:
    used: Counter[tuple[str, int]] = Counter()
    for partition, target in cluster.targets.items():
        adding = [b for b in target if b not in cluster.replicas[partition]]
        if adding:
            leader = cluster.state_of(partition, cluster.replicas[partition]).leader
            used["out", leader or 0] += 1
            used.update(("in", broker) for broker in adding)
    assert max(used.values(), default=0) <= slots


def drive(
    plan: Plan, cluster: SimulatedCluster, url: str, policy: Policy, crashes: list[int]
) -> PlanState:
    """Advance to the end; the process dies at these writes to the cluster and starts anew."""
    now = T0
    todo = sorted(crashes, reverse=True)
    for _ in range(400):
        now += timedelta(seconds=5)
        with Ledger.open(url, clock=stopped_at(now)) as ledger:
            cluster.crash_at = cluster.calls + todo.pop() if todo else None
            try:
                done = advance(plan, ledger, cast(OwnCluster, cluster), policy, stopped_at(now))
            except Crash:
                continue
            finally:
                check_slots(plan, cluster, policy.max_moves_per_broker)
            if done.finished:
                return done.finished
        cluster.step(1)
    raise AssertionError("the plan does not end")


@cache
def empty_ledgers() -> EmptyLedgers:
    with TemporaryDirectory() as directory:
        return EmptyLedgers(Path(directory))


def record(plan: Plan, url: str) -> None:
    empty_ledgers().put(Path(url.removeprefix("sqlite:///")))
    with Ledger.open(url) as ledger:
        ledger.create_plan(plan, {}, "", "", "")
        ledger.approve(plan.plan_id, plan.plan_hash, "")


@pytest.mark.slow
@PROPERTY
@given(plans(), st.integers(1, 3), st.lists(st.integers(1, 4), max_size=4))
def test_after_any_crash_every_plan_reaches_its_target_within_its_slots(
    plan: Plan, slots: int, crashes: list[int]
) -> None:
    policy = Policy(1000, max_moves_per_broker=slots, metadata_grace_s=0)
    with TemporaryDirectory(dir=MEMORY) as directory:
        url = f"sqlite:///{Path(directory)}/ledger.db"
        record(plan, url)
        cluster = SimulatedCluster(BROKERS, plan.moves)
        assert drive(plan, cluster, url, policy, crashes) is PlanState.DONE
        assert cluster.replicas == {m.partition: m.target for m in plan.moves}
        with Ledger.open(url) as ledger:
            assert set(ledger.view("p").moves.values()) <= {MoveState.DONE}
            starts = ledger.reassignments("p")
            assert {start.outcome for start in starts} <= {MoveState.DONE}
            assert len({start.partition for start in starts}) == len(starts)


@pytest.mark.slow
@PROPERTY
@given(plans(), st.sampled_from(BROKERS), st.integers(0, 6), st.integers(1, 6))
def test_a_broker_that_dies_leaves_every_started_move_with_a_recorded_end(
    plan: Plan, victim: int, dies_after: int, slots: int
) -> None:
    policy = Policy(1000, max_moves_per_broker=slots, metadata_grace_s=0, stall_timeout_s=60)
    with TemporaryDirectory(dir=MEMORY) as directory:
        url = f"sqlite:///{Path(directory)}/ledger.db"
        record(plan, url)
        cluster = SimulatedCluster(BROKERS, plan.moves)
        now = T0
        with Ledger.open(url, clock=lambda: now) as ledger:
            for poll in range(200):
                now += timedelta(seconds=5)
                if poll == dies_after:
                    cluster.kill(victim)
                started = len(cluster.started)
                done = advance(plan, ledger, cast(OwnCluster, cluster), policy, stopped_at(now))
                if poll >= dies_after:
                    assert all(
                        victim not in plan.by_partition[p].target for p in cluster.started[started:]
                    )
                if done.finished:
                    break
                cluster.step(1)
            assert done.finished in (PlanState.DONE, PlanState.FAILED)
            assert cluster.targets == {}
            assert all(start.outcome is not None for start in ledger.reassignments("p"))


@pytest.mark.slow
@PROPERTY
@given(plans(), st.integers(0, 3))
@example(make_plan("p", move("t", 0, (1, 2), (3, 2), 5), cluster_id="sim"), 1)
def test_an_abort_at_any_moment_brings_back_what_was_in_flight_in_its_old_order(
    plan: Plan, polls: int
) -> None:
    policy = Policy(1000, metadata_grace_s=0)
    with TemporaryDirectory(dir=MEMORY) as directory:
        url = f"sqlite:///{Path(directory)}/ledger.db"
        record(plan, url)
        cluster = SimulatedCluster(BROKERS, plan.moves)
        now = T0
        with Ledger.open(url, clock=lambda: now) as ledger:
            for _ in range(polls):
                now += timedelta(seconds=5)
                advance(plan, ledger, cast(OwnCluster, cluster), policy, stopped_at(now))
                cluster.step(1)
            abort(plan.plan_id, ledger, cast(OwnCluster, cluster), "enough")
            states = ledger.view("p").moves
        assert cluster.targets == {}
        for m in plan.moves:
            ends = {m.target} if states[m.partition] is MoveState.DONE else {m.current, m.target}
            assert cluster.replicas[m.partition] in ends
            if states[m.partition] is MoveState.CANCELLED:
                assert cluster.replicas[m.partition] == m.current


def test_slots_are_checked_by_the_property_tests_themselves() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 5), move("t", 1, (1,), (3,), 5))
    cluster = SimulatedCluster(BROKERS, plan.moves)
    cluster.alter_reassignments({m.partition: m.target for m in plan.moves})
    with pytest.raises(AssertionError):
        check_slots(plan, cluster, 1)
    assert cluster.copied.get(ReplicaId("t", 0, 3)) is None


def test_one_request_carries_all_admissions_of_a_step(
    ledger: Ledger, approved: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = approved(*[move("t", at, (1, 2), (3, 2), 9) for at in range(3)], cluster_id="sim")
    cluster = SimulatedCluster(BROKERS, plan.moves)
    alter, requests = cluster.alter_reassignments, []

    def counted(targets: Any, **options: Any) -> Any:
        requests.append(sorted(targets))
        return alter(targets, **options)

    monkeypatch.setattr(cluster, "alter_reassignments", counted)
    advance(plan, ledger, cast(OwnCluster, cluster), Policy(1000))
    assert requests == [sorted(plan.by_partition)]
