"""Moves, reassignments, throttles and samples in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import HighWatermark, PartitionState, ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.ledger_view import DataSeen
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.ledger.base.records import ThrottleEntry, ThrottleState
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)


def seen(plan: Plan) -> Observation:
    partitions = {
        move.partition: PartitionState(move.current[0], move.current, frozenset(move.current))
        for move in plan.moves
    }
    return Observation(T0, partitions, {}, frozenset({1, 2, 3}))


@pytest.fixture
def plan(ledger: Ledger) -> Plan:
    plan = make_plan("p1")
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.claim("p1")
    return plan


def test_views_of_open_moves_in_a_row_show_what_the_whole_one_does(ledger: Ledger) -> None:
    moves = [move("t", number, (1, 2), (3, 2), 100 + number) for number in range(6)]
    plan = make_plan("p1", *moves)
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.claim("p1")
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: ledger.admit("p1", moves[:4], seen(plan), 1000),
        lambda: ledger.settle("p1", moves[0].partition, MoveState.DONE),
        lambda: None,
        lambda: ledger.settle("p1", moves[1].partition, MoveState.FAILED, "refused"),
        lambda: ledger.settle("p1", moves[2].partition, MoveState.PENDING, "taken back"),
        lambda: ledger.admit("p1", moves[2:3], seen(plan), 1000),
        lambda: [ledger.settle("p1", each.partition, MoveState.DONE) for each in moves[2:]],
    ]
    view = None
    listed = []
    for change in changes:
        change()
        view, whole = ledger.view_of_open("p1", view), ledger.view("p1").moves
        listed.append(len(view.moves))
        assert view.moves.items() <= whole.items()
        assert {p: s for p, s in whole.items() if not s.ended}.items() <= view.moves.items()
        ended = [each for each in moves if whole[each.partition].ended]
        left_out = [each for each in ended if each.partition not in view.moves]
        found = Counter({state: sums.moves for state, sums in view.settled.items()})
        assert +found == Counter(whole[each.partition] for each in left_out)
        bytes_in_sums = sum(sums.bytes_to_copy for sums in view.settled.values())
        assert bytes_in_sums == sum(each.bytes_to_copy for each in left_out)
        first = ledger.view_of_open("p1")
        assert set(first.moves) == {each.partition for each in moves} - {m.partition for m in ended}
    assert listed == [6, 6, 6, 5, 5, 4, 4, 4], "what has ended is listed once more"


def test_an_admission_is_journalled_with_an_identity_before_it_is_sent(
    ledger: Ledger, plan: Plan
) -> None:
    ledger.admit("p1", plan.moves[:1], seen(plan), 1000)
    (start,) = ledger.reassignments("p1")
    assert (start.partition, start.first_leader, start.rate_bytes_per_s) == (TP0, 1, 1000)
    assert (start.replicas_before, start.replicas_target) == ((1, 2), (3, 2))
    assert (start.sent_at, start.ended_at, start.outcome) == (None, None, None)
    assert start.topic_id is None, "the plan knows none"
    view = ledger.view("p1")
    assert view.moves == {TP0: MoveState.ADMITTED, TP1: MoveState.PENDING}
    assert view.sent == {}
    ledger.mark_sent("p1", [TP0])
    assert list(ledger.view("p1").sent) == [TP0]


def test_admitting_again_starts_nothing_new(ledger: Ledger, plan: Plan) -> None:
    for _ in range(2):
        ledger.admit("p1", plan.moves, seen(plan), 1000)
    assert len(ledger.reassignments("p1")) == 2


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda ledger: ledger.transition("p1", PlanState.FAILED, "its run was marked failed"),
        lambda ledger: ledger.transition("p1", PlanState.PAUSED, "window"),
        lambda ledger: ledger.request_cancel("p1", "ann"),
    ],
    ids=["failed", "paused", "cancel requested"],
)
def test_nothing_is_admitted_to_a_plan_that_was_stopped_since_the_caller_looked(
    ledger: Ledger, plan: Plan, meanwhile: Callable[[Ledger], object]
) -> None:
    meanwhile(ledger)
    assert not ledger.admit("p1", plan.moves, seen(plan), 1000)
    assert ledger.reassignments("p1") == []
    assert set(ledger.view("p1").moves.values()) == {MoveState.PENDING}


def test_a_settled_move_never_changes_again(ledger: Ledger, plan: Plan) -> None:
    ledger.admit("p1", plan.moves, seen(plan), 1000)
    assert ledger.settle("p1", TP0, MoveState.DONE)
    assert not ledger.settle("p1", TP0, MoveState.FAILED, "late")
    assert ledger.moves("p1")[TP0].state is MoveState.DONE
    (start,) = [item for item in ledger.reassignments("p1") if item.partition == TP0]
    assert start.outcome is MoveState.DONE
    assert start.ended_at is not None


def test_what_moves_became_is_recorded_together_as_one_by_one(ledger: Ledger) -> None:
    moves = [move("t", number, (1, 2), (3, 2)) for number in range(450)]
    plan = make_plan("p1", *moves)
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.claim("p1")
    done, lost, ended, back, refused, *others = (each.partition for each in moves)
    ledger.admit("p1", [each for each in moves if each.partition != refused], seen(plan), 1000)
    ledger.settle("p1", ended, MoveState.FAILED, "before")
    ledger.record_data_seen("p1", {lost: DataSeen(HighWatermark(5, 1), range(5, 9))})
    settlements = [
        *(Settle(each, MoveState.DONE) for each in (done, lost, ended, *others)),
        Settle(back, MoveState.PENDING, "taken back"),
        Settle(refused, MoveState.FAILED, "no right"),
        Settle(refused, MoveState.FAILED, "again"),
    ]
    recorded = [done, lost, *others, back, refused]
    assert ledger.settle_all("p1", settlements) == recorded
    states = {partition: each.state for partition, each in ledger.moves("p1").items()}
    assert states == {
        **dict.fromkeys((done, *others), MoveState.DONE),
        **dict.fromkeys((lost, ended, refused), MoveState.FAILED),
        back: MoveState.PENDING,
    }
    assert ledger.moves("p1")[refused].detail == "no right"
    outcomes = {each.partition: each.outcome for each in ledger.reassignments("p1")}
    assert (outcomes[done], outcomes[lost]) == (MoveState.DONE, MoveState.FAILED)
    assert (outcomes[ended], outcomes[back]) == (MoveState.FAILED, MoveState.CANCELLED)
    assert ledger.settle_all("p1", settlements) == [], "all of it had been recorded"


def test_when_the_last_move_was_done_is_known(ledger: Ledger, plan: Plan) -> None:
    assert ledger.last_done_at("p1") is None
    ledger.admit("p1", plan.moves, seen(plan), 1000)
    ledger.settle("p1", TP0, MoveState.DONE)
    assert ledger.last_done_at("p1") == ledger.moves("p1")[TP0].changed_at


def test_a_move_taken_back_and_admitted_again_has_a_second_identity(
    ledger: Ledger, plan: Plan
) -> None:
    ledger.admit("p1", plan.moves[:1], seen(plan), 1000)
    ledger.mark_sent("p1", [TP0])
    ledger.settle("p1", TP0, MoveState.PENDING, "window")
    assert ledger.view("p1").sent == {}
    ledger.admit("p1", plan.moves[:1], seen(plan), 1000)
    again = replace(plan.moves[1], topic_id="its-own-id")
    ledger.admit("p1", [again], seen(plan), 1000)
    first, second, third = ledger.reassignments("p1")
    assert third.topic_id == "its-own-id"
    assert first.reassignment_id != second.reassignment_id
    assert (first.outcome, second.outcome) == (MoveState.CANCELLED, None)


def entry(**changes: Any) -> ThrottleEntry:
    base = ThrottleEntry(
        "p1", "c1", ConfigResource.topic("t"), "k", ("0:1",), "5:5", "DYNAMIC_TOPIC_CONFIG"
    )
    return replace(base, **changes)


def test_journalling_again_keeps_what_stood_there_first(ledger: Ledger, plan: Plan) -> None:
    ledger.journal_throttles([entry()])
    ledger.journal_throttles([entry(ours=("0:1", "0:2"), prior_value="5:5,0:1")])
    (known,) = ledger.throttles("p1")
    assert (known.ours, known.prior_value) == (("0:1", "0:2"), "5:5")


def test_what_its_owner_wants_from_now_on_replaces_the_value_from_before(
    ledger: Ledger, plan: Plan
) -> None:
    ledger.journal_throttles([entry()])
    ledger.journal_throttles([entry(ours=("0:2",), prior_value=None)], revises=True)
    (known,) = ledger.throttles("p1")
    assert (known.ours, known.prior_value) == (("0:1", "0:2"), None)


def test_the_topics_of_a_plan_are_known_by_their_ids(ledger: Ledger) -> None:
    known, unknown = move("t", 0, (1,), (2,)), move("u", 0, (1,), (2,))
    moves = (replace(known, topic_id="id-of-t"), unknown)
    ledger.create_plan(make_plan("p2", *moves), {}, "file:///nowhere", "run-1", "alice")
    assert ledger.planned_topic_ids(["p2"]) == {("p2", "t"): "id-of-t"}
    assert ledger.planned_topic_ids([]) == {}


def test_a_cleared_throttle_can_be_set_up_anew_with_the_value_that_is_there_now(
    ledger: Ledger, plan: Plan
) -> None:
    ledger.journal_throttles([entry()])
    ledger.mark_throttles([entry(state=ThrottleState.CLEARED)])
    assert ledger.throttles("p1", open_only=True) == []
    ledger.journal_throttles([entry(ours=("0:9",), prior_value=None)])
    (known,) = ledger.throttles(cluster_id="c1", open_only=True)
    assert (known.ours, known.prior_value) == (("0:9",), None)
    assert known.state is ThrottleState.JOURNALLED


def test_a_debt_is_visible_in_the_diary_once(ledger: Ledger, plan: Plan) -> None:
    ledger.journal_throttles([entry()])
    for _ in range(2):
        ledger.mark_throttles([entry(state=ThrottleState.OWED, detail="broker 3 is dead")])
    (event,) = [event for event in ledger.events("p1") if event.kind == EventKind.THROTTLE_OWED]
    assert "broker 3 is dead" in event.detail


def sample(second: int, bytes_done: int, behind: int) -> ProgressSample:
    return ProgressSample(T0 + timedelta(seconds=second), bytes_done, 100, 0, 2, 1, behind)


def test_more_messages_behind_is_no_progress_but_fewer_is(ledger: Ledger, plan: Plan) -> None:
    started = ledger.view("p1").last_progress_at
    ledger.add_samples("p1", [], sample(0, 10, 50))
    ledger.add_samples("p1", [], sample(1, 10, 60))
    assert ledger.view("p1").last_progress_at == started
    ledger.add_samples("p1", [], sample(2, 10, 55))
    assert ledger.view("p1").last_progress_at == T0 + timedelta(seconds=2)
    ledger.add_samples("p1", [], sample(3, 11, 55))
    assert ledger.view("p1").last_progress_at == T0 + timedelta(seconds=3)
    assert [item.bytes_done for item in ledger.samples("p1", newest=2)] == [10, 11]


def test_a_move_that_is_taken_back_is_no_progress_nor_is_a_hold(ledger: Ledger, plan: Plan) -> None:
    ledger.admit("p1", plan.moves[:1], seen(plan), 1000)
    before = ledger.view("p1")
    ledger.settle("p1", plan.moves[0].partition, MoveState.PENDING, "it has to wait")
    ledger.record_hold("p1", T0)
    after = ledger.view("p1")
    assert after.last_progress_at == before.last_progress_at
    assert (before.held_at, after.held_at) == (None, T0)


def test_a_sample_that_comes_late_is_dropped(ledger: Ledger, plan: Plan) -> None:
    ledger.add_samples("p1", [], sample(5, 50, 0))
    ledger.add_samples("p1", [], sample(4, 40, 0))
    assert [item.bytes_done for item in ledger.samples("p1")] == [50]


def test_the_newest_status_of_a_replica_is_kept(ledger: Ledger, plan: Plan) -> None:
    replica = ReplicaId("t", 0, 3)
    status = ReplicaStatus(replica, ReplicaState.BEHIND, T0, None, 9, 9, 900, 100)
    ledger.add_samples("p1", [status], sample(0, 0, 9))
    newer = replace(
        status, status_at=T0 + timedelta(seconds=1), messages_behind=3, last_in_isr_at=T0
    )
    ledger.add_samples("p1", [newer], sample(1, 0, 3))
    assert ledger.latest("p1") == {replica: newer}


def test_only_a_move_that_ended_badly_is_settled_as_needless(ledger: Ledger, plan: Plan) -> None:
    ledger.admit("p1", plan.moves, seen(plan), 1000)
    first, second = (each.partition for each in plan.moves[:2])
    gone = [Settle(first, MoveState.GONE, "gone"), Settle(second, MoveState.GONE, "gone")]
    ledger.settle("p1", first, MoveState.CANCELLED, "by others")
    assert ledger.settle_needless("p1", gone) == [first]
    assert ledger.settle_needless("p1", gone) == []
    states = ledger.view("p1").moves
    assert (states[first], states[second]) == (MoveState.GONE, MoveState.ADMITTED)
    assert ledger.events("p1")[-1].kind is EventKind.of_move(MoveState.GONE)
    ledger.settle("p1", second, MoveState.DONE)
    assert ledger.settle_needless("p1", gone) == []
