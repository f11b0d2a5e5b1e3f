"""Lists of plans, moves and events as people page through them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from rehome.domain.kafka import PartitionState, ReplicaId
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample, ReplicaState, ReplicaStatus
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.paging import MoveFilter, MoveOrder, PlanFilter
from rehome.ledger.store import Ledger
from rehome.ledger.stores.approvals.written_files import DryRun
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
MOVES = [
    move("orders", 0, (1, 2), (3, 2), 500),
    move("orders", 1, (2, 1), (2, 13), 400),
    move("orders", 2, (2, 1), (2, 3), 300),
    move("pay_ments", 0, (1, 2), (3, 2), 200),
    move("payXments", 0, (1, 2), (3, 2), 100),
]


@pytest.fixture
def plan(ledger: Ledger) -> Plan:
    """Its first two moves are in flight, its third is done, its last has failed."""
    plan = make_plan("p1", *MOVES)
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann", dag_id="reassign_partitions")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.claim("p1")
    partitions = {
        item.partition: PartitionState(item.current[0], item.current, frozenset(item.current))
        for item in MOVES
    }
    seen = Observation(T0, partitions, {}, frozenset({1, 2, 3, 13}))
    ledger.admit("p1", [MOVES[0], MOVES[1], MOVES[2], MOVES[4]], seen, 1000)
    ledger.settle("p1", MOVES[2].partition, MoveState.DONE)
    ledger.settle("p1", MOVES[4].partition, MoveState.FAILED, "the controller refused it (39)")
    behind = {0: 100, 1: 350, 2: 999}  # partition 2 is done: what it lacked then counts no more
    statuses = [
        ReplicaStatus(
            ReplicaId("orders", number, target), ReplicaState.BEHIND, T0, bytes_behind=left
        )
        for (number, left), target in zip(behind.items(), (3, 13, 3), strict=True)
    ]
    ledger.add_samples("p1", statuses, ProgressSample(T0, 300, 1500, 1, 5, 2))
    return plan


def listed(ledger: Ledger, wanted: MoveFilter, offset: int = 0, limit: int = 100) -> list[str]:
    page = ledger.move_page("p1", wanted, offset, limit)
    return [str(line.move.partition) for line in page.lines]


ORDERS = {
    MoveOrder.STATE: ["payXments-0", "orders-0", "orders-1", "pay_ments-0", "orders-2"],
    MoveOrder.PARTITION: ["orders-0", "orders-1", "orders-2", "payXments-0", "pay_ments-0"],
    MoveOrder.SIZE: ["orders-0", "orders-1", "orders-2", "pay_ments-0", "payXments-0"],
    MoveOrder.BEHIND: ["orders-1", "orders-0", "orders-2", "payXments-0", "pay_ments-0"],
    MoveOrder.CHANGED: ["payXments-0", "orders-2", "orders-0", "orders-1", "pay_ments-0"],
}


@pytest.mark.usefixtures("plan")
def test_moves_are_sorted_by_the_database(ledger: Ledger) -> None:
    assert {order: listed(ledger, MoveFilter(order=order)) for order in MoveOrder} == ORDERS
    for order in MoveOrder:
        backwards = listed(ledger, MoveFilter(order=order, reverse=True))
        assert sorted(backwards) == sorted(ORDERS[order])
        if order is not MoveOrder.BEHIND and order is not MoveOrder.CHANGED:
            assert backwards == ORDERS[order][::-1]
        else:  # what is alike stays in the order of partitions
            assert backwards[-1] == ORDERS[order][0]


@pytest.mark.usefixtures("plan")
def test_pages_of_moves_follow_each_other_and_show_how_many_there_are(ledger: Ledger) -> None:
    everything = listed(ledger, MoveFilter())
    pages = [listed(ledger, MoveFilter(), offset, 2) for offset in (0, 2, 4, 6)]
    assert [name for page in pages for name in page] == everything
    assert ledger.move_page("p1", MoveFilter(), 4, 2).total == 5


@pytest.mark.usefixtures("plan")
def test_moves_are_filtered_by_the_database(ledger: Ledger) -> None:
    expected = [
        (MoveFilter(topic="orders"), {"orders-0", "orders-1", "orders-2"}),
        (MoveFilter(topic="pay_"), {"pay_ments-0"}),  # _ is no wildcard
        (MoveFilter(topic="%"), set()),
        (MoveFilter(broker=3), {"orders-0", "orders-2", "pay_ments-0", "payXments-0"}),
        (MoveFilter(broker=13), {"orders-1"}),
        (MoveFilter(broker=1), {str(item.partition) for item in MOVES}),
        (MoveFilter(broker=4), set()),
        (MoveFilter(states=frozenset({MoveState.ADMITTED})), {"orders-0", "orders-1"}),
        (MoveFilter(states=frozenset({MoveState.DONE}), topic="pay"), set()),
    ]
    assert [(wanted, set(listed(ledger, wanted))) for wanted, _ in expected] == expected
    totals = [ledger.move_page("p1", wanted, 0, 100).total for wanted, _ in expected]
    assert totals == [len(found) for _, found in expected]


@pytest.mark.usefixtures("plan")
def test_a_line_has_the_move_its_start_and_its_replicas(ledger: Ledger) -> None:
    failed, flying, *_ = ledger.move_page("p1", MoveFilter(), 0, 100).lines
    assert failed.detail == "the controller refused it (39)"
    assert flying.move.target == (3, 2)
    assert flying.start is not None
    assert flying.start.replicas_before == (1, 2)
    assert [status.bytes_behind for status in flying.statuses] == [100]


@pytest.mark.usefixtures("plan")
def test_sums_and_changes_of_moves(ledger: Ledger) -> None:
    assert ledger.move_sums("p1") == {
        MoveState.ADMITTED: MoveSums(2, 900),
        MoveState.DONE: MoveSums(1, 300),
        MoveState.FAILED: MoveSums(1, 100),
        MoveState.PENDING: MoveSums(1, 200),
    }
    before, version = ledger.moves_changed("p1", -1, MoveState.DONE)
    assert [moved.partition for moved in before] == [MOVES[2].partition]
    assert ledger.moves_changed("p1", version, MoveState.DONE) == ([], version)
    ledger.settle("p1", MOVES[0].partition, MoveState.DONE)
    (moved,), later = ledger.moves_changed("p1", version, MoveState.DONE)
    assert moved.partition == MOVES[0].partition
    assert later > version


@pytest.fixture
def many(ledger: Ledger, plan: Plan, clock: SetClock) -> Plan:
    """Two more plans, of other DAGs, made later."""
    for number, dag_id in ((2, "rebalance_in_window"), (3, None)):
        clock.pass_s(60)
        other = make_plan(f"p{number}", cluster_id=f"c{number}")
        ledger.create_plan(other, {}, "file:///x", f"run-{number}", "Bob 100%", dag_id=dag_id)
    return plan


@pytest.mark.usefixtures("many")
def test_plans_are_filtered_and_the_newest_comes_first(ledger: Ledger) -> None:
    expected = [
        (PlanFilter(), ["p3", "p2", "p1"]),
        (PlanFilter(states=frozenset({PlanState.RUNNING})), ["p1"]),
        (PlanFilter(text="bob 100%"), ["p3", "p2"]),
        (PlanFilter(text="%"), ["p3", "p2"]),
        (PlanFilter(text="RUN-2"), ["p2"]),
        (PlanFilter(dag_ids=frozenset({"reassign_partitions"})), ["p3", "p1"]),
        (PlanFilter(dag_ids=frozenset()), ["p3"]),  # made by an earlier Rehome: not known by which
    ]
    pages = [ledger.plan_page(wanted, 0, 10) for wanted, _ in expected]
    found = [[line.record.plan_id for line in page.lines] for page in pages]
    assert found == [plans for _, plans in expected]
    assert [page.total for page in pages] == [len(plans) for plans in found]
    second = [ledger.plan_page(wanted, 1, 1).lines for wanted, _ in expected]
    assert [[line.record.plan_id for line in lines] for lines in second] == [
        plans[1:2] for plans in found
    ]


@pytest.mark.usefixtures("many")
def test_a_list_of_plans_shows_how_far_each_is(ledger: Ledger) -> None:
    lines = {line.record.plan_id: line for line in ledger.plan_page(PlanFilter(), 0, 10).lines}
    sample = lines["p1"].sample
    assert sample is not None
    assert sample.bytes_done == 300
    assert lines["p2"].sample is None
    assert lines["p1"].sums == ledger.move_sums("p1")
    assert set(lines["p2"].sums) == {MoveState.PENDING}
    assert ledger.plan_counts() == {PlanState.RUNNING: 1, PlanState.PLANNED: 2}
    assert ledger.plan_counts(frozenset()) == {PlanState.PLANNED: 1}
    assert ledger.plan_of_run("rebalance_in_window", "run-2") == "p2"
    assert ledger.plan_of_run("reassign_partitions", "run-2") is None


@pytest.mark.usefixtures("plan")
def test_the_mark_of_a_plan_changes_with_everything_that_the_page_shows(ledger: Ledger) -> None:
    marks = [ledger.mark("p1")]
    assert ledger.mark("p1") == marks[0]
    changes = [
        lambda: ledger.add_samples(
            "p1", [], ProgressSample(T0 + timedelta(seconds=5), 300, 1500, 1, 5, 2)
        ),
        lambda: ledger.settle("p1", MOVES[0].partition, MoveState.DONE),
        lambda: ledger.set_rate("p1", 2000, "asked for"),
        lambda: ledger.request_rate("p1", 3000, "ann"),
        lambda: ledger.request_pause("p1", "ann"),
        lambda: ledger.add_event(EventKind.ALERT_SENT, "stalled", plan_id="p1"),
        lambda: ledger.record_dry_run(DryRun("p1", "dag", "run-1", True, 3000, "", "ab12")),
        lambda: ledger.record_files("p1", {"verify.json": "cd34"}),
        lambda: ledger.transition("p1", PlanState.PAUSED, "asked for"),
    ]
    for change in changes:
        change()
        marks.append(ledger.mark("p1"))
    assert len(set(marks)) == len(changes) + 1
    assert ledger.mark("unknown") is None


@pytest.mark.usefixtures("plan")
def test_events_are_paged_from_the_newest_on(ledger: Ledger) -> None:
    for number in range(5):
        ledger.add_event(EventKind.ALERT_SENT, f"number {number}", plan_id="p1")
    page = ledger.event_page("p1", 1, 2)
    assert [event.detail for event in page.lines] == ["number 3", "number 2"]
    assert page.total == len(ledger.events("p1"))


@pytest.mark.usefixtures("plan")
def test_an_event_of_a_kind_that_only_another_version_knows_is_shown_as_it_stands(
    ledger: Ledger,
) -> None:
    known = len(ledger.events("p1"))
    ledger.add_event(cast(EventKind, "moved to the moon"), "all of it", plan_id="p1")
    (newest,) = ledger.event_page("p1", 0, 1).lines
    assert newest == ledger.events("p1")[-1]
    assert f"{newest.kind}: {newest.detail}" == "moved to the moon: all of it"
    assert not isinstance(newest.kind, EventKind)
    assert all(isinstance(event.kind, EventKind) for event in ledger.events("p1")[:known])
