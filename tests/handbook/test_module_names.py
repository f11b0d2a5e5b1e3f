"""Modules that the handbook names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE_PATH = re.compile(r"\b(?:tests|include|plugins|benchmarks|dags|spark_jobs)/[\w/.-]*\.py\b")
NAMES_EARLIER_MODULES = ROOT / "docs" / "decisions" / "036-the-house-rebuilt.md"
"""It says which modules there were before."""

PAGES = [
    page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if page != NAMES_EARLIER_MODULES
]


def missing_paths(text: str) -> list[str]:
    return [path for path in MODULE_PATH.findall(text) if not (ROOT / path).is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_of_a_module_leads_to_one(page: Path) -> None:
    assert missing_paths(page.read_text()) == []


def test_a_path_that_leads_nowhere_is_found() -> None:
    text = "`include/rehome/execution/decide.py`, [there](../tests/handbook/gone.py)."
    assert missing_paths(text) == ["tests/handbook/gone.py"]


def test_paths_of_modules_are_found_in_the_pages() -> None:
    found = [path for page in PAGES for path in MODULE_PATH.findall(page.read_text())]
    assert len(found) > 50
