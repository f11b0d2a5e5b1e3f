"""Faults that are put back are found: by the script that shows each."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from tests.imports import TESTS
from tests.world.mutant_table import ALL, DOCUMENT, RESULT, SCRIPTS, table
from tests.world.mutants import Mutant
from world import (
    cases,
    cases_of_actors,
    cases_of_coincidence,
    cases_of_rare_seeds,
    cases_of_requests,
    cases_of_watching,
)
from world.judge.violations import Kind
from world.outcome import run
from world.script import Script

pytestmark = pytest.mark.slow


NAMED = {
    each
    for module in (
        cases,
        cases_of_actors,
        cases_of_coincidence,
        cases_of_rare_seeds,
        cases_of_requests,
        cases_of_watching,
    )
    for each in vars(module).values()
    if isinstance(each, Script)
}
"""Scripts of which tests/world/cases sees that they show nothing at all without a fault."""


@cache
def shown_without_faults(script: Script) -> frozenset[Kind]:
    return frozenset(found.kind for found in run(script, traced=False).violations)


def _named(mutant: Mutant) -> str:
    return mutant.name.replace(" ", "-")


def test_each_mutant_says_what_finds_it() -> None:
    assert {mutant.name for mutant in ALL} == SCRIPTS.keys()


def test_what_tests_on_brokers_leave_to_the_simulator_is_found_by_it() -> None:
    left = re.compile(r'mark\.simulated\(\s*"([^"]+)"')
    named = {name for path in TESTS.rglob("test_*.py") for name in left.findall(path.read_text())}
    assert named <= {mutant.name for mutant in ALL}
    assert len(named) == 3


@pytest.mark.parametrize("mutant", ALL, ids=_named)
def test_a_fault_is_found_by_its_script_which_shows_nothing_without_it(mutant: Mutant) -> None:
    script = SCRIPTS[mutant.name]
    with mutant.in_place():
        outcome = run(script, traced=False)
    assert mutant.kinds & {found.kind for found in outcome.violations}
    assert script in NAMED or not mutant.kinds & shown_without_faults(script)


def test_the_table_names_faults_that_are_put_back_and_is_what_was_measured() -> None:
    rows = json.loads(RESULT.read_text())
    assert set(rows) <= {mutant.name for mutant in ALL}
    assert len(rows) > 20
    assert table(rows) in DOCUMENT.read_text()
