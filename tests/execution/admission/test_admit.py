"""Which moves start, as data: slots, priorities, disks, the window."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rehome.domain.disks import Disk
from rehome.domain.kafka import BrokerError, PartitionState, ReplicaId, TopicPartition
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import OnWindowEnd
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import Admit, Cancel, Decision, Finish, Hold
from rehome.execution.admission.backlog import Backlog
from rehome.execution.decide import decide
from tests.execution.observed import ONE, POLICY, T0, TP, flying, running, seen
from tests.ledger.small_plans import make_plan, move


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


def test_partitions_with_fewer_replicas_in_sync_go_before_larger_ones_and_busier_brokers() -> None:
    sizes = {0: (900, 2), 1: (100, 1), 2: (500, 2), 3: (200, 1), 4: (10, 0)}
    plan = make_plan(
        "p",
        *(
            replace(
                move("t", n, (1, 2, 9), (1, 2, 3 if in_sync else 4), size),
                reason=MoveReason.OFFLINE,
                in_sync=in_sync,
            )
            for n, (size, in_sync) in sizes.items()
        ),
    )
    order: list[TopicPartition] = []
    view = running(plan)
    backlog = Backlog()
    for _ in sizes:
        polled = seen(plan, live=(1, 2, 3, 4, 5))
        backlog.follow(plan.moves, view, polled)
        policy = replace(POLICY, max_partitions_in_flight=1)
        (action,) = (a for a in decide(plan, view, polled, T0, policy, backlog) if type(a) is Admit)
        order += action.partitions
        view = replace(view, moves={**view.moves, action.partitions[0]: MoveState.DONE})
    assert [partition.partition for partition in order] == [4, 3, 1, 0, 2]
    assert backlog.copy().by_danger.keys() == backlog.by_danger.keys()


def test_places_go_to_brokers_by_what_they_have_left_for_each() -> None:
    """Broker 3 receives nearly twice as much as broker 4, so it gets the first and two of three."""
    moves = [move("t", n, (1,), (3,), 200) for n in range(3)]
    moves += [move("t", n, (2,), (4,), 110) for n in range(3, 6)]
    plan = make_plan("p", *moves)
    for at_once, expected in ((2, (0, 3)), (3, (0, 3, 1)), (4, (0, 3, 1, 2)), (5, (0, 3, 1, 2, 4))):
        policy = replace(POLICY, max_partitions_in_flight=at_once)
        (action,) = decide(plan, running(plan), seen(plan), T0, policy)
        assert action == Admit(tuple(TP[n] for n in expected))


def test_another_order_of_replicas_needs_its_preferred_leader_alone_to_be_alive() -> None:
    plan = make_plan("p", move("t", 0, (1, 2, 9), (2, 9, 1)), move("t", 1, (1, 2, 9), (9, 2, 1)))
    (action,) = (a for a in decide(plan, running(plan), seen(plan), T0, POLICY) if type(a) is Admit)
    assert action == Admit((TP[0],))


@pytest.mark.parametrize(
    ("to_3", "to_4", "expected"),
    [
        ((1000, 1000, 1000), (1100, 500), 3),  # 3000 for two places of broker 3, 1600 for one of 4
        ((1000, 1000), (900,), 1),  # 2000, half of it in flight, and 900
    ],
)
def test_moves_in_flight_take_a_place_and_are_still_to_be_sent(
    to_3: tuple[int, ...], to_4: tuple[int, ...], expected: int
) -> None:
    """The first move to broker 3 is in flight, and one more may be."""
    moves = [move("t", n, (1,), (3,), size) for n, size in enumerate(to_3)]
    moves += [move("t", n, (2,), (4,), size) for n, size in enumerate(to_4, start=len(to_3))]
    plan = make_plan("p", *moves)
    view = running(plan)
    view = replace(view, moves={**view.moves, TP[0]: MoveState.ADMITTED}, sent={TP[0]: T0})
    sight = seen(plan, ongoing={TP[0]: flying(moves[0])})
    policy = replace(POLICY, max_partitions_in_flight=2)
    (action,) = decide(plan, view, sight, T0, policy)
    assert action == Admit((TP[expected],))


def test_never_more_partitions_than_allowed_are_at_the_controller() -> None:
    moves = [move("t", n, (1, 2), (2, 1)) for n in range(6)]  # leaders only: no slot is needed
    plan = make_plan("p", *moves)
    policy = replace(POLICY, max_partitions_in_flight=2)
    (action,) = decide(plan, running(plan), seen(plan), T0, policy)
    assert action == Admit((TP[0], TP[1]))


def test_nothing_is_sent_to_a_dead_broker() -> None:
    (action,) = decide(ONE, running(ONE), seen(ONE, live=(1, 2)), T0, POLICY)
    assert action == Hold("1 move waits: broker 3 is not alive")


def test_what_was_never_sent_goes_first_and_keeps_to_free_slots() -> None:
    """Two leaders sent when they were admitted; one of them died with the process."""
    plan = make_plan("p", *(move("t", n, (1, 2), (3 + n, 2)) for n in range(3)))
    unsent = {TP[0]: MoveState.PENDING, TP[1]: MoveState.ADMITTED, TP[2]: MoveState.ADMITTED}
    policy = replace(POLICY, max_moves_per_broker=1)
    there = seen(plan, live=(1, 2, 3, 4, 5))
    reason = "2 moves wait: no free slot"
    back = Cancel((TP[2],), f"it was not sent yet; {reason}", MoveState.PENDING)
    view = running(plan, moves=unsent)
    assert decide(plan, view, there, T0, policy) == [back, Admit((TP[1],))]
    sent = replace(there, ongoing={TP[1]: flying(plan.by_partition[TP[1]])})
    assert decide(plan, view, sent, T0, policy) == [back, Hold(reason)]


def test_moves_that_were_never_sent_start_by_size_in_whatever_order_they_were_admitted() -> None:
    plan = make_plan("p", *(move("t", n, (1, 2), (3, 2), 10 * n) for n in range(3)))
    policy = replace(POLICY, max_moves_per_broker=1, reaction_s=0)
    view, backlog = running(plan, moves={}), Backlog()
    for number in (0, 1, 2):
        view = replace(view, moves={**view.moves, TP[number]: MoveState.ADMITTED})
        backlog.follow(plan.moves, view, seen(plan))
    kept = decide(plan, view, seen(plan), T0, policy, backlog)
    assert kept == decide(plan, view, seen(plan), T0, policy)
    assert kept[-1] == Admit((TP[2],))


def test_what_was_never_sent_waits_for_brokers_disks_and_a_free_place_at_the_controller() -> None:
    unsent = running(ONE, moves={TP[0]: MoveState.ADMITTED})
    silent = {3: BrokerError(7, "REQUEST_TIMED_OUT", "")}
    for there, obstacle in (
        (seen(ONE, live=(1, 2)), "broker 3 is not alive"),
        (seen(ONE, missing=silent), "broker 3 cannot be read: REQUEST_TIMED_OUT (7)"),
        (
            seen(ONE, disks={3: (Disk("/d", 9000, 4000),)}),
            "broker 3 has too little free space on its disks",
        ),
    ):
        reason = f"1 move waits: {obstacle}"
        assert decide(ONE, unsent, there, T0, POLICY) == [
            Cancel((TP[0],), f"it was not sent yet; {reason}", MoveState.PENDING),
            Hold(reason),
        ]
    plan = make_plan("p", *(move("t", n, (1, 2), (2, 1)) for n in range(3)))
    admitted = running(plan, moves=dict.fromkeys(TP[:3], MoveState.ADMITTED))
    few = replace(POLICY, max_partitions_in_flight=2)
    assert decide(plan, admitted, seen(plan), T0, few)[-1] == Admit((TP[0], TP[1]))


def test_what_a_move_copies_between_log_dirs_takes_its_slot_though_the_rest_was_never_sent() -> (
    None
):
    plan = make_plan(
        "p",
        move("t", 0, (1, 2), (3, 2), 5000, ("/a", "/a"), ("any", "/c")),
        move("t", 1, (2, 1), (2, 1), 500, ("/a", "/a"), ("/c", "/a")),
    )
    copied, waits = ReplicaId("t", 0, 2), ReplicaId("t", 1, 2)
    there = seen(
        plan,
        live=(1, 2),
        log_dirs={copied: "/a", waits: "/a"},
        future_log_dirs={copied: "/c"},
        future_sizes={copied: 100},
    )
    states = {TP[0]: MoveState.ADMITTED, TP[1]: MoveState.PENDING}
    one = replace(POLICY, max_moves_per_broker=1)
    assert decide(plan, running(plan, moves=states), there, T0, one) == [
        Hold("1 move waits: no free slot")
    ]


def test_what_was_never_sent_and_cannot_end_in_the_window_is_left_to_the_next_one() -> None:
    unsent = running(ONE, moves={TP[0]: MoveState.ADMITTED})
    cause = "what is left does not fit into the window"
    narrow = replace(POLICY, window_end=T0 + timedelta(seconds=4))
    assert decide(ONE, unsent, seen(ONE), T0, narrow) == [
        Cancel((TP[0],), cause, MoveState.PENDING),
        Finish(PlanState.PAUSED, cause),
    ]


def test_a_move_that_cannot_end_before_the_window_does_is_not_started() -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2), 5000), move("t", 1, (2, 1), (4, 1), 3000))
    policy = replace(POLICY, window_end=T0 + timedelta(seconds=4))
    assert decide(plan, running(plan), seen(plan), T0, policy) == [Admit((TP[1],))]
    at_once = replace(policy, on_window_end=OnWindowEnd.CANCEL)
    assert decide(plan, running(plan), seen(plan), T0, at_once) == [Admit((TP[0], TP[1]))]


def test_moves_queued_before_a_move_have_to_end_within_the_window_too() -> None:
    plan = make_plan("p", *(move("t", n, (1, 2), (3, 2), 2500 - n) for n in range(3)))
    policy = replace(POLICY, window_end=T0 + timedelta(seconds=5))
    assert decide(plan, running(plan), seen(plan), T0, policy) == [Admit((TP[0], TP[1]))]
    states = {TP[0]: MoveState.ADMITTED, TP[1]: MoveState.PENDING, TP[2]: MoveState.PENDING}
    view = running(plan, moves=states, sent={TP[0]: T0})
    flight = seen(plan, ongoing={TP[0]: flying(plan.moves[0])})
    late = replace(policy, window_end=T0 + timedelta(seconds=4.9))
    assert decide(plan, view, flight, T0, late) == [
        Hold("2 moves wait: would not end before the window does")
    ]


def test_a_plan_whose_rest_does_not_fit_the_window_pauses() -> None:
    policy = replace(POLICY, window_end=T0 + timedelta(seconds=4))
    assert decide(ONE, running(ONE), seen(ONE), T0, policy) == [
        Finish(PlanState.PAUSED, "what is left does not fit into the window")
    ]


# -- copies that end before the next poll take only a part of a slot ---------------------------

AHEAD = replace(POLICY, max_moves_per_broker=2, reaction_s=10)  # 10,000 B until the next poll


def admitted_of(plan: Plan, policy: Policy, **observed: Any) -> tuple[TopicPartition, ...]:
    (action,) = decide(plan, running(plan), seen(plan, **observed), T0, policy)
    assert isinstance(action, Admit)
    return action.partitions


def same_way(*sizes: int) -> Plan:
    return make_plan("p", *(move("t", n, (1, 2), (3, 2), size) for n, size in enumerate(sizes)))


def test_tiny_moves_share_a_slot_up_to_the_bytes_that_end_before_the_next_poll() -> None:
    plan = same_way(*[1000] * 20)
    assert len(admitted_of(plan, AHEAD)) == 10
    assert len(admitted_of(plan, replace(AHEAD, reaction_s=0))) == 2
    assert len(admitted_of(same_way(*[5000] * 20), AHEAD)) == 2


def test_never_more_than_ten_moves_share_a_slot() -> None:
    assert len(admitted_of(same_way(*[0] * 30), AHEAD)) == 20
    assert len(admitted_of(same_way(*[0] * 30), replace(AHEAD, max_partitions_in_flight=7))) == 7


def test_the_next_move_starts_before_the_last_one_has_ended() -> None:
    plan = same_way(50_000, 50_000, 50_000)
    first_two = running(
        plan,
        moves={TP[0]: MoveState.ADMITTED, TP[1]: MoveState.ADMITTED, TP[2]: MoveState.PENDING},
        sent={TP[0]: T0, TP[1]: T0},
    )
    flying_two = {tp: flying(plan.by_partition[tp]) for tp in TP[:2]}

    def then(left_bytes: int) -> list[Decision]:
        copied = {ReplicaId(*TP[0], 3): 50_000 - left_bytes}
        return decide(plan, first_two, seen(plan, ongoing=flying_two, sizes=copied), T0, AHEAD)

    assert then(left_bytes=5000) == [Hold("1 move waits: no free slot")]
    assert then(left_bytes=4000) == [Admit((TP[2],))]


def test_what_is_left_is_counted_from_the_size_that_the_leader_has_now() -> None:
    plan = same_way(5000, 5000)
    one = replace(AHEAD, max_moves_per_broker=1, reaction_s=4)
    view = running(plan, moves={TP[0]: MoveState.ADMITTED, TP[1]: MoveState.PENDING})
    view = replace(view, sent={TP[0]: T0})
    copied = {ReplicaId(*TP[0], 3): 4900}
    grown = {**copied, ReplicaId(*TP[0], 1): 9000}
    ongoing = {TP[0]: flying(plan.moves[0])}
    assert decide(plan, view, seen(plan, ongoing=ongoing, sizes=copied), T0, one) == [
        Admit((TP[1],))
    ]
    assert decide(plan, view, seen(plan, ongoing=ongoing, sizes=grown), T0, one) == [
        Hold("1 move waits: no free slot")
    ]


# -- disks -------------------------------------------------------------------------------------


def disk(usable: int, path: str = "/d", total: int = 100_000) -> Disk:
    return Disk(path, total, usable)


def test_a_move_starts_only_if_the_disk_holds_it_along_with_copies_still_to_come() -> None:
    plan = same_way(600, 500, 300)
    assert admitted_of(plan, POLICY, disks={3: (disk(1000),)}) == (TP[0], TP[2])
    reserved = replace(POLICY, min_free_disk_fraction=0.005)
    assert admitted_of(plan, reserved, disks={3: (disk(1000),)}) == (TP[1],)
    assert len(admitted_of(plan, POLICY, disks={3: (disk(900, "/a"), disk(500, "/b"))})) == 3
    assert len(admitted_of(plan, POLICY, disks={3: (disk(600, "/a"), disk(600, "/b"))})) == 1


def test_bytes_still_to_be_copied_do_not_count_as_free_space() -> None:
    plan = same_way(600, 500)
    view = running(plan, moves={TP[0]: MoveState.ADMITTED, TP[1]: MoveState.PENDING})
    view = replace(view, sent={TP[0]: T0})

    def then(usable: int) -> list[Decision]:
        there = seen(
            plan,
            ongoing={TP[0]: flying(plan.moves[0])},
            sizes={ReplicaId(*TP[0], 3): 200},
            disks={3: (disk(usable),)},
        )
        return decide(plan, view, there, T0, POLICY)

    assert then(900) == [Admit((TP[1],))]
    assert then(899) == [Hold("1 move waits: broker 3 has too little free space on its disks")]


def test_a_log_dir_that_is_named_must_have_free_space() -> None:
    into_b = move("t", 0, (1, 2), (3, 2), 500, target_log_dirs=("/b", "any"))
    within = move("t", 1, (3, 2), (3, 2), 500, ("/a", "any"), ("/b", "any"))
    plan = make_plan("p", into_b, within)
    roomy = (disk(9000, "/a"), disk(1000, "/b"))
    assert len(admitted_of(plan, POLICY, disks={3: roomy})) == 2
    tight = (disk(9000, "/a"), disk(999, "/b"))
    assert len(admitted_of(plan, POLICY, disks={3: tight})) == 1
    full = (disk(9000, "/a"), disk(499, "/b"))
    actions = decide(plan, running(plan), seen(plan, disks={3: full}), T0, POLICY)
    assert actions == [Hold("2 moves wait: broker 3 has too little free space in /b")]


def test_a_broker_that_is_alive_and_does_not_answer_gets_no_new_copies() -> None:
    silent = {3: BrokerError(7, "REQUEST_TIMED_OUT")}
    actions = decide(ONE, running(ONE), seen(ONE, missing=silent), T0, POLICY)
    assert actions == [Hold("1 move waits: broker 3 cannot be read: REQUEST_TIMED_OUT (7)")]


def test_a_small_move_fills_the_space_that_a_large_one_has_to_wait_for() -> None:
    plan = same_way(*range(1000, 1100))
    one_by_one = replace(POLICY, max_moves_per_broker=1)
    assert admitted_of(plan, one_by_one, disks={3: (disk(1042),)}) == (TopicPartition("t", 42),)
