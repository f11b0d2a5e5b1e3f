"""What the wheel asks for fits the constraints of each of Airflow's versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.wheel import BETWEEN, LOWEST, NEWEST, Release, processor_s_of_resolving, resolved
from tests.session.tried import Outcome

LONGEST_S = 10.0

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("release", [LOWEST, BETWEEN, NEWEST], ids=str)
def test_it_fits_airflows_constraints(
    release: Release, python: str, tmp_path: Path, outcome: Callable[[Outcome], None]
) -> None:
    found = resolved(release, tmp_path, python=python).read_text()
    pins = dict(line.split("==") for line in found.splitlines() if line[:1].isalnum())
    assert pins["apache-airflow"] == release.version
    assert pins["pyspark"] == pins.get("pyspark-client", pins["pyspark"])
    outcome(Outcome(f"resolves-{release}-{python}", {"python": python, **_shown(pins)}))


def test_it_is_found_within_seconds(tmp_path: Path, outcome: Callable[[Outcome], None]) -> None:
    processor_s_of_resolving(tmp_path)
    took_s = processor_s_of_resolving(tmp_path)
    assert took_s <= LONGEST_S
    outcome(Outcome("resolving", {"seconds of processor": f"{took_s:.1f}"}))


def _shown(pins: dict[str, str]) -> dict[str, str]:
    names = (
        "apache-airflow",
        "pyspark",
        "great-expectations",
        "numpy",
        "pandas",
        "pyarrow",
        "protobuf",
    )
    return {name: pins[name] for name in names}
