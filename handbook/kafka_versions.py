"""Writes docs/reference/kafka-versions.md: what came of the tests that run on every version.

kafka_versions.json is written by these tests (``make test-versions``), kafka_brokers.json by all
tests on brokers (``make test-brokers``).
"""

from __future__ import annotations

import json
import re
from collections import Counter
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
    """What came of all tests on brokers: by version, by their folder below tests/, by file."""
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
a time. A run that is ended early leaves tests of a folder that were not run.

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
    rows, notes = [], []
    for version, of_folders in found.items():
        files = [row for each in of_folders.values() for row in each["files"].values()]
        sums = [sum(map(count, files)) for count in (_passed_in, _failed_in, _skipped_in)]
        whole = {name: each for name, each in of_folders.items() if "tests" in each}
        left = sum(map(_left_in, whole.values()))
        rest = ", ".join(sorted(folders() - set(whole))) or "–"
        dates = sorted({row["date"] for row in files}) or ["–"]
        between = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        rows.append((version, *map(str, (*sums, left)), rest, between))
        for name, each in of_folders.items():
            why = sum((Counter(row["reasons"]) for row in each["files"].values()), Counter[str]())
            notes += [(version, name, reason, str(count)) for reason, count in sorted(why.items())]
            failed = (test for row in each["files"].values() for test in row["failed"])
            notes += [(version, name, f"fails: `{test}`", "1") for test in failed]
    columns = ("Kafka", "passed", "failed", "skipped", "not run", "folders not run", "on")
    shown = table(columns, rows)
    why_columns = ("Kafka", "folder", "skipped because, or fails", "tests")
    return f"{shown}\n\n{table(why_columns, notes)}\n" if notes else f"{shown}\n"


def _passed_in(file: Results) -> int:
    return int(file["passed"])


def _failed_in(file: Results) -> int:
    return len(file["failed"])


def _skipped_in(file: Results) -> int:
    return sum(file["reasons"].values())


def _left_in(folder: Results) -> int:
    """Tests of it that were not run; a file that is newer than its count has none of them."""
    ended = (_passed_in(f) + _failed_in(f) + _skipped_in(f) for f in folder["files"].values())
    return max(0, int(folder["tests"]) - sum(ended))
