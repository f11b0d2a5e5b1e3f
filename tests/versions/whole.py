"""Every test on real brokers, on one version of Kafka, and what came of each folder of them.

``make test-brokers`` runs them, and writes handbook/kafka_brokers.json, of which the handbook makes
docs/reference/kafka-versions.md.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.kafka.jvm import VERSION

WHOLE_RECORD = "REHOME_KAFKA_BROKERS"
"""Environment variable: the file that outcomes go to; without it none are kept."""
BROKER_TESTS = "brokers and not long and not simulated"
"""Those of ``make test`` that need brokers."""
TESTS = Path("tests")
ENDED_BY_ITSELF = (
    pytest.ExitCode.OK,
    pytest.ExitCode.TESTS_FAILED,
    pytest.ExitCode.NO_TESTS_COLLECTED,
)


def pytest_configure(config: pytest.Config) -> None:
    if WHOLE_RECORD in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Folders(Path(os.environ[WHOLE_RECORD])), "broker tests")


def folder_of(test: str) -> str:
    """The folder of ``tests`` that a test is in; "." = in none."""
    parts = Path(test.split("::", 1)[0]).parts
    return parts[1] if len(parts) > 2 else "."


def whole_folders(asked: Iterable[str]) -> set[str]:
    """The folders of ``tests`` among what pytest was asked for."""
    paths = (Path(each) for each in asked)
    return {path.name for path in paths if path.parent == TESTS and path.is_dir()}


class Folders:
    """Counts what came of the tests of each folder, and writes it down at the end.

    :param record: the file.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._reasons: dict[str, Counter[str]] = defaultdict(Counter)
        self._failed: dict[str, set[str]] = defaultdict(set)
        self._skipped: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test, folder = report.nodeid, folder_of(report.nodeid)
        if report.failed:
            self._failed[folder].add(test)
        elif report.skipped and test not in self._skipped:
            self._skipped.add(test)
            self._counts[folder]["skipped"] += 1
            self._reasons[folder][str(report.longrepr[2]).removeprefix("Skipped: ")] += 1  # type: ignore[index]
        elif report.when == "teardown" and test not in self._failed[folder] | self._skipped:
            self._counts[folder]["passed"] += 1

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run that was ended, or had some tests of a folder only, leaves the record as it is."""
        asked = session.config.option
        some = asked.markexpr != BROKER_TESTS or asked.keyword or asked.lf or asked.deselect
        folders = whole_folders(session.config.args)
        if some or not folders or exitstatus not in ENDED_BY_ITSELF:
            return
        kept: dict[str, Any] = json.loads(self._record.read_text()) if self._record.exists() else {}
        version = kept.setdefault(VERSION, {})
        for folder in folders:
            version[folder] = {
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "passed": self._counts[folder]["passed"],
                "skipped": self._counts[folder]["skipped"],
                "reasons": dict(sorted(self._reasons[folder].items())),
                "failed": sorted(self._failed[folder]),
            }
        ordered = {each: dict(sorted(kept[each].items())) for each in sorted(kept)}
        self._record.write_text(json.dumps(ordered, indent=2) + "\n")
