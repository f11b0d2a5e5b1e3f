"""Runs that die or sleep in mid-plan, and runs that take the lease over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.clock import utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.errors import PlanConflictError
from rehome.execution.access.lease import hold
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.control.answers import CancelledHere, ThrottlesLeft, ToCancel
from rehome.execution.control.controller import Controller
from rehome.execution.control.resume import check_continuable
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle, sweep
from rehome.ledger.base.fencing import LeaseHeldError
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.dags.clusters import state_of
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.killed import LEASE_S, go_on, run_until_killed, run_until_stopped
from tests.ledger.small_plans import move

MakePlan = Callable[..., Plan]
CRAWL, FAST = 100_000, 50_000_000


@pytest.fixture
def later(ledger_url: str) -> Iterator[Ledger]:
    """The same ledger when every lease that is held now has expired."""
    with Ledger.open(ledger_url, clock=lambda: utc_now() + timedelta(seconds=LEASE_S)) as opened:
        yield opened


@dataclass(frozen=True)
class Site:
    """The shared cluster, and a ledger of the test's own as it is seen now, and too late."""

    cluster: LocalCluster
    gateway: OwnGateway
    ledger: Ledger
    later: Ledger
    ledger_url: str
    approved: MakePlan
    topics: Topics


@pytest.fixture
def site(
    cluster: LocalCluster,
    gateway: OwnGateway,
    ledger: Ledger,
    later: Ledger,
    ledger_url: str,
    approved: MakePlan,
    topics: Topics,
) -> Site:
    return Site(cluster, gateway, ledger, later, ledger_url, approved, topics)


def controller(ledger: Ledger, gateway: OwnGateway) -> Controller:
    return Controller(ledger, gateway, "ann", LEASE_S, "control_reassignment/a-run")


@pytest.mark.parametrize(
    ("step", "call", "when"),
    [
        ("set_up", "describe_configs", "before"),  # it has claimed the cluster, and set nothing
        ("advance", "list_reassignments", "after"),  # it is about to decide by what it has seen
        ("advance", "describe_configs#2", "after"),  # its moves are journalled, about to be sent
    ],
)
def test_a_run_that_wakes_up_too_late_does_nothing(
    step: str, call: str, when: str, site: Site
) -> None:
    topic = site.topics.create([[1, 2], [2, 1]])
    before = state_of(site.gateway, [topic])
    plan = site.approved(move(topic, 0, (1, 2), (4, 2)), move(topic, 1, (2, 1), (4, 1)))
    if step == "advance":
        set_up_throttle(plan, site.ledger, site.gateway, CRAWL)
    sleeper = run_until_stopped(step, call, when, plan, site.ledger_url, site.cluster, CRAWL)
    try:
        with pytest.raises(LeaseHeldError):
            site.ledger.acquire_lease(plan.cluster_id, "another", LEASE_S)
        controller(site.later, site.gateway).control(Control.CANCEL, plan.plan_id)
        assert site.later.plan(plan.plan_id).state is PlanState.CANCELLED
        wait_until(lambda: state_of(site.gateway, [topic]) == before, "the cluster as it was")
        events = site.ledger.events()
    finally:
        ended = go_on(sleeper)
    assert ended == "LeaseLostError"
    assert state_of(site.gateway, [topic]) == before
    assert site.ledger.events() == events
    assert not site.ledger.throttles(open_only=True)


def test_a_run_whose_lease_expired_without_a_takeover_goes_on(site: Site) -> None:
    topic = site.topics.create([[1, 2]])
    plan = site.approved(move(topic, 0, (1, 2), (4, 2)))
    set_up_throttle(plan, site.ledger, site.gateway, FAST)
    where = ("advance", "describe_configs#2", "after")
    sleeper = run_until_stopped(*where, plan, site.ledger_url, site.cluster, FAST)
    assert site.later.holder(plan.cluster_id) is None
    assert go_on(sleeper) == "done"
    policy = Policy(FAST, metadata_grace_s=1)
    wait_until(lambda: advance(plan, site.ledger, site.gateway, policy).finished, "the plan to end")
    assert site.ledger.plan(plan.plan_id).state is PlanState.DONE
    assert not clear_throttle(plan.plan_id, site.ledger, site.gateway).owed


