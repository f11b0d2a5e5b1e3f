"""Faults that are put back are found: by the script that shows each."""

from __future__ import annotations

import json
import re

import pytest

from tests.imports import TESTS
from tests.world.mutant_table import ALL, DOCUMENT, RESULT, SCRIPTS, table
from tests.world.mutants import Mutant
from world.judge.violations import Kind
from world.outcome import run

pytestmark = pytest.mark.slow


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
    def shown() -> frozenset[Kind]:
        outcome = run(SCRIPTS[mutant.name], traced=False)
        return mutant.kinds & {found.kind for found in outcome.violations}

    with mutant.in_place():
        assert shown()
    assert not shown()


def test_the_table_names_faults_that_are_put_back_and_is_what_was_measured() -> None:
    rows = json.loads(RESULT.read_text())
    assert set(rows) <= {mutant.name for mutant in ALL}
    assert len(rows) > 20
    assert table(rows) in DOCUMENT.read_text()
