"""Which test files share a process when `make test` runs two of them.

Files that need the same costly fixture go one after the other in the same process, so that it is
made once: the idle brokers of a second secured cluster take more of a small machine than its
tests, and so do the processes of a second Airflow. They come first, so that at the end there are
short files to fill both processes with.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

_ROOT = Path(__file__).resolve().parents[1]
_COSTLY = {
    "the secured cluster": re.compile(r"\b(secured_\w+|gateway_of)\b"),
    "Airflow": re.compile(r"\bworld: World\b"),
    "Spark": re.compile(r'\bSparkSession\b|usefixtures\("spark"\)'),
}


class ByCostlyFixture(LoadFileScheduling):
    """Keeps files whole, and files together that need the same costly fixture."""

    def _split_scope(self, nodeid: str) -> str:
        return costly_fixture(nodeid.split("::", 1)[0])


@cache
def costly_fixture(file: str) -> str:
    """What a test file shares its process for, or the file itself."""
    text = (_ROOT / file).read_text()
    return next((name for name, used in _COSTLY.items() if used.search(text)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    files = {item: item.nodeid.split("::", 1)[0] for item in items}
    items.sort(key=lambda item: costly_fixture(files[item]) == files[item])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByCostlyFixture:
    return ByCostlyFixture(config, log)