def test_a_plan_whose_run_is_dead_is_cancelled_without_a_poll_once_its_lease_has_expired(
    site: Site,
) -> None:
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 4000)
    before = state_of(site.gateway, [topic])
    plan = site.approved(move(topic, 0, (1, 2), (4, 2), 4_000_000))
    set_up_throttle(plan, site.ledger, site.gateway, CRAWL)
    run_until_killed(
        "advance", "alter_reassignments", "after", plan, site.ledger_url, site.cluster, CRAWL
    )
    flying = site.gateway.list_reassignments()
    assert list(flying) == [TopicPartition(topic, 0)]

    asked = controller(site.ledger, site.gateway).control(Control.CANCEL, plan.plan_id).answer
    assert isinstance(asked, ToCancel)
    assert (asked.driver, asked.unthrottled) == ("run-1", False)
    assert site.gateway.list_reassignments() == flying, (
        "a run that may be alive is not meddled with"
    )

    ended = controller(site.later, site.gateway).control(Control.CANCEL, plan.plan_id).answer
    assert isinstance(ended, CancelledHere)
    assert ended.done.cancelled == (TopicPartition(topic, 0),)
    assert ended.throttles == ThrottlesLeft()
    record = site.ledger.plan(plan.plan_id)
    assert record.state is PlanState.CANCELLED
    assert "its run run-1 sent no heartbeat" in record.cause
    wait_until(lambda: state_of(site.gateway, [topic]) == before, "the cluster as it was")
    assert site.later.holder(plan.cluster_id) is None, "the lease is given back"


def test_another_run_goes_on_with_the_plan_of_a_dead_one_and_moves_nothing_twice(
    site: Site,
) -> None:
    topic = site.topics.create([[1, 2], [2, 1]])
    site.topics.fill(topic, 3000)
    before = state_of(site.gateway, [topic])["throttles"]
    plan = site.approved(
        move(topic, 0, (1, 2), (4, 2), 3_000_000), move(topic, 1, (2, 1), (3, 1), 3_000_000)
    )
    set_up_throttle(plan, site.ledger, site.gateway, CRAWL)
    run_until_killed(
        "advance", "alter_reassignments", "after", plan, site.ledger_url, site.cluster, CRAWL
    )
    with pytest.raises(PlanConflictError, match="Run run-1 drives plan"):
        check_continuable(plan, site.ledger, site.gateway, "run-2")
    assert sweep(site.later, site.gateway).cleared == (), "what is in flight keeps its throttle"

    run = controller(site.later, site.gateway).control(Control.RESUME, plan.plan_id).run
    assert run == {"plan_id": plan.plan_id, "throttle": "auto"}
    check_continuable(plan, site.later, site.gateway, "run-2")
    site.later.take_up(plan.plan_id, "dag", "run-2", {}, "ann", lease_s=LEASE_S)
    with pytest.raises(PlanConflictError, match="Run dag/run-2 drives plan"):
        site.ledger.acquire_lease(plan.cluster_id, "run-1", LEASE_S, plan_id=plan.plan_id)
    policy, driver = Policy(FAST, metadata_grace_s=1), ("dag/run-2", LEASE_S)
    own = OwnCluster.of_plan(site.gateway, site.later.plan(plan.plan_id))
    with hold(site.later, own, *driver, plan_id=plan.plan_id, release=True) as held:
        set_up_throttle(plan, held.ledger, held.cluster, FAST)
        wait_until(
            lambda: advance(plan, held.ledger, held.cluster, policy).finished, "the plan to end"
        )
        assert not clear_throttle(plan.plan_id, held.ledger, held.cluster).owed
    assert site.ledger.plan(plan.plan_id).state is PlanState.DONE
    starts = site.ledger.reassignments(plan.plan_id)
    assert [start.outcome for start in starts] == [MoveState.DONE] * 2
    wait_until(lambda: state_of(site.gateway, [topic])["throttles"] == before, "no throttle")
