"""The part of the tests that runs on every version of Kafka, and what came of it on each.

``make test-versions`` runs it, and writes handbook/kafka_versions.json, of which the handbook makes
docs/reference/kafka-versions.md.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from local.kafka.jvm import VERSION

RECORD = "REHOME_KAFKA_VERSIONS"
"""Environment variable: the file that outcomes go to; without it none are kept."""
LEVEL = "metadata.version"
"""Property of a test's report: the finalized level of the cluster that it ran on."""
PARTS = {
    "snapshot": ("cluster/snapshot/test_take_on_brokers.py",),
    "calls": ("cluster/test_gateway.py",),
    "dry run": (
        "execution/dry_run/test_dry_run_on_brokers.py",
        "execution/dry_run/test_controller_rules_on_brokers.py",
        "execution/dry_run/test_throttle_checks_on_brokers.py",
    ),
    "throttle": (
        "execution/throttle/test_set_up_on_brokers.py",
        "execution/throttle/test_coverage_on_brokers.py",
        "execution/throttle/test_sweep_on_brokers.py",
    ),
    "rates by broker": ("execution/throttle/test_rate_scope_on_brokers.py",),
    "cordon": ("execution/throttle/cordon/test_cordon_on_brokers.py",),
    "moves": (
        "execution/advance/test_advance_on_brokers.py",
        "execution/admission/test_rolling_on_brokers.py",
    ),
    "replication factor": ("execution/observation/test_out_of_isr_on_brokers.py",),
    "log dirs": (
        "execution/observation/log_dirs/test_log_dir_copies_on_brokers.py",
        "execution/control/test_owed_log_dir_copies_on_brokers.py",
    ),
    "other clients' reassignments": ("execution/foreign/test_cancel_foreign_on_brokers.py",),
    "leaders": ("execution/completion/test_preferred_leaders_on_brokers.py",),
    "verify": ("execution/completion/test_verify_on_brokers.py",),
    "whole runs": (
        "dags/drain/test_cordoned_drain.py",
        "dags/actions/test_log_dir_evacuated.py",
        "dags/actions/test_leader_actions.py",
    ),
    "what a version lacks": ("versions/test_lacking_on_brokers.py",),
}
"""Files below tests/, by what they show."""
_PART_OF = {f"tests/{file}": part for part, files in PARTS.items() for file in files}
_STARTED = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "versions: runs on every version of Kafka")
    config.stash[_STARTED] = monotonic()
    if RECORD in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcomes(), "kafka versions")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.split("::", 1)[0] in _PART_OF:
            item.add_marker("versions")


class _Outcomes:
    """Counts what came of each part, and writes it down at the end."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.reasons: dict[str, Counter[str]] = defaultdict(Counter)
        self.failed: list[str] = []
        self.skipped: set[str] = set()
        self.deselected = False
        self.level = 0

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.deselected |= any(item.nodeid.split("::", 1)[0] in _PART_OF for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = _PART_OF.get(report.nodeid.split("::", 1)[0])
        if part is None:
            return
        self.level = int(dict(report.user_properties).get(LEVEL, self.level))  # type: ignore[call-overload]
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
            self.counts[part]["failed"] += 1
        elif report.skipped:
            self.skipped.add(report.nodeid)
            self.counts[part]["skipped"] += 1
            self.reasons[part][str(report.longrepr[2]).removeprefix("Skipped: ")] += 1  # type: ignore[index]
        elif report.when == "teardown":  # the last of a test's reports
            self.counts[part]["passed"] += report.nodeid not in {*self.failed, *self.skipped}

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run that was ended, or had a part of the tests only, leaves the record as it is."""
        if exitstatus not in (0, 1) or self.counts.keys() != PARTS.keys() or self.deselected:
            return
        path = Path(os.environ[RECORD])
        kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        kept[VERSION] = {
            "date": f"{datetime.now(UTC):%Y-%m-%d}",
            LEVEL: self.level,
            "seconds": round(monotonic() - session.config.stash[_STARTED]),
            "parts": {
                part: {**self.counts[part], "reasons": dict(self.reasons[part])} for part in PARTS
            },
            "failed": sorted(self.failed),
        }
        path.write_text(json.dumps(dict(sorted(kept.items())), indent=2) + "\n")
