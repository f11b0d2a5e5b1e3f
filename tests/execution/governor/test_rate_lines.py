"""Brokers that have a throttle of their own: each rate is governed by what they deliver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.run.flows import (
    BrokerFlow,
    FlowSample,
    OwnRate,
    RateChange,
    RateReason,
    Strain,
)
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.actions import SetRate
from rehome.execution.governor.control_loop import FIRST_PART, first_rates, govern
from tests.execution.governor.test_control_loop import PLENTY, POLL_S, RATE, T0, after

SLOW = 5_000_000
IN_4 = OwnRate("in", 4, T0, SLOW, SLOW, SLOW, RateReason.SET_UP, "set up")
POLICY = Policy(RATE, reaction_s=15)


def seen(others: float, own: float, polls: int = 8) -> tuple[FlowSample, ...]:
    """Samples in which broker 3 receives, and broker 4, which has a rate of its own, receives."""
    return tuple(
        FlowSample(
            after(POLL_S * at),
            after(POLL_S * (at + 1)),
            (
                BrokerFlow("in", 3, round(others * POLL_S), PLENTY, 4),
                BrokerFlow("in", 4, round(own * POLL_S), PLENTY, 4),
            ),
        )
        for at in range(polls)
    )


def governed(
    flows: tuple[FlowSample, ...],
    *own: OwnRate,
    asked: BrokerRates | None = None,
    rate: int | None = None,
) -> SetRate | None:
    begun = RateChange(T0, RATE, RATE, RATE, RateReason.SET_UP, "set up", own=own)
    view = LedgerView(
        PlanState.RUNNING,
        {},
        rate_bytes_per_s=RATE,
        requested_rate_bytes_per_s=rate,
        rates=(begun,),
        flows=flows,
        requested_rates_by_broker=asked,
    )
    return govern(view, flows[-1].at if flows else T0, POLICY)


def test_each_rate_is_raised_and_lowered_by_the_brokers_that_have_it() -> None:
    assert governed(seen(0.99 * RATE, 0.99 * SLOW), IN_4) is None
    own_only = governed(seen(0.99 * RATE, 0.8 * SLOW), IN_4)
    assert own_only is not None
    assert own_only.rate_bytes_per_s == RATE
    (own,) = own_only.own
    assert own.reason is RateReason.RAISED
    assert SLOW < own.rate_bytes_per_s <= 1.15 * SLOW
    assert (own.target_bytes_per_s, own.limit_bytes_per_s) == (SLOW, SLOW)
    assert own_only.cause.startswith("broker 4 receives at 5000000 B/s: broker 4 receives 4000000")
    both = governed(seen(1.2 * RATE, 1.2 * SLOW), IN_4)
    assert both is not None
    assert both.rate_bytes_per_s < RATE
    assert both.own[0].rate_bytes_per_s < SLOW


def test_a_broker_with_a_rate_of_its_own_says_nothing_of_the_plans_rate() -> None:
    fast = replace(IN_4, rate_bytes_per_s=4 * RATE, target_bytes_per_s=4 * RATE)
    assert governed(seen(0.99 * RATE, 0.99 * 4 * RATE), fast) is None
    without = governed(seen(0.99 * RATE, 0.99 * 4 * RATE))
    assert without is not None
    assert without.reason is RateReason.LOWERED


def test_strain_cuts_every_rate_and_none_rises_above_its_own_limit() -> None:
    well, ill = seen(0.99 * RATE, 0.99 * SLOW, 7), seen(0.99 * RATE, 0.99 * SLOW, 8)[7:]
    flows = (*(replace(s, strain=Strain(0, 0)) for s in well), replace(ill[0], strain=Strain(3, 0)))
    cut = governed(flows, IN_4)
    assert cut is not None
    assert cut.target_bytes_per_s == RATE // 2
    assert (cut.own[0].target_bytes_per_s, cut.own[0].reason) == (SLOW // 2, RateReason.STRAIN)
    assert cut.own[0].limit_bytes_per_s == SLOW


@pytest.mark.parametrize(
    ("asked", "rate", "own"),
    [
        (BrokerRates({}, {4: 2 * SLOW}), None, {("in", 4): 2 * SLOW}),
        (BrokerRates({1: SLOW}), None, {("out", 1): SLOW}),
        (BrokerRates(), None, {}),
        (None, RATE // 2, {("in", 4): SLOW}),
        (BrokerRates({2: SLOW}), RATE // 2, {("out", 2): SLOW}),
    ],
)
def test_what_is_asked_for_in_mid_run_is_set_at_once(
    asked: BrokerRates | None, rate: int | None, own: dict[tuple[str, int], int]
) -> None:
    change = governed((), IN_4, asked=asked, rate=rate)
    assert change is not None
    assert change.target_bytes_per_s == (rate or RATE)
    assert {each.key: each.target_bytes_per_s for each in change.own} == own


def test_what_is_set_already_is_not_asked_for_again() -> None:
    assert governed((), IN_4, asked=BrokerRates({}, {4: SLOW}), rate=RATE) is None


def test_a_first_rate_is_above_what_the_broker_is_to_deliver() -> None:
    (first,) = first_rates(BrokerRates({2: SLOW}), T0)
    assert (first.direction, first.broker, first.target_bytes_per_s) == ("out", 2, SLOW)
    assert first.rate_bytes_per_s == round(SLOW / FIRST_PART)
    assert OwnRate.from_json(first.to_json()) == first
