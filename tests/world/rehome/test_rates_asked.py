"""What people have asked for of a plan's rates, by the runs that they have triggered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from world import cases_of_requests as cases
from world.judge.flights import FOLLOWER_RATE, LEADER_RATE
from world.judge.plan_seen import RatesAsked
from world.rehome.rates_asked import rates_asked
from world.script import Do, Script, What
from world.stage import Stage


def asked(script: Script) -> list[tuple[RatesAsked, ...]]:
    stage = Stage(script)
    try:
        stage.run()
        airflow = stage.rehomes["A"].airflow
        return [tuple(rates_asked(airflow, each.plan.plan_id)) for each in stage.started]
    finally:
        stage.end()


@pytest.mark.slow
def test_rates_of_the_run_and_of_each_change_are_known_with_what_came_of_it() -> None:
    (rates,) = asked(cases.RATES_BY_BROKER_CHANGED)
    first, second, third = rates
    assert first == RatesAsked(
        1.0, 1.0, True, 1_000_000, {(2, LEADER_RATE): 400_000, (4, FOLLOWER_RATE): 300_000}
    )
    assert (second.rate, third.rate, third.own) == (None, 500_000, {})
    assert second.own == {(4, LEADER_RATE): 800_000, (4, FOLLOWER_RATE): 2_000_000}
    assert (second.since, second.agreed) == (20.0, True)
    assert 20.0 < second.ended < 40.0


@pytest.mark.slow
def test_a_change_that_comes_to_no_end_is_not_agreed_to() -> None:
    late = Do(290.0, "A", What.CHANGE_RATES, (900_000, ()))
    (rates,) = asked(replace(cases.RATES_BY_BROKER, does=(*cases.RATES_BY_BROKER.does, late)))
    assert [each.agreed for each in rates] == [True, False], "the plan has ended by then"


def test_what_is_adopted_has_its_rate_from_when_it_is_throttled() -> None:
    (rates,) = asked(cases.FOREIGN_ADOPTED)
    (only,) = rates
    assert (only.rate, only.own, only.agreed) == (1_000_000, {}, True)
    assert 40.0 < only.since < 50.0
