"""What a ledger that was restored from a backup does not know is read from the cluster."""

from __future__ import annotations

from rehome.domain.configs import ConfigResource
from rehome.domain.plan.move import Move
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.clear import clear_throttle, sweep
from rehome.execution.throttle.foreign import foreign_throttles, mark_lines
from rehome.execution.throttle.keys import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, LISTS
from rehome.execution.throttle.ownership.lost import NOT_TOLD_APART, RELIED_ON
from rehome.execution.throttle.plan_throttle import Setting
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.ledger.base.records import ThrottleState
from rehome.ledger.store import Ledger
from tests.execution.throttle.ownership.box import DEFAULT, Box
from tests.ledger.small_plans import make_plan, move

TOPIC = ConfigResource.topic("t")
MOVE = move("t", 0, (1, 2), (3, 2))
LATER = move("t", 1, (1, 2), (4, 2))
PLAN = "one"


def restored(box: Box, *, before_it: bool = False) -> Ledger:
    """From before the plan's throttle was set up; or from before there was a plan."""
    ledger = box.ledger("a")
    if before_it:
        box.back_up("a")
    plan = box.approved("a", PLAN, MOVE)
    if not before_it:
        box.back_up("a")
    set_up_throttle(plan, ledger, box.own, 5_000_000)
    box.sleep(1)
    return box.restore("a")


def by_files(plan_id: str, digest: str) -> list[Move] | None:
    plan = make_plan(PLAN, MOVE, cluster_id="model")
    return [MOVE] if plan_id == PLAN and plan.plan_hash.startswith(digest) else None


def on_lists(box: Box) -> list[str | None]:
    return [box.holds(TOPIC, key) for key in LISTS]


def test_all_of_a_plan_is_found_by_its_marks_and_taken_back(box: Box) -> None:
    box.set(TOPIC, LEADER_REPLICAS, "0:4")
    box.set(DEFAULT, LEADER_RATE, "90000000")
    ledger = restored(box)
    assert ledger.throttles(PLAN) == []
    assert on_lists(box) == ["0:4,0:1,0:2", "0:3"]
    ledger.transition(PLAN, PlanState.CANCELLED, "enough")
    done = clear_throttle(PLAN, ledger, box.own)
    assert (len(done.cleared), done.owed) == (4, ())
    assert on_lists(box) == ["0:4", None]
    assert box.holds(DEFAULT, LEADER_RATE) == "90000000"
    assert box.marks == set()


def test_what_the_ledger_knows_of_a_list_is_completed(box: Box) -> None:
    """The backup was made between two waves of a plan."""
    plan, ledger = box.approved("a", PLAN, MOVE, LATER), box.ledger("a")
    box.set(TOPIC, LEADER_REPLICAS, "1:3")
    for wave in (MOVE, LATER):
        box.back_up("a")
        Setting(plan, ledger, box.own).lists([wave], trim=True)
        box.sleep(1)
    assert on_lists(box) == ["1:3,0:1,0:2,1:1,1:2", "0:3,1:4"]
    ledger = box.restore("a")
    assert {entry.ours for entry in ledger.throttles()} == {("0:1", "0:2"), ("0:3",)}
    ledger.transition(PLAN, PlanState.CANCELLED, "enough")
    done = clear_throttle(PLAN, ledger, box.own)
    assert (len(done.cleared), done.owed) == (2, ())
    assert on_lists(box) == ["1:3", None]
    assert box.marks == set()


def test_lists_that_were_left_empty_in_the_middle_are_taken_away(box: Box) -> None:
    """It died when it had taken its items back, and lost its ledger."""
    ledger = restored(box)
    for key in LISTS:
        box.set(TOPIC, key, "")
    assert on_lists(box) == ["", ""]
    ledger.transition(PLAN, PlanState.CANCELLED, "enough")
    assert clear_throttle(PLAN, ledger, box.own).owed == ()
    assert on_lists(box) == [None, None]
    assert box.marks == set()


def test_a_new_ledger_names_lists_that_were_left_empty(box: Box) -> None:
    plan, ledger = box.approved("a", PLAN, MOVE), box.ledger("a")
    set_up_throttle(plan, ledger, box.own, 5_000_000)
    for key in LISTS:
        box.set(TOPIC, key, "")
    assert set(LISTS) & {each.key for each in foreign_throttles(ledger, box.own).throttles} == set()
    new = box.ledger("new")
    found = foreign_throttles(new, box.own)
    told = [str(each) for each in found.throttles]
    assert {f"topic t {key}=(empty)" for key in LISTS} <= set(told)
    for mark in found.lists:
        box.set(DEFAULT, mark.name, None)
    told = [str(each) for each in foreign_throttles(new, box.own).throttles]
    assert not [text for text in told if "(empty)" in text], "an admin may have left them so"


