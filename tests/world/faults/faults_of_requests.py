"""Faults put back in what people ask for: rates of single brokers, and what other clients have in
flight. See :mod:`tests.world.mutants`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rehome.domain.broker_rates import RateSide
from tests.world.mutants import Mutant, Original, returns
from world import cases_of_requests as cases
from world.judge.violations import Kind

EXECUTION = "rehome.execution"
OVER = frozenset({Kind.OVER_ITS_RATE})
_IN, _OUT = RateSide.FOLLOWER.direction, RateSide.LEADER.direction
_OTHER = {_IN: _OUT, _OUT: _IN}


def _the_other_direction(original: Original) -> Original:
    """What a broker may send is set for what it receives, and the other way round."""

    def by_key(self: Any) -> Any:
        return {(_OTHER[way], broker): rate for (way, broker), rate in original(self).items()}

    return by_key


def _leaves_own_rates(original: Original) -> Original:
    """A request for single brokers is heard, and no broker's rate changes."""

    def asked(view: Any, *args: Any) -> Any:
        return original(replace(view, requested_rates_by_broker=None), *args)

    return asked


OF_REQUESTS = (
    Mutant(
        "rates of single brokers are set for the other direction",
        "rehome.domain.broker_rates:BrokerRates.by_key",
        _the_other_direction,
        OVER,
    ),
    Mutant(
        "brokers with a rate of their own have the plan's",
        f"{EXECUTION}.throttle.rate_scope:own_by_key",
        returns({}),
        OVER,
        (f"{EXECUTION}.throttle.plan_throttle", f"{EXECUTION}.throttle.coverage"),
    ),
    Mutant(
        "rates of single brokers do not change in mid-run",
        f"{EXECUTION}.governor.rate_lines:asked_change",
        _leaves_own_rates,
        OVER,
        (f"{EXECUTION}.governor.control_loop",),
    ),
)
OF_REQUESTS_FOUND_BY = {
    "rates of single brokers are set for the other direction": cases.RATES_BY_BROKER,
    "brokers with a rate of their own have the plan's": cases.RATES_BY_BROKER,
    "rates of single brokers do not change in mid-run": cases.RATES_BY_BROKER_LOWERED,
}
