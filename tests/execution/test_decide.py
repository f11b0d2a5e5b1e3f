"""What `decide` does, as data: no cluster, no clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from include.cluster.model import OngoingReassignment, PartitionState, ReplicaId, TopicPartition
from include.cluster.port import ClusterPort
from include.execution.abort import abort
from include.execution.advance import advance
from include.execution.decide import decide, needs_worker
from include.execution.model import (
    Admit,
    Cancel,
    Finish,
    Hold,
    LedgerView,
    MoveState,
    Observation,
    PlanState,
    Policy,
    SetRate,
    Settle,
)
from include.ledger.store import Ledger
from include.planning.plan import Move, Plan
from include.planning.request import OnWindowEnd
from tests.execution.simulated_cluster import Crash, SimulatedCluster
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
POLICY = Policy(1000, throttle_efficiency=1.0)
TP = [TopicPartition("t", number) for number in range(10)]


def seen(plan: Plan, *, live: tuple[int, ...] = (1, 2, 3, 4), **changes: Any) -> Observation:
    partitions = {
        m.partition: PartitionState(m.current[0], m.current, frozenset(m.current))
        for m in plan.moves
    }
    return replace(Observation(T0, partitions, {}, frozenset(live)), **changes)


def running(plan: Plan, **changes: Any) -> LedgerView:
    moves = {m.partition: MoveState.PENDING for m in plan.moves}
    return replace(LedgerView(PlanState.RUNNING, moves, last_progress_at=T0), **changes)


def flying(m: Move) -> OngoingReassignment:
    return OngoingReassignment((*m.target, *m.removing), m.adding, m.removing)


def in_flight(plan: Plan) -> tuple[LedgerView, Observation]:
    view = running(
        plan,
        moves={m.partition: MoveState.ADMITTED for m in plan.moves},
        sent={m.partition: T0 for m in plan.moves},
    )
    return view, seen(plan, ongoing={m.partition: flying(m) for m in plan.moves})


ONE = make_plan("p", move("t", 0, (1, 2), (3, 2), 5000))


def test_moves_start_as_long_as_their_brokers_have_slots() -> None:
    plan = make_plan("p", *(move("t", n, (1, 2), (3, 2)) for n in range(6)))
    (action,) = decide(plan, running(plan), seen(plan), T0, replace(POLICY, max_moves_per_broker=4))
    assert action == Admit(tuple(TP[:4]))


def test_the_leader_takes_a_slot_for_what_it_sends_and_the_destination_for_what_it_gets() -> None:
    plan = make_plan(
        "p",
        move("t", 0, (1, 2), (3, 2)),
        move("t", 1, (1, 2), (4, 2)),
        move("t", 2, (2, 1), (3, 1)),
    )
    policy = replace(POLICY, max_moves_per_broker=1)
    (action,) = decide(plan, running(plan), seen(plan), T0, policy)
    assert action == Admit((TP[0],))
    two = make_plan("p", move("t", 0, (1, 2), (3, 2)), move("t", 1, (2, 1), (4, 1)))
    (action,) = decide(two, running(two), seen(two), T0, policy)
    assert action == Admit((TP[0], TP[1]))


def test_the_broker_with_most_left_to_receive_goes_first() -> None:
    plan = make_plan(
        "p",
        move("t", 0, (1, 2), (3, 2), 500),
        move("t", 1, (1, 2), (4, 2), 300),
        move("t", 2, (1, 2), (4, 2), 400),
    )
    policy = replace(POLICY, max_partitions_in_flight=1)
    alone = seen(
        plan,
        partitions={m.partition: PartitionState(9, m.current, frozenset()) for m in plan.moves},
    )
    # Broker 9 leads all and sends 1200 in any case; among equals the largest goes first.
    assert decide(plan, running(plan), alone, T0, policy)[0] == Admit((TP[0],))
    apart = seen(
        plan,
        partitions={
            m.partition: PartitionState(5 + m.partition.partition, m.current, frozenset())
            for m in plan.moves
        },
    )
    assert decide(plan, running(plan), apart, T0, policy)[0] == Admit((TP[2],))


def test_never_more_partitions_than_allowed_are_at_the_controller() -> None:
    moves = [move("t", n, (1, 2), (2, 1)) for n in range(6)]  # leaders only: no slot is needed
    plan = make_plan("p", *moves)
    policy = replace(POLICY, max_partitions_in_flight=2)
    (action,) = decide(plan, running(plan), seen(plan), T0, policy)
    assert action == Admit((TP[0], TP[1]))


def test_nothing_is_sent_to_a_dead_broker() -> None:
    (action,) = decide(ONE, running(ONE), seen(ONE, live=(1, 2)), T0, POLICY)
    assert action == Hold("1 moves wait: broker 3 is not alive")


def test_a_move_is_done_only_when_nothing_is_in_flight_and_the_isr_covers_the_target() -> None:
    view, flight = in_flight(ONE)
    assert decide(ONE, view, flight, T0, POLICY) == []
    arrived = PartitionState(2, (3, 2), frozenset({2}))
    late = replace(flight, ongoing={}, partitions={TP[0]: arrived})
    assert decide(ONE, view, late, T0, POLICY) == []
    there = replace(late, partitions={TP[0]: replace(arrived, isr=frozenset({2, 3}))})
    assert decide(ONE, view, there, T0, POLICY) == [
        Settle(TP[0], MoveState.DONE),
        Finish(PlanState.DONE, "every move is done"),
    ]


def test_an_admitted_move_that_was_never_sent_is_sent_again() -> None:
    view = running(ONE, moves={TP[0]: MoveState.ADMITTED})
    assert decide(ONE, view, seen(ONE), T0, POLICY) == [Admit((TP[0],))]


def test_metadata_older_than_the_start_settles_nothing() -> None:
    view, _ = in_flight(ONE)
    soon, later = T0 + timedelta(seconds=9), T0 + timedelta(seconds=11)
    assert decide(ONE, view, seen(ONE), soon, POLICY) == []
    assert decide(ONE, view, seen(ONE), later, POLICY)[0] == Settle(
        TP[0], MoveState.CANCELLED, "somebody else cancelled it"
    )


def test_replicas_of_a_reassignment_that_ended_a_moment_ago_settle_nothing() -> None:
    view, _ = in_flight(ONE)
    stale = seen(ONE, partitions={TP[0]: PartitionState(1, (3, 2, 1), frozenset({1, 2}))})
    for known in (view, replace(view, sent={})):
        assert decide(ONE, known, stale, T0 + timedelta(minutes=1), POLICY) == []


def test_an_order_lost_by_somebody_elses_cancel_is_restored() -> None:
    view, _ = in_flight(ONE)
    back = seen(ONE, partitions={TP[0]: PartitionState(2, (2, 1), frozenset({1, 2}))})
    actions = decide(ONE, view, back, T0 + timedelta(minutes=1), POLICY)
    assert actions[0] == Cancel((TP[0],), "somebody else cancelled it")


def test_a_partition_somebody_else_reassigns_is_superseded_and_not_cancelled() -> None:
    view, flight = in_flight(ONE)
    foreign = OngoingReassignment((4, 2, 1), (4,), (1,))
    for known in (view, running(ONE)):
        actions = decide(ONE, known, replace(flight, ongoing={TP[0]: foreign}), T0, POLICY)
        assert actions[0] == Settle(
            TP[0], MoveState.SUPERSEDED, "somebody else is reassigning it to [4, 2]"
        )
        assert not any(isinstance(action, Cancel) for action in actions)


def test_a_partition_that_is_not_as_it_was_planned_from_is_superseded() -> None:
    drifted = seen(ONE, partitions={TP[0]: PartitionState(4, (4, 2), frozenset({4, 2}))})
    settled, finish = decide(ONE, running(ONE), drifted, T0, POLICY)
    assert settled == Settle(TP[0], MoveState.SUPERSEDED, "its replicas are [4, 2], not [1, 2]")
    assert finish == Finish(PlanState.FAILED, "not every move is done: 1 superseded")


def test_a_move_whose_topic_is_gone_has_failed() -> None:
    gone = seen(ONE, partitions={}, topics_missing=frozenset({"t"}))
    settled, _ = decide(ONE, in_flight(ONE)[0], gone, T0, POLICY)
    assert settled == Settle(TP[0], MoveState.FAILED, "topic does not exist any more")


def test_somebody_elses_reassignment_holds_admission_unless_additional() -> None:
    other = {TopicPartition("x", 0): OngoingReassignment((1, 2, 3), (3,), (1,))}
    there = seen(ONE, ongoing=other)
    assert decide(ONE, running(ONE), there, T0, POLICY) == [
        Hold("somebody else's reassignment runs")
    ]
    late = T0 + timedelta(days=1)
    assert decide(ONE, running(ONE), there, late, POLICY)[0] == Hold(
        "somebody else's reassignment runs"
    )
    assert decide(ONE, running(ONE), there, T0, replace(POLICY, additional=True)) == [
        Admit((TP[0],))
    ]


def test_a_cancel_request_cancels_what_is_ours_in_flight_and_ends_the_plan() -> None:
    view, flight = in_flight(ONE)
    assert decide(ONE, replace(view, cancel_requested=True), flight, T0, POLICY) == [
        Cancel((TP[0],), "cancel requested"),
        Finish(PlanState.CANCELLED, "cancel requested"),
    ]


def test_a_pause_waits_for_what_is_in_flight() -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2)), move("t", 1, (1, 2), (3, 2)))
    view, flight = in_flight(plan)
    view = replace(view, pause_requested=True, moves={**view.moves, TP[1]: MoveState.PENDING})
    flight = replace(flight, ongoing={TP[0]: flight.ongoing[TP[0]]})
    assert decide(plan, view, flight, T0, POLICY) == [Hold("pause requested")]
    idle = replace(view, moves={TP[0]: MoveState.DONE, TP[1]: MoveState.PENDING})
    assert decide(plan, idle, seen(plan), T0, POLICY) == [
        Finish(PlanState.PAUSED, "pause requested")
    ]


def test_what_cannot_end_before_the_window_does_is_not_started() -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2), 5000), move("t", 1, (2, 1), (4, 1), 3000))
    policy = replace(POLICY, window_end=T0 + timedelta(seconds=4))
    assert decide(plan, running(plan), seen(plan), T0, policy) == [Admit((TP[1],))]
    at_once = replace(policy, on_window_end=OnWindowEnd.CANCEL)
    assert decide(plan, running(plan), seen(plan), T0, at_once) == [Admit((TP[0], TP[1]))]


def test_a_plan_whose_rest_does_not_fit_the_window_pauses() -> None:
    policy = replace(POLICY, window_end=T0 + timedelta(seconds=4))
    assert decide(ONE, running(ONE), seen(ONE), T0, policy) == [
        Finish(PlanState.PAUSED, "what is left does not fit into the window")
    ]


@pytest.mark.parametrize("choice", list(OnWindowEnd))
def test_the_windows_end_takes_back_what_is_in_flight_for_the_next_window(
    choice: OnWindowEnd,
) -> None:
    view, flight = in_flight(ONE)
    policy = replace(POLICY, window_end=T0, on_window_end=choice)
    assert decide(ONE, view, flight, T0, policy) == [
        Cancel((TP[0],), "the window has ended", MoveState.PENDING),
        Finish(PlanState.PAUSED, "the window has ended"),
    ]


def test_a_stall_that_outlasts_its_timeout_cancels_and_fails() -> None:
    view, flight = in_flight(ONE)
    almost = T0 + timedelta(seconds=POLICY.stall_timeout_s - 1)
    assert decide(ONE, view, flight, almost, POLICY) == []
    late = T0 + timedelta(seconds=POLICY.stall_timeout_s)
    cause = "nothing has moved for 600 s"
    assert decide(ONE, view, flight, late, POLICY) == [
        Cancel((TP[0],), cause),
        Finish(PlanState.FAILED, cause),
    ]


def test_a_throttle_asked_for_in_mid_run_is_set() -> None:
    view, flight = in_flight(ONE)
    asked = replace(view, rate_bytes_per_s=1000, requested_rate_bytes_per_s=2000)
    assert decide(ONE, asked, flight, T0, POLICY) == [SetRate(2000, "requested")]
    assert decide(ONE, replace(asked, rate_bytes_per_s=2000), flight, T0, POLICY) == []


@pytest.mark.parametrize("state", [state for state in PlanState if state != PlanState.RUNNING])
def test_a_plan_that_does_not_run_is_left_alone(state: PlanState) -> None:
    assert decide(ONE, running(ONE, state=state), seen(ONE), T0, POLICY) == []


def test_the_worker_is_woken_only_when_there_is_something_to_do() -> None:
    view, flight = in_flight(ONE)
    assert not needs_worker(ONE, view, flight, POLICY)
    assert not needs_worker(ONE, running(ONE), seen(ONE, live=(1, 2)), POLICY)
    assert needs_worker(ONE, running(ONE), seen(ONE), POLICY)
    assert needs_worker(ONE, replace(view, cancel_requested=True), flight, POLICY)


# -- properties over random plans, crashes and dead brokers -----------------------------------

BROKERS = (1, 2, 3, 4, 5)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a disk's fsyncs take most of it


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


def check_slots(plan: Plan, cluster: SimulatedCluster, slots: int) -> None:
    used: Counter[tuple[str, int]] = Counter()
    for partition, target in cluster.targets.items():
        adding = [b for b in target if b not in cluster.replicas[partition]]
        if adding:
            leader = cluster._state(partition, cluster.replicas[partition]).leader
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
        with Ledger.open(url, clock=lambda now=now: now) as ledger:
            cluster.crash_at = cluster.calls + todo.pop() if todo else None
            try:
                done = advance(
                    plan, ledger, cast(ClusterPort, cluster), policy, lambda now=now: now
                )
            except Crash:
                continue
            finally:
                check_slots(plan, cluster, policy.max_moves_per_broker)
            if done.finished:
                return done.finished
        cluster.step(1)
    raise AssertionError("the plan does not end")


def record(plan: Plan, url: str) -> None:
    with Ledger.open(url) as ledger:
        ledger.create_plan(plan, {}, "", "", "")
        ledger.approve(plan.plan_id, plan.plan_hash, "")


PROPERTY = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@PROPERTY
@given(plans(), st.integers(1, 3), st.lists(st.integers(1, 4), max_size=4))
def test_whatever_crashes_every_plan_ends_where_it_should_within_its_slots(
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
                done = advance(
                    plan, ledger, cast(ClusterPort, cluster), policy, lambda now=now: now
                )
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
                advance(plan, ledger, cast(ClusterPort, cluster), policy, lambda now=now: now)
                cluster.step(1)
            abort(plan, ledger, cast(ClusterPort, cluster), "enough")
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