def test_a_plan_that_the_ledger_does_not_know_is_found_by_its_files(box: Box) -> None:
    ledger = restored(box, before_it=True)
    assert sweep(ledger, box.own).cleared != ()
    assert box.holds(DEFAULT, LEADER_RATE) is None
    assert on_lists(box) == ["0:1,0:2", "0:3"], "nothing says whose they are"
    assert [mark.plan_id for mark in foreign_throttles(ledger, box.own).lists] == [PLAN]
    sweep(ledger, box.own, moves_of=by_files)
    assert on_lists(box) == [None, None]
    box.sleep(1)
    assert foreign_throttles(ledger, box.own).lists == ()


def test_what_a_lost_plan_needs_is_named_for_as_long_as_something_is_being_reassigned(
    box: Box,
) -> None:
    ledger = restored(box, before_it=True)
    box.model.actions.fill(MOVE.partition, 90_000_000)
    box.model.actions.reassign(MOVE.partition, (3, 2))
    box.sleep(1)
    assert sweep(ledger, box.own, moves_of=by_files).cleared == ()
    found = foreign_throttles(ledger, box.own)
    assert {need.plan_id for need in found.needs} == {PLAN}
    rate = [line for line in mark_lines(found) if f"{LEADER_RATE}=5000000" in line]
    assert [line.partition(",")[0] for line in rate] == [
        f"Plan {PLAN} of this installation has marked that it needs the brokers' default "
        f"{LEADER_RATE}=5000000"
    ]


def test_items_that_others_had_put_there_before_are_left_to_a_person(box: Box) -> None:
    box.set(TOPIC, LEADER_REPLICAS, "0:1")
    ledger = restored(box)
    ledger.transition(PLAN, PlanState.CANCELLED, "enough")
    done = clear_throttle(PLAN, ledger, box.own)
    assert {entry.detail for entry in done.owed} == {NOT_TOLD_APART}
    assert on_lists(box) == ["0:1,0:2", "0:3"]
    assert [entry.key for entry in sweep(ledger, box.own).owed] == [*LISTS]
    box.set(TOPIC, LEADER_REPLICAS, None)
    assert [entry.key for entry in sweep(ledger, box.own).owed] == [FOLLOWER_REPLICAS]
    box.set(TOPIC, FOLLOWER_REPLICAS, None)
    assert sweep(ledger, box.own).owed == ()
    assert ledger.throttles(open_only=True) == []
    assert box.marks == set()


def test_of_a_plan_that_the_ledger_does_not_know_such_items_stay(box: Box) -> None:
    box.set(TOPIC, LEADER_REPLICAS, "0:1")
    ledger = restored(box, before_it=True)
    sweep(ledger, box.own, moves_of=by_files)
    assert on_lists(box) == ["0:1,0:2", "0:3"]
    assert [mark.plan_id for mark in foreign_throttles(ledger, box.own).lists] == [PLAN]


def test_nothing_is_taken_back_while_anything_is_being_reassigned(box: Box) -> None:
    ledger = restored(box)
    box.model.actions.fill(MOVE.partition, 90_000_000)
    box.model.actions.reassign(MOVE.partition, (3, 2))
    box.sleep(1)
    ledger.transition(PLAN, PlanState.CANCELLED, "enough")
    clear_throttle(PLAN, ledger, box.own)
    assert on_lists(box) == ["0:1,0:2", "0:3"]
    left = ledger.throttles(open_only=True)
    assert {(e.state, e.detail) for e in left} == {(ThrottleState.OWED, RELIED_ON)}
    assert box.holds(DEFAULT, LEADER_RATE) == "5000000"


def test_a_ledger_that_has_lost_nothing_looks_for_nothing(box: Box) -> None:
    """Others may name in mid-run what a later wave of the plan would need."""
    plan, ledger = box.approved("a", PLAN, MOVE, LATER), box.ledger("a")
    Setting(plan, ledger, box.own).lists([MOVE], trim=True)
    box.set(TOPIC, LEADER_REPLICAS, "0:1,0:2,1:1")
    ledger.transition(PLAN, PlanState.CANCELLED, "enough")
    clear_throttle(PLAN, ledger, box.own)
    box.sleep(1)
    assert on_lists(box) == ["1:1", None]
    assert box.marks == set()


def test_a_new_ledger_is_told_how_to_settle_what_the_one_before_has_left(box: Box) -> None:
    box.set(DEFAULT, LEADER_RATE, "90000000")
    plan, ledger = box.approved("a", PLAN, MOVE), box.ledger("a")
    set_up_throttle(plan, ledger, box.own, 5_000_000)
    box.sleep(1)
    new = box.ledger("new")
    assert sweep(new, box.own, moves_of=by_files).cleared == ()
    lines = [
        line for line in mark_lines(foreign_throttles(new, box.own)) if ledger.ledger_id in line
    ]
    assert len(lines) == 3
    told = next(line for line in lines if LEADER_RATE in line)
    assert f"needs the brokers' default {LEADER_RATE}=5000000" in told
    assert "the value that others want there (90000000)" in told
    for line in lines:
        box.set(DEFAULT, line.rpartition(" ")[2], None)
    sweep(new, box.own)
    assert box.marks == set()
