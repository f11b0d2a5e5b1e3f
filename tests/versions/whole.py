"""Every test on real brokers, on one version of Kafka, and what came of each file of them.

``make test-brokers`` runs them, and writes handbook/kafka_brokers.json, of which the handbook makes
docs/reference/kafka-versions.md. A file is written down as soon as its last test has ended: a run
that is ended early keeps the others.

``make test`` writes the same with REHOME_KAFKA_BROKERS set: of its tests those on brokers count.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from local.kafka.jvm import VERSION

WHOLE_RECORD = "REHOME_KAFKA_BROKERS"
"""Environment variable: the file that outcomes go to; without it none are kept."""
ALL_TESTS = "not long and not simulated"
"""Those of ``make test``."""
BROKER_TESTS = f"brokers and {ALL_TESTS}"
"""Those of them that need brokers."""
TESTS = Path("tests")
_LIST = "broker tests"


def pytest_configure(config: pytest.Config) -> None:
    """One process counts, and with xdist the others run the tests: each lists which count.

    A pytest that a test starts is another run: it does not see the variable.
    """
    worker = getattr(config, "workerinput", None)
    record = os.environ.pop(WHOLE_RECORD, None)
    if worker is not None and _LIST in worker:
        config.pluginmanager.register(_Lister(Path(worker[_LIST])), _LIST)
    elif worker is None and record is not None:
        config.pluginmanager.register(FileOutcomes(Path(record).absolute()), _LIST)


def on_brokers(session: pytest.Session) -> list[str]:
    """Those of a run's tests that need brokers."""
    return [item.nodeid for item in session.items if item.get_closest_marker("brokers")]


class _Lister:
    """Lists those tests in a file, which no report of a process of tests could tell in time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @pytest.hookimpl(tryfirst=True)  # before the other process learns that this one has its tests
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._path.write_text(json.dumps(on_brokers(session)))


def file_of_test(test: str) -> str:
    """The file that a test is in."""
    return test.split("::", 1)[0]


def folder_of(file: str) -> str:
    """The folder of ``tests`` that a file is in; "." = in none."""
    parts = Path(file).parts
    return parts[1] if len(parts) > 2 else "."


def whole_folders(asked: Iterable[str]) -> set[str]:
    """The folders of ``tests`` among what pytest was asked for; all that have tests of all."""
    paths = {Path(each) for each in asked}
    if TESTS in paths:
        paths |= {path for path in TESTS.iterdir() if any(path.rglob("test_*.py"))}
    return {path.name for path in paths if path.parent == TESTS and path.is_dir()}


class FileOutcomes:
    """Counts what came of the tests of each file, and writes it down when its last one has ended.

    :param record: the file of outcomes: version → folder of ``tests`` → how many tests it has, once
        it was asked for as a whole, and what came of its files.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        self._lists = TemporaryDirectory()
        self._collected = False
        self._is_broken = False
        self._waiting: dict[str, set[str]] = defaultdict(set)
        self._passed: Counter[str] = Counter()
        self._failed: dict[str, set[str]] = defaultdict(set)
        self._skipped: dict[str, dict[str, str]] = defaultdict(dict)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has tests that nothing knows of: nothing is written."""
        self._is_broken |= report.failed

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.expect(session.config, on_brokers(session))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_LIST] = str(Path(self._lists.name) / node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Of each process of tests: all have the same."""
        self.expect(node.config, json.loads(Path(node.workerinput[_LIST]).read_text()))

    def pytest_unconfigure(self) -> None:
        self._lists.cleanup()

    def expect(self, config: pytest.Config, tests: Sequence[str]) -> None:
        """Wait for these tests, unless only some of a file were asked for.

        :param tests: those on brokers.
        """
        option, asked = config.option, config.args
        last = getattr(option, "lf", False)  # without pytest's cache there is no such option
        some = option.keyword or last or option.deselect or option.ignore or option.ignore_glob
        some = some or option.markexpr not in (ALL_TESTS, BROKER_TESTS)
        if self._collected or self._is_broken or some or any("::" in each for each in asked):
            return
        self._collected = True
        for test in tests:
            self._waiting[file_of_test(test)].add(test)
        with self._kept() as folders:
            for folder in whole_folders(asked):
                before = folders.get(folder, {"files": {}})["files"]
                there = {file: row for file, row in before.items() if file in self._waiting}
                count = sum(folder_of(file_of_test(test)) == folder for test in tests)
                folders[folder] = {"tests": count, "files": there}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test, file = report.nodeid, file_of_test(report.nodeid)
        if test not in self._waiting.get(file, ()):
            return
        if report.failed:
            self._failed[file].add(test)
        elif report.skipped:
            self._skipped[file][test] = str(report.longrepr[2]).removeprefix("Skipped: ")  # type: ignore[index]
        if report.when in ("setup", "call"):  # else the teardown, or its process has crashed
            return
        if test not in self._failed[file] and test not in self._skipped[file]:
            self._passed[file] += 1
        self._waiting[file].remove(test)
        if not self._waiting[file]:
            self._write(file)

    def _write(self, file: str) -> None:
        with self._kept() as folders:
            folders.setdefault(folder_of(file), {"files": {}})["files"][file] = {
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
                "passed": self._passed[file],
                "reasons": dict(sorted(Counter(self._skipped[file].values()).items())),
                "failed": sorted(self._failed[file]),
            }

    @contextmanager
    def _kept(self) -> Iterator[dict[str, Any]]:
        """What is written down of this version, to be changed."""
        kept: dict[str, Any] = json.loads(self._record.read_text()) if self._record.exists() else {}
        yield kept.setdefault(VERSION, {})
        self._record.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
