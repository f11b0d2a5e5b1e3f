"""What was tried where: written down for the handbook, by the tests that try it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

RECORD = "REHOME_RECORD"
"""Environment variable: the file that outcomes go to; without it none are kept."""


@dataclass(frozen=True)
class Outcome:
    """Something that was tried, and has worked.

    :param trial: its name in handbook/installations.yaml.
    :param versions: what it was tried with.
    """

    trial: str
    versions: Mapping[str, str] = field(default_factory=dict)


def versions_of(*packages: str) -> dict[str, str]:
    """Of packages in the tests' own environment."""
    return {name: version(name) for name in packages}


@pytest.fixture
def outcome() -> Callable[[Outcome], None]:
    """Keeps what has worked, with the date; what fails keeps its earlier date."""
    return _keep


def _keep(outcome: Outcome) -> None:
    if RECORD not in os.environ:
        return
    path = Path(os.environ[RECORD])
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept[outcome.trial] = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "python": platform.python_version(),
        "versions": dict(outcome.versions),
    }
    path.write_text(json.dumps(dict(sorted(kept.items())), indent=2) + "\n")
