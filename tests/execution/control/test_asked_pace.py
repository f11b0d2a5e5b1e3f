"""What a pace that people ask for in mid-run is bounded by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.broker_rates import BrokerRates, RateSide
from rehome.domain.kafka import BrokerId
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import Control, PlanState
from rehome.execution.access.connection_policy import ConnectionPolicy, PolicyError
from rehome.execution.control.answers import HoldsFrom, PaceAsked
from rehome.execution.control.asked_pace import pace_of_run
from rehome.execution.control.controller import Controller
from rehome.execution.control.refusals import AboveApproval, MoreThanApproved, PaceMissing
from rehome.execution.control.refused import PaceRefusedError
from rehome.ledger.store import Ledger
from tests.execution.control.test_controller import bring
from tests.execution.control.test_controller import controller as controller
from tests.ledger.people import approve_as


def approved(ledger: Ledger, **terms: object) -> None:
    """By a person, of these terms; the plan runs."""
    record = ledger.plan("p1")
    given = replace(Terms(record.plan_hash, 5_000_000), **terms)  # type: ignore[arg-type]
    approve_as(ledger, "bob", "p1", given)
    ledger.transition("p1", PlanState.RUNNING, "because")


def test_moves_at_once_are_asked_for_and_hold_in_the_view_and_for_another_run(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, PlanState.RUNNING)
    ledger.acquire_lease(ledger.plan("p1").cluster_id, "run-1", 60, plan_id="p1")
    done = controller.control(Control.CHANGE_MOVES, "p1", moves_per_broker=7)
    record = ledger.plan("p1")
    assert done.answer == PaceAsked(
        HoldsFrom.NEXT_POLL, record.driver, record.dag_id, moves_per_broker=7
    )
    assert ledger.view("p1").requested_moves_per_broker == 7
    assert pace_of_run(ledger.plan("p1"), None)["max_moves_per_broker"] == 7
    event = ledger.events("p1")[-1]
    assert (event.kind, event.actor) == (EventKind.REQUEST, "ann")
    assert event.detail == "7 moves at once for each broker requested"
    with pytest.raises(PaceRefusedError) as refused:
        controller.control(Control.CHANGE_MOVES, "p1")
    assert refused.value.refusal is PaceMissing.MOVES


@pytest.mark.parametrize(
    ("unthrottled", "moves", "allowed"), [(4, 4, True), (4, 5, False), (None, 5, True)]
)
def test_more_moves_than_were_approved_are_refused_where_nothing_else_limits_the_plan(
    unthrottled: int | None, moves: int, allowed: bool, controller: Controller, ledger: Ledger
) -> None:
    approved(ledger, unthrottled=unthrottled)
    if allowed:
        controller.control(Control.CHANGE_MOVES, "p1", moves_per_broker=moves)
        assert ledger.view("p1").requested_moves_per_broker == moves
        return
    with pytest.raises(PaceRefusedError) as refused:
        controller.control(Control.CHANGE_MOVES, "p1", moves_per_broker=moves)
    assert refused.value.refusal == MoreThanApproved("bob", 4)
    assert ledger.view("p1").requested_moves_per_broker is None


def test_rates_of_brokers_are_asked_for_alone_and_with_the_plans(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, PlanState.RUNNING)
    own = BrokerRates({3: 2_000_000})
    done = controller.control(Control.CHANGE_THROTTLE, "p1", by_broker=own)
    record = ledger.plan("p1")
    assert done.answer == PaceAsked(
        HoldsFrom.RUN_GOES_ON, record.driver, record.dag_id, by_broker=own
    )
    view = ledger.view("p1")
    assert (view.requested_rate_bytes_per_s, view.requested_rates_by_broker) == (None, own)
    assert pace_of_run(ledger.plan("p1"), None)["throttle_by_broker"] == own.to_json()
    controller.control(Control.CHANGE_THROTTLE, "p1", 9_000_000, by_broker=BrokerRates())
    view = ledger.view("p1")
    assert (view.requested_rate_bytes_per_s, view.requested_rates_by_broker) == (
        9_000_000,
        BrokerRates(),
    )


@pytest.mark.parametrize(
    ("rate", "own", "above"),
    [
        (None, BrokerRates({3: 2_000_001}), [(RateSide.LEADER, 3)]),
        (None, BrokerRates({3: 2_000_000}, {4: 5_000_001}), [(RateSide.FOLLOWER, 4)]),
        (None, BrokerRates(), [(RateSide.LEADER, 3)]),
        (5_000_001, None, []),
    ],
)
def test_no_brokers_rate_exceeds_what_a_person_has_approved(
    rate: int | None,
    own: BrokerRates | None,
    above: list[tuple[RateSide, BrokerId]],
    controller: Controller,
    ledger: Ledger,
) -> None:
    approved(ledger, rates_by_broker=BrokerRates({3: 2_000_000}))
    before = ledger.plan("p1")
    with pytest.raises(PaceRefusedError) as refused:
        controller.control(Control.CHANGE_THROTTLE, "p1", rate, by_broker=own)
    assert before.approval is not None
    assert refused.value.refusal == AboveApproval("bob", before.approval.terms, tuple(above))
    assert ledger.plan("p1") == before
    controller.control(Control.CHANGE_THROTTLE, "p1", 4_000_000, by_broker=BrokerRates({3: 1_000}))


def test_a_policy_bounds_single_brokers_and_lowers_them_where_the_plans_rate_rises(
    controller: Controller, ledger: Ledger
) -> None:
    bring(ledger, PlanState.RUNNING)
    policy = ConnectionPolicy.parse(
        {"largest_throttle_by_broker": {"3": {"follower": 1_000_000}}}, "prod"
    )
    bounded = replace(controller, policy=policy)
    with pytest.raises(PolicyError, match=r"2000000 bytes per second of broker 3 \(follower\)"):
        bounded.control(Control.CHANGE_THROTTLE, "p1", by_broker=BrokerRates({}, {3: 2_000_000}))
    bounded.control(Control.CHANGE_THROTTLE, "p1", 9_000_000)
    assert ledger.view("p1").requested_rates_by_broker == BrokerRates({}, {3: 1_000_000})
