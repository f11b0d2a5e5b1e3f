"""Markers of what tests need, and what is skipped where it is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.session.needs import Need, needs

ROOT = Path(__file__).resolve().parents[2]
OF_A_BROKER = "tests/cluster/test_gateway.py"


@pytest.fixture
@needs(Need.AIRFLOW)
def brought() -> None:
    """As if it brought one."""


@pytest.fixture
def leans(brought: None) -> None:
    """Needs what another fixture brings."""


def test_a_test_has_the_markers_of_its_fixtures_and_of_theirs(
    leans: None, request: pytest.FixtureRequest
) -> None:
    marked = {need for need in Need if request.node.get_closest_marker(need)}
    assert marked == {Need.AIRFLOW}


@pytest.mark.slow
def test_without_java_tests_on_brokers_are_skipped_and_name_the_target(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--skip-missing"]
    done = subprocess.run(
        [*command, OF_A_BROKER, "-m", "brokers"],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Java or Kafka is missing: make setup installs it" in done.stdout
    assert " passed" not in done.stdout
