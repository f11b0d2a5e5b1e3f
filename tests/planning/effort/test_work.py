"""The budget of work: what it ends, that it decides alike everywhere, and that plans say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.people_clusters import cases, people
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.effort import work as budgets
from rehome.planning.effort.work import SEARCH_WORK, SearchWork, budget_of_work
from rehome.planning.rebalance import solver, target_costs
from rehome.planning.rebalance.rebalance import plan_rebalance
from rehome.planning.result.outcome import Outcome
from rehome.planning.search.fill import fill
from rehome.planning.search.state import Search

CASES = {case.name: case for case in cases()}
HARD = "tolerance 0, racks"
"""No plan meets its bands, and there is always a trade that helps a little: without a budget the
search took over a minute.
"""


@pytest.fixture(autouse=True)
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        budgets, "SEARCH_WORK", replace(SEARCH_WORK, least=5e6, per_replica=0.0, per_broker=0.0)
    )


def planned(name: str, **params: object) -> Outcome:
    case = CASES[name]
    return plan_rebalance(
        people(case), ReassignmentRequest(Action.REBALANCE, **case.params | params)
    )


def test_a_phase_may_spend_a_part_of_what_is_left_and_the_next_one_the_rest() -> None:
    work = SearchWork(10 * SEARCH_WORK.per_scoring)
    with work.at_most(0.5):
        for _ in range(5):
            assert not work.is_spent()
            work.score(0)
        assert work.is_spent()
    assert work.cut
    assert not work.is_spent()
    work.score(5 * SEARCH_WORK.per_scoring)
    assert work.is_spent()


def test_no_phase_inside_another_may_spend_more_than_that() -> None:
    work = SearchWork(10 * SEARCH_WORK.per_scoring)
    with work.at_most(0.2), work.at_most(1.0):
        work.score(SEARCH_WORK.per_scoring)
        assert work.is_spent()


def test_without_a_budget_nothing_ends() -> None:
    work = SearchWork()
    with work.at_most(0.5):
        work.score(10**15)
        assert not work.is_spent()
    assert not work.cut


def test_work_beside_the_phases_leaves_them_theirs_and_ends_what_would_begin_again() -> None:
    work = SearchWork(100.0)
    work.count_beside(120.0)
    assert not work.is_spent()
    assert not work.is_used_up()
    work.count(80.0)
    assert not work.is_spent()
    assert work.is_used_up(), "two budgets, together"
    assert work.cut


def fills(monkeypatch: pytest.MonkeyPatch, most_in_all: float) -> int:
    """How often brokers are filled for a plan whose topics stay uneven."""
    monkeypatch.setattr(budgets, "SEARCH_WORK", replace(SEARCH_WORK, most_in_all=most_in_all))
    calls: list[int] = []

    def counted(search: Search, *args: Any) -> None:
        calls.append(search.flat.size)
        fill(search, *args)

    monkeypatch.setattr(solver, "fill", counted)
    planned(HARD, tolerances={"replicas": 0.0, "topic_spread": 0.0})
    return len(calls)


@pytest.mark.slow
def test_brokers_are_not_filled_again_once_all_work_is_twice_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fills(monkeypatch, 0.0) < fills(monkeypatch, np.inf)


def test_large_clusters_and_thorough_plans_have_larger_budgets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budgets, "SEARCH_WORK", replace(SEARCH_WORK, least=5e6))
    assert budget_of_work(1) == 5e6
    assert budget_of_work(1_000_000) == 1e9
    assert budget_of_work(1, times=50.0) == 50 * 5e6


def test_many_brokers_have_a_larger_budget_but_not_for_few_replicas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = replace(SEARCH_WORK, least=5e6, per_broker=1e6, most_per_replica=8e3)
    monkeypatch.setattr(budgets, "SEARCH_WORK", options)
    assert budget_of_work(100_000, 300) == 300e6
    assert budget_of_work(10_000, 300) == 80e6
    assert budget_of_work(1_000_000, 300) == 1e9


def test_what_is_done_at_once_begins_only_if_the_phase_may_do_all_of_it() -> None:
    work = SearchWork(100.0)
    with work.at_most(0.5):
        work.count(20.0)
        assert [work.allows(part) for part in (30.0, 31.0)] == [True, False]
    assert work.allows(80.0)
    assert not work.cut, "nothing has ended"


@pytest.mark.slow
def test_a_search_ends_with_its_budget_says_so_and_is_no_worse_than_nothing() -> None:
    first, again = planned(HARD), planned(HARD)
    assert first.search_cut
    assert (first.layout.rows == again.layout.rows).all(), "work is counted, not measured"
    load, before = (
        first.layout.load,
        first.layout.arrays.load(first.layout.origin, first.layout.size),
    )
    assert np.ptp(load) < np.ptp(before)


def test_a_search_that_ends_by_itself_says_nothing() -> None:
    assert not planned("3 brokers").search_cut


def test_prices_that_the_budget_does_not_pay_for_are_lower_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcome = planned("3 + 1")
    monkeypatch.setattr(target_costs, "PRICES", 0.0)
    methods = {price.resource: price.method for price in outcome.prices()}
    assert methods["bytes"] == "at_least"
