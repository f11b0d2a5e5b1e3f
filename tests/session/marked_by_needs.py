"""Marks each test by what it needs of the machine.

``make test-fast`` leaves out what needs anything. With ``--skip-missing`` a test is skipped where
what it needs is not installed, with the target that installs it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from local.kafka.jvm import JARS
from tests.session.needs import Need


@dataclass(frozen=True)
class Installed:
    """Whether a machine has what a need asks for.

    :param by: the target that installs it.
    """

    what: str
    by: str
    here: Callable[[], bool]


def _has_java() -> bool:
    return shutil.which("java") is not None


INSTALLED = {
    Need.BROKERS: Installed(
        "Java or Kafka", "make setup", lambda: _has_java() and any(JARS.glob("*.jar"))
    ),
    Need.SPARK: Installed("Java", "make setup", _has_java),
    Need.BROWSER: Installed(
        "Chromium", "make browser", lambda: shutil.which("chromium") is not None
    ),
}
"""Airflow and PostgreSQL come with the Python packages."""


def needs_of(item: pytest.Item) -> frozenset[Need]:
    """What a test needs, by its fixtures and theirs, and by its own markers."""
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    by_fixtures = {need for each in fixtures for need in getattr(each[-1].func, "needs", ())}
    return frozenset(need for need in Need if need in by_fixtures or item.get_closest_marker(need))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--skip-missing", action="store_true", help="skip tests whose needs are not installed"
    )


def pytest_configure(config: pytest.Config) -> None:
    for need in Need:
        config.addinivalue_line("markers", f"{need}: it needs {need}; mostly set by a fixture")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = {need: found for need, found in INSTALLED.items() if not found.here()}
    for item in items:
        for need in needs_of(item):
            item.add_marker(need.value)
            if need in missing and config.getoption("skip_missing"):
                reason = f"{missing[need].what} is missing: {missing[need].by} installs it"
                item.add_marker(pytest.mark.skip(reason=reason))
