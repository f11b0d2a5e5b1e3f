"""Which requests a plan takes in which state, and what comes of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from local.kafka.cluster import LocalCluster
from rehome.domain.plan.plan import Plan
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import BrokerFlow, FlowSample
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.errors import PlanConflictError
from rehome.execution.access.own_cluster import OwnCluster, WrongClusterError
from rehome.execution.control.answers import (
    HandedOver,
    HoldsFrom,
    NotToPause,
    PaceAsked,
    RunFor,
    RunNeeded,
)
from rehome.execution.control.controller import Controller
from rehome.execution.control.refusals import (
    AboveApproval,
    BelowInflow,
    NotContinued,
    NotPossible,
    PaceMissing,
    StateRefusal,
)
from rehome.execution.control.refused import (
    NotContinuedError,
    PaceRefusedError,
    StateRefusedError,
)
from rehome.execution.control.resume import check_continuable, not_started
from rehome.execution.observation.drift import DriftError
from rehome.ledger.base.fencing import LeaseHeldError
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.small_plans import make_plan, move

NIGHT = datetime(2030, 1, 1, 2, tzinfo=UTC)
REQUEST = {"throttle": 7, "window_end": "2030-01-01T04:00:00+00:00", "brokers": [4]}


@pytest.fixture
def controller(ledger: Ledger, gateway: OwnGateway) -> Controller:
    plan = make_plan("p1", cluster_id=gateway.describe_cluster().cluster_id)
    ledger.create_plan(plan, REQUEST, "file:///plans/p1", "run-1", "test")
    return Controller(ledger, gateway, "ann", 60, "control_reassignment/a-run")


def bring(ledger: Ledger, *states: PlanState) -> None:
    if states:
        ledger.approve("p1", ledger.plan("p1").plan_hash, "test")
    for state in states:
        ledger.transition("p1", state, "because")


RUNNING = (PlanState.RUNNING,)
PAUSED = (PlanState.RUNNING, PlanState.PAUSED)
DONE = (PlanState.RUNNING, PlanState.DONE)


@pytest.mark.parametrize(
    ("states", "what", "why"),
    [
        ((), Control.RUN, NotPossible.CARRIED_OUT),
        (RUNNING, Control.RUN, NotPossible.BEGUN),
        (PAUSED, Control.RUN, NotPossible.BEGUN),
        ((), Control.NEXT_WINDOW, NotPossible.CARRIED_OUT),
        (PAUSED, Control.NEXT_WINDOW, NotPossible.BEGUN),
        ((), Control.PAUSE, NotPossible.NOTHING_TO_PAUSE),
        ((), Control.RESUME, NotPossible.NOTHING_TO_RESUME),
        ((PlanState.CANCELLED,), Control.ROLL_BACK, NotPossible.NEVER_STARTED),
        (RUNNING, Control.ROLL_BACK, NotPossible.ACTIVE),
        (PAUSED, Control.ROLL_BACK, NotPossible.ACTIVE),
        *((DONE, what, NotPossible.ENDED) for what in Control if what != "roll_back"),
    ],
)
def test_what_a_plans_state_does_not_allow_is_refused(
    states: tuple[PlanState, ...],
    what: Control,
    why: NotPossible,
    controller: Controller,
    ledger: Ledger,
) -> None:
    bring(ledger, *states)
    before = ledger.plan("p1")
    with pytest.raises(StateRefusedError) as refused:
        controller.control(what, "p1", 5)
    assert refused.value.refusal == StateRefusal(before, what, why)
    assert "This step has changed nothing" in str(refused.value)
    assert ledger.plan("p1") == before


def test_a_running_plan_is_asked_and_no_run_is_started(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, *RUNNING)
    ledger.acquire_lease(ledger.plan("p1").cluster_id, "run-1", 60, plan_id="p1")
    assert controller.control(Control.CHANGE_THROTTLE, "p1", 5).run is None
    assert ledger.view("p1").requested_rate_bytes_per_s == 5
    with pytest.raises(PaceRefusedError) as refused:
        controller.control(Control.CHANGE_THROTTLE, "p1")
    assert refused.value.refusal is PaceMissing.THROTTLE
    controller.control(Control.PAUSE, "p1")
    assert ledger.view("p1").pause_requested
    assert controller.control(Control.RESUME, "p1").run is None
    assert not ledger.view("p1").pause_requested
    controller.control(Control.CANCEL, "p1")
    assert ledger.view("p1").cancel_requested
    assert ledger.events("p1")[-1].actor == "ann"


def running_beside(ledger: Ledger, dag_id: str) -> Plan:
    """Plan p2, driven by run-2 of a DAG."""
    plan = make_plan("p2", cluster_id=ledger.plan("p1").cluster_id)
    ledger.create_plan(plan, REQUEST, "file:///p2", "run-2", "test", dag_id=dag_id)
    ledger.approve("p2", plan.plan_hash, "test")
    ledger.transition("p2", PlanState.RUNNING, "because")
    return plan


def test_what_is_asked_of_a_plan_whose_dag_is_paused_is_said_to_wait_for_that(
    controller: Controller, ledger: Ledger
) -> None:
    asked = replace(controller, dag_paused=lambda dag_id: dag_id == "reassign_partitions")
    plan = running_beside(ledger, dag_id="reassign_partitions")
    for lives in (True, False):
        owner = ledger.plan("p2").driver
        ledger.acquire_lease(plan.cluster_id, owner, 60 if lives else 0, plan_id="p2")
        ledger.request_pause("p2", "ann")
        resumed = asked.control(Control.RESUME, "p2")
        assert (resumed.run, resumed.claims) == (None, ()), "a second run would be queued, too"
        assert resumed.answer == NotToPause("reassign_partitions", "run-2")
        assert not ledger.view("p2").pause_requested
    ledger.acquire_lease(plan.cluster_id, ledger.plan("p2").driver, 60, plan_id="p2")
    plan_driver = ledger.plan("p2").driver
    throttled = asked.control(Control.CHANGE_THROTTLE, "p2", 5)
    assert throttled.answer == PaceAsked(
        HoldsFrom.DAG_UNPAUSED, plan_driver, "reassign_partitions", rate_bytes_per_s=5
    )
    ledger.transition("p2", PlanState.PAUSED, "because")
    started = asked.control(Control.RESUME, "p2")
    assert started.run is not None
    assert started.answer == RunNeeded(RunFor.GO_ON, queued=True)


def test_a_dead_runs_plan_is_taken_over_though_its_own_dag_is_paused(
    controller: Controller, ledger: Ledger
) -> None:
    asked = replace(controller, dag_paused=lambda dag_id: dag_id == "rebalance_in_window")
    plan = running_beside(ledger, dag_id="rebalance_in_window")
    ledger.acquire_lease(plan.cluster_id, ledger.plan("p2").driver, 60, plan_id="p2")
    assert asked.control(Control.RESUME, "p2").run is None, "its trigger lives: it holds the lease"
    ledger.acquire_lease(plan.cluster_id, ledger.plan("p2").driver, 0, plan_id="p2")
    assert asked.control(Control.RESUME, "p2").run is not None


def test_a_throttle_that_the_copies_outgrow_is_refused(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, *RUNNING)
    ledger.acquire_lease(ledger.plan("p1").cluster_id, "run-1", 60, plan_id="p1")
    at = NIGHT + timedelta(seconds=5)
    growing = BrokerFlow("in", 3, copied_bytes=0, left_bytes=9, copies=1, grown_bytes=5_000)
    sample = ProgressSample(at, 0, 200, 0, 2, 1)
    ledger.add_samples("p1", [], sample, FlowSample(NIGHT, at, (growing,)))
    with pytest.raises(PaceRefusedError) as refused:
        controller.control(Control.CHANGE_THROTTLE, "p1", 1_250)
    assert refused.value.refusal == BelowInflow(1_250, 1_000, 1_250)
    assert ledger.view("p1").requested_rate_bytes_per_s is None
    controller.control(Control.CHANGE_THROTTLE, "p1", 1_251)
    assert ledger.view("p1").requested_rate_bytes_per_s == 1_251


@pytest.mark.parametrize("by_person", [True, False])
def test_no_throttle_exceeds_what_a_person_has_approved(
    by_person: bool, controller: Controller, ledger: Ledger
) -> None:
    terms = Terms(ledger.plan("p1").plan_hash, 100)
    ledger.approve("p1", terms.plan_hash, "ben", terms, by_person=by_person, lasting_s=60)
    bring(ledger, *RUNNING)
    ledger.acquire_lease(ledger.plan("p1").cluster_id, "run-1", 60, plan_id="p1")
    controller.control(Control.CHANGE_THROTTLE, "p1", 100)
    if by_person:
        with pytest.raises(PaceRefusedError) as refused:
            controller.control(Control.CHANGE_THROTTLE, "p1", 101)
        assert refused.value.refusal == AboveApproval("ben", terms)
        assert ledger.view("p1").requested_rate_bytes_per_s == 100
    else:
        controller.control(Control.CHANGE_THROTTLE, "p1", 101)
        assert ledger.view("p1").requested_rate_bytes_per_s == 101


def test_no_throttle_exceeds_what_a_person_approves_in_this_moment(
    controller: Controller, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ledger.plan("p1")
    terms = Terms(before.plan_hash, 100)
    ledger.approve("p1", terms.plan_hash, "ben", terms, by_person=True, lasting_s=60)
    with monkeypatch.context() as late:
        late.setattr(type(ledger), "plan", lambda self, plan_id: before)
        with pytest.raises(PaceRefusedError) as refused:
            controller.control(Control.CHANGE_THROTTLE, "p1", 101)
    assert refused.value.refusal == AboveApproval("ben", terms)
    assert ledger.plan("p1").requested_rate_bytes_per_s is None


def test_a_paused_plan_is_resumed_within_its_window_or_without_one_when_that_has_closed(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, *PAUSED)
    within = controller.control(Control.RESUME, "p1", now=NIGHT).run
    assert within == {"plan_id": "p1", "throttle": 7, "window_end": REQUEST["window_end"]}
    later = controller.control(Control.RESUME, "p1", 9, now=NIGHT.replace(hour=5)).run
    assert later == {"plan_id": "p1", "throttle": 9}


def test_a_plan_without_a_throttle_goes_on_without_one_unless_a_throttle_is_named(
    gateway: OwnGateway, ledger: Ledger
) -> None:
    plan = make_plan("p1", cluster_id=gateway.describe_cluster().cluster_id)
    free = {**REQUEST, "throttle": "auto", "unthrottled": True}
    ledger.create_plan(plan, free, "file:///plans/p1", "run-1", "test")
    controller = Controller(ledger, gateway, "ann", 60, "control_reassignment/a-run")
    bring(ledger, *PAUSED)
    for rate, pace in ((None, ("auto", True)), (9, (9, False))):
        run = controller.control(Control.RESUME, "p1", rate, now=NIGHT).run
        assert run is not None
        assert (run["throttle"], run["unthrottled"]) == pace
    with pytest.raises(PaceRefusedError) as refused:
        controller.control(Control.CHANGE_THROTTLE, "p1", 9)
    assert refused.value.refusal is PaceMissing.NOTHING_TO_CHANGE


def test_what_a_dry_run_has_planned_is_run_as_it_is_by_one_run(
    gateway: OwnGateway, ledger: Ledger, topics: Topics
) -> None:
    topic, cluster_id = topics.create([[1, 2]]), gateway.describe_cluster().cluster_id
    plan = make_plan("p1", move(topic, 0, (1, 2), (3, 2)), cluster_id=cluster_id)
    request = REQUEST | {"action": "drain", "approval": True}
    ledger.create_plan(plan, request | {"dry_run": True}, "file:///plans/p1", "run-1", "test")
    controller = Controller(ledger, gateway, "ann", 60, "control_reassignment/a-run")
    wanted = request | {"dry_run": False, "plan_id": "p1"}
    assert controller.control(Control.RUN, "p1", now=NIGHT).run == wanted
    later = controller.control(Control.RUN, "p1", 9, now=NIGHT.replace(hour=5)).run
    assert later == {n: v for n, v in wanted.items() if n != "window_end"} | {"throttle": 9}

    def check(driver: str) -> None:
        check_continuable(plan, ledger, OwnCluster.of_plan(gateway, ledger.plan("p1")), driver)

    check("dag/run-2")
    ledger.take_up("p1", "dag", "run-2", {"throttle": 9}, "ann", lease_s=60, rate_bytes_per_s=9)
    record = ledger.plan("p1")
    assert (record.state, record.run_id, record.plan_hash) == (
        PlanState.PLANNED,
        "run-2",
        plan.plan_hash,
    )
    assert record.requested_rate_bytes_per_s == 9
    assert ledger.holder(cluster_id) is None, "nothing has started"
    check(record.driver)
    with pytest.raises(NotContinuedError) as taken_up:
        check("dag/run-3")
    assert taken_up.value.refusal.why is NotContinued.TAKEN_UP
    with pytest.raises(PlanConflictError, match="No run can resume plan p1: it is planned"):
        ledger.take_up("p1", "dag", "run-3", {}, "ann", lease_s=60)
    with pytest.raises(StateRefusedError) as refused:
        controller.control(Control.RUN, "p1")
    assert refused.value.refusal.why is NotPossible.CARRIED_OUT


def test_what_dry_runs_have_planned_is_handed_over_to_windows_one_after_the_other(
    gateway: OwnGateway, ledger: Ledger
) -> None:
    cluster_id = gateway.describe_cluster().cluster_id
    for plan_id in ("p2", "p1"):
        plan = make_plan(plan_id, cluster_id=cluster_id)
        ledger.create_plan(plan, REQUEST | {"dry_run": True}, "file:///p", "run-1", "test")
    controller = Controller(ledger, gateway, "ann", 60, "control_reassignment/a-run")
    first = controller.control(Control.NEXT_WINDOW, "p2", 9)
    assert first.run is None
    then = controller.control(Control.NEXT_WINDOW, "p1")
    assert (first.answer, then.answer) == (HandedOver(), HandedOver(("p2",)))
    assert controller.control(Control.NEXT_WINDOW, "p2").answer == first.answer, "asked twice"
    assert [plan.plan_id for plan in ledger.handed_over(cluster_id)] == ["p2", "p1"]
    assert ledger.handed_over("another") == []
    assert ledger.plan("p2").requested_rate_bytes_per_s == 9
    assert [e.actor for e in ledger.events("p1") if e.kind == EventKind.REQUEST] == ["ann"]
    ledger.take_up("p2", "dag", "run-2", {}, "ann", lease_s=60)
    ledger.transition("p1", PlanState.CANCELLED, "no more")
    assert ledger.handed_over(cluster_id) == []


def test_a_paused_plan_is_cancelled_at_once_for_no_run_polls_it(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, *PAUSED)
    controller.control(Control.CANCEL, "p1")
    record = ledger.plan("p1")
    assert (record.state, record.cause) == (PlanState.CANCELLED, "cancelled while it was paused")
    back = controller.control(Control.ROLL_BACK, "p1").run
    assert back == {"action": "rollback", "plan_id": "p1", "throttle": 7}


def test_a_run_that_takes_a_paused_plan_up_becomes_the_one_that_drives_it(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, *PAUSED)
    for _ in range(2):
        ledger.take_up("p1", "dag", "run-2", {"throttle": 8}, "ann", lease_s=60, rate_bytes_per_s=8)
    record = ledger.plan("p1")
    assert record.run_id == "run-2"
    assert record.request == REQUEST | {"throttle": 8}
    assert record.requested_rate_bytes_per_s == 8
    assert ledger.taken_up_by("dag", "run-2") == "p1"
    assert ledger.taken_up_by("another-dag", "run-2") is None
    assert [event.kind for event in ledger.events("p1")].count(EventKind.CONTINUED) == 1
    ledger.claim("p1")
    with pytest.raises(LeaseHeldError, match="run-2 holds cluster"):
        ledger.take_up("p1", "dag", "run-3", {}, "ann", lease_s=60)


@pytest.mark.usefixtures("controller")
def test_a_run_is_known_to_have_taken_a_plan_up_when_others_have_taken_it_up_since(
    ledger: Ledger,
) -> None:
    bring(ledger, *PAUSED)
    for run_id in ("run-2", "run-3", "run-2"):
        ledger.take_up("p1", "dag", run_id, {}, "ann", lease_s=0)
    ledger.add_event(EventKind.CONTINUED, "dag/run-4", plan_id="p1")
    runs = ("run-1", "run-2", "run-3", "run-4")
    found = [ledger.taken_up_by("dag", run_id) for run_id in runs]
    assert found == [None, "p1", "p1", None], "an event's text is for people"


def test_only_what_is_left_of_a_paused_plan_must_still_fit(
    cluster: LocalCluster, topics: Topics, ledger: Ledger, gateway: OwnGateway
) -> None:
    topic = topics.create([[3, 2], [2, 3]])
    moved, left = move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (2, 3), (1, 3))
    plan = make_plan("p1", moved, left, cluster_id=cluster.cluster_id)
    ledger.create_plan(plan, REQUEST, "file:///plans/p1", "run-1", "test")
    ledger.approve("p1", plan.plan_hash, "test")
    with pytest.raises(NotContinuedError) as refused:
        check_continuable(plan, ledger, gateway, "run-2")
    assert refused.value.refusal.why is NotContinued.NOT_OPEN
    ledger.claim("p1")
    ledger.transition("p1", PlanState.PAUSED, "because")
    with pytest.raises(DriftError, match="not \\[1, 2\\]"):
        check_continuable(plan, ledger, gateway, "run-2")
    ledger.settle("p1", moved.partition, MoveState.DONE, "moved")
    check_continuable(plan, ledger, gateway, "run-2")
    assert not_started(plan, ledger.view("p1")).moves == (left,)

    elsewhere = make_plan("p2", left, cluster_id="another")
    ledger.create_plan(elsewhere, REQUEST, "file:///plans/p2", "run-1", "test")
    own = OwnCluster.of_plan(gateway, ledger.plan("p2"))
    with pytest.raises(WrongClusterError, match="plan p2 is for cluster another"):
        check_continuable(elsewhere, ledger, own, "run-2")
