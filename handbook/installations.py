"""Writes docs/reference/installations.md: where Rehome was tried, with which versions, and when.

Trials are entries of installations.yaml, each with its test; tried.json has what came of them,
written by these tests (``make test-airflows``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from handbook.markdown import table
from handbook.sources import ROOT

OUTCOMES = ROOT / "handbook" / "tried.json"
_ENTRIES = ROOT / "handbook" / "installations.yaml"
NOT_YET = "not yet"


@dataclass(frozen=True, slots=True)
class Trial:
    """Something that a test tries.

    :param test: path and name of the test, as pytest names it, without its parameters.
    """

    trial: str
    what: str
    test: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Something that was looked at once, by hand, or in part."""

    what: str
    how: str
    date: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Something that does not work, or is refused."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Installations:
    """All that installations.yaml says."""

    tried: tuple[Trial, ...]
    checked: tuple[Checked, ...]
    unsupported: tuple[Unsupported, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a trial: it has worked, on this day, with these versions."""

    date: str
    python: str
    versions: Mapping[str, str] = field(default_factory=dict)


def installations() -> Installations:
    """The entries."""
    read: Mapping[str, Any] = yaml.load(_ENTRIES.read_text(), Loader=yaml.BaseLoader)
    return Installations(
        tuple(Trial(**row) for row in read["tried"]),
        tuple(Checked(**row) for row in read["checked"]),
        tuple(Unsupported(**row) for row in read["unsupported"]),
    )


def outcomes() -> dict[str, Tried]:
    """What came of the trials, by their names."""
    return {name: Tried(**row) for name, row in json.loads(OUTCOMES.read_text()).items()}


def installations_page() -> str:
    """The page."""
    said, came = installations(), outcomes()
    tried = [(row.what, *_came(came.get(row.trial)), f"`{row.test}`") for row in said.tried]
    checked = [(row.what, row.how, row.date) for row in said.checked]
    return f"""# Where Rehome was tried

The wheel accepts ranges of versions. These were tried: each row is a test that
`make test-airflows` runs, and the day on which it last passed. *{NOT_YET}* = it has not passed
since the row is here.

{table(("what", "passed", "with", "test"), tried)}

## Only checked

{table(("what", "how", "when"), checked)}

## Not supported

{table(("what", "why"), [(row.what, row.why) for row in said.unsupported])}
"""


def _came(tried: Tried | None) -> tuple[str, str]:
    if tried is None:
        return NOT_YET, "–"
    versions = {"python": tried.python, **tried.versions}
    return tried.date, ", ".join(f"{name} {version}" for name, version in versions.items())
