"""Writes docs/reference/kafka-versions.md: what came of the tests that run on every version.

kafka_versions.json is written by these tests (``make test-versions``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from handbook.markdown import table
from handbook.sources import ROOT

RESULTS = ROOT / "handbook" / "kafka_versions.json"
_LEVEL = "metadata.version"

Results = Mapping[str, Any]


def results() -> Results:
    """What came of each version, the oldest first."""
    read: dict[str, Any] = json.loads(RESULTS.read_text())
    return dict(sorted(read.items(), key=lambda row: [int(part) for part in row[0].split(".")]))


def versions() -> list[str]:
    """Those that ``make test-versions`` runs, as the Makefile has them."""
    (named,) = re.findall(r"^VERSIONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return str(named).split()


def kafka_versions_page() -> str:
    """The page."""
    found = results()
    missing = [version for version in versions() if version not in found]
    names = list(dict.fromkeys(part for each in found.values() for part in each["parts"]))
    rows = [
        (
            version,
            str(each[_LEVEL]),
            *(str(_sum(each, outcome)) for outcome in ("passed", "failed", "skipped")),
            f"{each['seconds'] / 60:.0f} min",
            each["date"],
        )
        for version, each in found.items()
    ]
    parts = [(name, *(_cell(each["parts"].get(name)) for each in found.values())) for name in names]
    columns = ("Kafka", _LEVEL, "passed", "failed", "skipped", "took", "on")
    return f"""# Versions of Kafka

A marked part of the tests on real brokers runs on each of these versions (`make test-versions`),
on a new cluster with the version's newest {_LEVEL}. A skipped test is of what the version cannot
do; [what a version lacks](../execution.md#versions) says what a plan there does instead, and that
the dry run says so.{_not_yet(missing)}

{table(columns, rows)}

## By part

Passed, and of what is beside that: f = failed, s = skipped.

{table(("part", *found), parts)}

## What is skipped, and why

{table(("before", "part", "tests", "on"), _skipped(found))}
{_failed(found)}"""


def _not_yet(missing: Sequence[str]) -> str:
    return f" Not run yet: {', '.join(missing)}." if missing else ""


def _sum(each: Results, outcome: str) -> int:
    return sum(part.get(outcome, 0) for part in each["parts"].values())


def _cell(part: Results | None) -> str:
    if part is None:
        return "–"
    beside = [f"{part[o]} {o[0]}" for o in ("failed", "skipped") if part.get(o)]
    return ", ".join([str(part.get("passed", 0)), *beside])


def _skipped(found: Results) -> list[tuple[str, str, str, str]]:
    by_reason: dict[tuple[str, str], dict[str, int]] = {}
    for version, each in found.items():
        for name, part in each["parts"].items():
            for reason, count in part["reasons"].items():
                by_reason.setdefault((reason, name), {})[version] = count
    return [
        (reason.removeprefix("before "), name, str(max(counts.values())), ", ".join(counts))
        for (reason, name), counts in sorted(by_reason.items())
    ]


def _failed(found: Results) -> str:
    rows = [(version, f"`{test}`") for version, each in found.items() for test in each["failed"]]
    return f"\n## What fails\n\n{table(('Kafka', 'test'), rows)}\n" if rows else ""
