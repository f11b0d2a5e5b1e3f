"""Writes docs/reference/kafka-versions.md: what came of the tests that run on every version.

kafka_versions.json is written by these tests (``make test-versions``), kafka_brokers.json by all
tests on brokers (``make test-brokers``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from handbook.markdown import table
from handbook.sources import ROOT

RESULTS = ROOT / "handbook" / "kafka_versions.json"
OF_ALL = ROOT / "handbook" / "kafka_brokers.json"
_LEVEL = "metadata.version"

Results = Mapping[str, Any]


def _number(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def results() -> Results:
    """What came of each version, the oldest first."""
    read: dict[str, Any] = json.loads(RESULTS.read_text())
    return {version: read[version] for version in sorted(read, key=_number)}


def results_of_all() -> Results:
    """What came of all tests on brokers: by version, then by their folder below tests/."""
    read: dict[str, Any] = json.loads(OF_ALL.read_text())
    return {version: read[version] for version in sorted(read, key=_number)}


def folders() -> set[str]:
    """Those below tests/, which ``make test-brokers`` runs one by one."""
    return {each.name for each in (ROOT / "tests").iterdir() if any(each.glob("**/test_*.py"))}


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
{_failed(found)}
## Every test on brokers

`make test-brokers` runs every test of `make test` that needs brokers on a version, a folder at
a time.

{_whole(results_of_all())}"""


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


def _whole(found: Results) -> str:
    if not found:
        return "Not run yet.\n"
    rows, reasons = [], []
    for version, by_folder in found.items():
        days = sorted({each["date"] for each in by_folder.values()})
        sums = [sum(each[what] for each in by_folder.values()) for what in ("passed", "skipped")]
        failed = [test for each in by_folder.values() for test in each["failed"]]
        rest = sorted(folders() - set(by_folder))
        counts = (str(sums[0]), str(len(failed)), str(sums[1]))
        rows.append((version, *counts, ", ".join(rest) or "–", days[-1]))
        reasons += [
            (version, folder, reason, str(count))
            for folder, each in by_folder.items()
            for reason, count in each["reasons"].items()
        ]
        reasons += [(version, test.split("/")[1], f"fails: `{test}`", "1") for test in failed]
    shown = table(("Kafka", "passed", "failed", "skipped", "folders not run", "last on"), rows)
    why = ("Kafka", "folder", "skipped because, or fails", "tests")
    return f"{shown}\n\n{table(why, reasons)}\n" if reasons else f"{shown}\n"
