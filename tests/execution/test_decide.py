"""Actions that `decide` returns for given data: no cluster, no clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.domain.kafka import OngoingReassignment, PartitionState, ReplicaId, TopicPartition
from rehome.domain.request.request import OnWindowEnd
from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.actions import Admit, Cancel, Decision, Finish, Hold, PlaceReplicas, SetRate
from rehome.execution.decide import decide, is_stop, needs_worker, waits_for
from rehome.execution.stall import patience_s
from tests.execution.observed import ONE, POLICY, T0, TP, in_flight, running, seen
from tests.ledger.small_plans import make_plan, move


def test_a_move_is_done_when_nothing_is_in_flight_and_the_replicas_are_the_target() -> None:
    view, flight = in_flight(ONE)
    assert decide(ONE, view, flight, T0, POLICY) == []
    arrived = PartitionState(2, (3, 2), frozenset({2}))
    listed = replace(flight, partitions={TP[0]: arrived})
    assert decide(ONE, view, listed, T0, POLICY) == [], "brokers before KAFKA-19975 list it still"
    unsure = replace(listed, ongoing={}, unconfirmed=frozenset({TP[0]}))
    assert decide(ONE, view, unsure, T0, POLICY) == []
    there = replace(listed, ongoing={}, partitions={TP[0]: replace(arrived, isr=frozenset({2, 3}))})
    assert decide(ONE, view, there, T0, POLICY) == [
        Settle(TP[0], MoveState.DONE),
        Finish(PlanState.DONE, "every move is done"),
    ]
    late = replace(listed, ongoing={})
    (settled, finished) = decide(ONE, view, late, T0, POLICY)
    assert isinstance(settled, Settle)
    assert settled.state is MoveState.DONE
    assert "the replica on broker 3 is not in the ISR" in settled.detail
    assert finished == Finish(PlanState.DONE, "every move is done")


def test_an_admitted_move_that_was_never_sent_is_sent_again() -> None:
    view = running(ONE, moves={TP[0]: MoveState.ADMITTED})
    assert decide(ONE, view, seen(ONE), T0, POLICY) == [Admit((TP[0],))]


def test_metadata_older_than_the_start_settles_nothing() -> None:
    view, _ = in_flight(ONE)
    soon, later = T0 + timedelta(seconds=9), T0 + timedelta(seconds=11)
    assert decide(ONE, view, seen(ONE), soon, POLICY) == []
    assert decide(ONE, view, seen(ONE), later, POLICY)[0] == Settle(
        TP[0], MoveState.CANCELLED, "another client cancelled it"
    )


def test_replicas_of_a_reassignment_that_ended_a_moment_ago_settle_nothing() -> None:
    view, _ = in_flight(ONE)
    stale = seen(ONE, partitions={TP[0]: PartitionState(1, (3, 2, 1), frozenset({1, 2}))})
    for known in (view, replace(view, sent={})):
        assert decide(ONE, known, stale, T0 + timedelta(minutes=1), POLICY) == []


def test_an_order_lost_by_another_clients_cancel_is_restored() -> None:
    view, _ = in_flight(ONE)
    back = seen(ONE, partitions={TP[0]: PartitionState(2, (2, 1), frozenset({1, 2}))})
    actions = decide(ONE, view, back, T0 + timedelta(minutes=1), POLICY)
    assert actions[0] == Cancel((TP[0],), "another client cancelled it")


def test_a_partition_another_client_reassigns_is_superseded_and_not_cancelled() -> None:
    view, flight = in_flight(ONE)
    foreign = OngoingReassignment((4, 2, 1), (4,), (1,))
    for known in (view, running(ONE)):
        actions = decide(ONE, known, replace(flight, ongoing={TP[0]: foreign}), T0, POLICY)
        assert actions[0] == Settle(
            TP[0], MoveState.SUPERSEDED, "another client is reassigning it to [4, 2]"
        )
        assert not any(isinstance(action, Cancel) for action in actions)


def test_a_partition_that_is_not_as_it_was_planned_from_is_superseded() -> None:
    drifted = seen(ONE, partitions={TP[0]: PartitionState(4, (4, 2), frozenset({4, 2}))})
    settled, finish = decide(ONE, running(ONE), drifted, T0, POLICY)
    assert settled == Settle(TP[0], MoveState.SUPERSEDED, "its replicas are [4, 2], not [1, 2]")
    assert finish == Finish(PlanState.FAILED, "not every move is done: 1 superseded")


def test_a_move_whose_topic_is_gone_needs_no_moving_any_more() -> None:
    gone = seen(ONE, partitions={}, topics_missing=frozenset({"t"}))
    settled, finish = decide(ONE, in_flight(ONE)[0], gone, T0, POLICY)
    assert settled == Settle(TP[0], MoveState.GONE, "topic does not exist any more")
    cause = "nothing is left to move: 1 partition is gone, and the plan has no other"
    assert finish == Finish(PlanState.DONE, cause)


def test_a_plan_is_done_when_all_that_is_there_is_moved() -> None:
    view = replace(
        running(ONE), moves={}, settled={MoveState.DONE: MoveSums(3), MoveState.GONE: MoveSums(2)}
    )
    (finish,) = decide(ONE, view, seen(ONE), T0, POLICY)
    assert isinstance(finish, Finish)
    assert finish.state is PlanState.DONE
    assert "2 partitions are gone" in finish.cause
    failed = replace(view, settled={**view.settled, MoveState.FAILED: MoveSums(1)})
    (finish,) = decide(ONE, failed, seen(ONE), T0, POLICY)
    assert finish == Finish(PlanState.FAILED, "not every move is done: 1 failed")


def test_another_clients_reassignment_holds_admission_unless_additional() -> None:
    other = {TopicPartition("x", 0): OngoingReassignment((1, 2, 3), (3,), (1,))}
    there = seen(ONE, ongoing=other)
    assert decide(ONE, running(ONE), there, T0, POLICY) == [
        Hold("another client's reassignment runs")
    ]
    late = T0 + timedelta(days=1)
    assert decide(ONE, running(ONE), there, late, POLICY)[0] == Hold(
        "another client's reassignment runs"
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


def test_what_was_never_sent_is_taken_back_by_a_pause_and_held_by_another_client() -> None:
    unsent = running(ONE, moves={TP[0]: MoveState.ADMITTED})
    assert decide(ONE, replace(unsent, pause_requested=True), seen(ONE), T0, POLICY) == [
        Cancel((TP[0],), "pause requested", MoveState.PENDING),
        Finish(PlanState.PAUSED, "pause requested"),
    ]
    theirs = seen(ONE, ongoing={TopicPartition("x", 0): OngoingReassignment((1, 2, 3), (3,), (1,))})
    reason = "another client's reassignment runs"
    for now in (T0, T0 + timedelta(days=1)):
        assert decide(ONE, unsent, theirs, now, POLICY) == [
            Cancel((TP[0],), f"it was not sent yet; {reason}", MoveState.PENDING),
            Hold(reason),
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


def test_a_pause_that_the_quota_window_explains_is_no_stall() -> None:
    view, flight = in_flight(ONE)
    hasty = replace(POLICY, stall_timeout_s=1, stall_alert_s=1)
    throttled = replace(view, rate_bytes_per_s=100_000)  # a fetch of 1 MiB is 10.5 s of it
    soon, late = T0 + timedelta(seconds=21), T0 + timedelta(seconds=22)
    assert decide(ONE, throttled, flight, soon, hasty) == []
    assert 21 < patience_s(throttled, hasty.stall_alert_s, in_flight=True) < 22
    cause = "nothing has moved for 21 s"
    assert decide(ONE, throttled, flight, late, hasty)[-1] == Finish(PlanState.FAILED, cause)
    assert patience_s(throttled, hasty.stall_alert_s, in_flight=False) == 1


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


def test_moves_that_ended_while_no_process_polled_are_no_stall() -> None:
    """Airflow was away for hours: copies have ended, and others wait to be started."""
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2), 5000), move("t", 1, (1, 2), (3, 2), 5000))
    states = {TP[0]: MoveState.ADMITTED, TP[1]: MoveState.PENDING}
    view = running(plan, moves=states, sent={TP[0]: T0})
    arrived = {TP[0]: PartitionState(3, (3, 2), frozenset({3, 2}))}
    before = seen(plan)
    after = replace(before, partitions={**before.partitions, **arrived})
    assert decide(plan, view, after, T0 + timedelta(hours=5), POLICY) == [
        Settle(TP[0], MoveState.DONE),
        Admit((TP[1],)),
    ]


def test_time_in_which_another_client_held_up_every_move_is_no_stall() -> None:
    held_until = T0 + timedelta(days=1)
    dead, late = seen(ONE, live=(1, 2)), held_until + timedelta(seconds=POLICY.stall_timeout_s)
    view = running(ONE, held_at=held_until)
    for now in (held_until, late - timedelta(seconds=1)):
        assert decide(ONE, view, dead, now, POLICY) == [Hold("1 move waits: broker 3 is not alive")]
    cause = "nothing has moved for 600 s"
    assert decide(ONE, view, dead, late, POLICY) == [Finish(PlanState.FAILED, cause)]


def test_a_throttle_asked_for_in_mid_run_is_set() -> None:
    view, flight = in_flight(ONE)
    asked = replace(view, rate_bytes_per_s=1000, requested_rate_bytes_per_s=2000)
    assert decide(ONE, asked, flight, T0, POLICY) == [
        SetRate(2000, "requested", RateReason.REQUESTED, 2000, 2000)
    ]
    assert decide(ONE, replace(asked, rate_bytes_per_s=2000), flight, T0, POLICY) == []


@pytest.mark.parametrize("state", [state for state in PlanState if state != PlanState.RUNNING])
def test_a_plan_that_does_not_run_is_left_alone(state: PlanState) -> None:
    assert decide(ONE, running(ONE, state=state), seen(ONE), T0, POLICY) == []


def test_the_worker_is_woken_only_when_it_has_something_to_do() -> None:
    view, flight = in_flight(ONE)
    dead = seen(ONE, live=(1, 2))
    for known, there, needed, why in (
        (view, flight, False, ""),
        (running(ONE), dead, False, "1 move waits: broker 3 is not alive"),
        (running(ONE), seen(ONE), True, ""),
        (replace(view, cancel_requested=True), flight, True, ""),
    ):
        actions = decide(ONE, known, there, T0, POLICY)
        assert (needs_worker(actions), waits_for(actions)) == (needed, why)


def test_what_is_set_for_brokers_to_deliver_the_target_widens_no_window() -> None:
    """Reported 1300 they deliver 1000: 5000 bytes take five seconds."""
    reported = RateChange(T0, 1300, 1000, 1000, RateReason.RAISED, "they deliver too little")
    view = running(ONE, rate_bytes_per_s=1300, rates=(reported,))
    narrow = replace(POLICY, window_end=T0 + timedelta(seconds=4.5))
    (paused,) = decide(ONE, view, seen(ONE), T0, narrow)
    assert isinstance(paused, Finish)
    wide = replace(POLICY, window_end=T0 + timedelta(seconds=5))
    assert decide(ONE, view, seen(ONE), T0, wide) == [Admit((TP[0],))]


def test_log_dirs_that_are_asked_for_in_vain_again_and_again_are_a_stall() -> None:
    wants = move("t", 0, (1, 2), (3, 2), target_log_dirs=("/d2", "/d1"))
    plan = make_plan("p", wants)
    view, there = in_flight(plan)
    there = replace(
        there,
        ongoing={},
        partitions={TP[0]: PartitionState(2, (3, 2), frozenset({2, 3}))},
        log_dirs={ReplicaId("t", 0, 3): "/d1", ReplicaId("t", 0, 2): "/d1"},
    )
    soon, late = T0 + timedelta(seconds=30), T0 + timedelta(days=1)
    (placing,) = decide(plan, view, there, soon, POLICY)
    assert isinstance(placing, PlaceReplicas)
    *_, finish = decide(plan, view, there, late, POLICY)
    assert isinstance(finish, Finish)
    assert finish.state is PlanState.FAILED


def test_a_reassignment_of_others_that_cannot_end_is_named_with_why() -> None:
    other = {TopicPartition("x", 0): OngoingReassignment((1, 2, 9), (9,), (1,))}
    (hold,) = decide(ONE, running(ONE), seen(ONE, ongoing=other), T0, POLICY)
    assert isinstance(hold, Hold)
    assert hold.hangs
    assert hold.cause.endswith("x-0: it adds a replica on broker 9, which is not alive")


def test_a_reassignment_of_others_that_was_sent_back_in_mid_copy_cannot_end() -> None:
    other = {TopicPartition("x", 0): OngoingReassignment((1, 2), (2,), (2,))}
    (hold,) = decide(ONE, running(ONE), seen(ONE, ongoing=other), T0, POLICY)
    assert isinstance(hold, Hold)
    assert hold.hangs
    assert hold.cause.endswith("it was sent back in mid-copy, and so adds and removes broker 2")


@pytest.mark.parametrize(
    ("actions", "stop"),
    [
        ([], False),
        ([Admit((TP[0],))], False),
        ([Hold("slots")], False),
        (
            [
                Cancel((TP[0],), "it was not sent yet", MoveState.PENDING),
                Admit((TopicPartition("t", 1),)),
            ],
            False,
        ),
        ([Finish(PlanState.DONE, "every move is done")], False),
        ([Cancel((TP[0],), "the window has ended"), Finish(PlanState.PAUSED, "it has")], True),
        ([Finish(PlanState.CANCELLED, "cancel requested")], True),
        ([Finish(PlanState.FAILED, "nothing has moved for 600 s")], True),
    ],
)
def test_a_stop_is_what_ends_a_plan_early(actions: list[Decision], stop: bool) -> None:
    assert is_stop(actions) is stop
