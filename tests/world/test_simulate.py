"""The gate: fixed seeds without anything new; and the same trace in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.processes import OTHER_HASHES
from world import simulate
from world.luck import script_of
from world.outcome import run
from world.script import Blow, What
from world.simulate import Tally, simulated

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FIXED = 200
OF_THE_DATE = 100
TRACED = range(1, 9)
HASHES = """
from tests.world.test_simulate import TRACED
from world.luck import script_of
from world.outcome import run
print(*(run(script_of(seed)).sha256 for seed in TRACED))
"""


@pytest.fixture(scope="module")
def fixed() -> Tally:
    return simulated(range(1, FIXED + 1))


def test_fixed_seeds_show_nothing(fixed: Tally) -> None:
    print(fixed.as_json(0))
    assert fixed.found == {}


def test_fixed_seeds_do_everything_that_a_script_can(fixed: Tally) -> None:
    """But for what no seed draws: ``rehome/test_elsewhere`` and scripts have it."""
    undrawn = {What.LED_ELSEWHERE, What.NEXT_WINDOW}
    drawn = {each.value for each in (*What, *Blow) if each not in undrawn}
    assert not drawn - fixed.done.keys()


def test_seeds_of_the_date_report_what_is_new() -> None:
    """Never a failure: what is new today is for people to look at."""
    first = 1_000_000 + 1000 * (datetime.now(UTC).toordinal() % 100_000)
    tally = simulated(range(first, first + OF_THE_DATE))
    for seed, found in sorted(tally.found.items()):
        print(f"NEW: seed {seed}: {'; '.join(found)}", file=sys.stderr)
    assert tally.seeds == OF_THE_DATE


def test_a_seed_has_the_same_trace_in_two_processes_whatever_strings_hash_to() -> None:
    places = os.pathsep.join([str(ROOT), str(ROOT / "plugins")])
    environment = {**os.environ, "PYTHONHASHSEED": OTHER_HASHES, "PYTHONPATH": places}
    done = subprocess.run(
        [sys.executable, "-c", HASHES],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert done.stdout.split() == [run(script_of(seed)).sha256 for seed in TRACED]


def test_two_seeds_are_two_runs() -> None:
    assert run(script_of(1)).sha256 != run(script_of(2)).sha256


def test_a_run_that_nobody_traces_ends_as_one_that_is() -> None:
    for seed in (1, 2, 3):
        traced, other = run(script_of(seed)), run(script_of(seed), traced=False)
        assert traced.sha256
        assert not other.sha256
        assert replace(traced, sha256="") == other


def test_what_is_committed_is_written_only_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, document = tmp_path / "simulate.json", tmp_path / "reliability.md"
    document.write_text(f"before\n{simulate.BEGINS}{simulate.ENDS}after\n")
    monkeypatch.setattr(simulate, "RESULT", result)
    monkeypatch.setattr(simulate, "DOCUMENT", document)
    simulate.main(["1", "--processes", "1", "--out", str(tmp_path / "other.json")])
    assert not result.exists()
    assert document.read_text() == f"before\n{simulate.BEGINS}{simulate.ENDS}after\n"
    simulate.main(["1", "--processes", "1", "--commit"])
    assert json.loads(result.read_text())["seeds"] == 1
    assert len(document.read_text().splitlines()) > 4
