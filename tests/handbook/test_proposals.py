"""The list of demands names modules and tests that there are, and its page is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from handbook.proposals import PAGE, Demand, Met, demands, proposals_page
from handbook.sources import ROOT


def every() -> Iterator[Demand]:
    for rows in demands().values():
        yield from rows


@cache
def names_in(path: Path) -> frozenset[str]:
    """Names of the tests of a module; none where there is no such module."""
    if not path.is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = ast.walk(ast.parse(path.read_text()))
    return frozenset(item.name for item in found if isinstance(item, functions))


def missing(demand: Demand) -> Iterator[str]:
    if demand.code and not (ROOT / demand.code).is_file():
        yield demand.code
    file, _, name = demand.test.partition("::")
    if demand.test and not (name.startswith("test_") and name in names_in(ROOT / file)):
        yield demand.test


@pytest.mark.slow
def test_each_demand_names_a_module_and_a_test_that_exist() -> None:
    assert {demand.ask: list(missing(demand)) for demand in every() if list(missing(demand))} == {}


def test_a_module_or_test_that_is_gone_is_found() -> None:
    here = "tests/handbook/test_proposals.py"
    for code, test in (
        ("include/gone.py", f"{here}::test_a_module_or_test_that_is_gone_is_found"),
        (here, f"{here}::test_gone"),
        (here, "tests/handbook/test_gone.py::test_gone"),
        (here, f"{here}::missing"),
    ):
        assert len(list(missing(Demand("x", Met.YES, code=code, test=test)))) == 1


def test_what_is_not_met_says_why_and_what_is_met_shows_it() -> None:
    with pytest.raises(ValueError, match="why"):
        Demand("x", Met.PARTLY, code="a", test="b")
    with pytest.raises(ValueError, match="a module and a test"):
        Demand("x", Met.PARTLY, why="w", code="a")
    assert Demand("x", Met.NO, why="w").code == ""


def test_no_demand_is_listed_twice_in_a_proposal() -> None:
    for proposal, rows in demands().items():
        asked = [demand.ask for demand in rows]
        assert len(set(asked)) == len(asked), proposal
    assert sum(map(len, demands().values())) >= 120


def test_the_page_is_what_the_list_says() -> None:
    assert PAGE.read_text() == proposals_page(), "run `make docs-reference`"
