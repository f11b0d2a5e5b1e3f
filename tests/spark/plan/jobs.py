"""The plan job, called in this process as spark-submit calls it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rehome.warehouse import PlanDirectory, Warehouse
from spark_jobs import plan as job
from tests.quality.snapshots import Rows

DRAIN = {"action": "drain", "brokers": [4], "throttle": 1_000_000}
TO_CARRY_OUT = ("summary.json", "moves.parquet", "reassignment.json", "rollback.json")


class Job:
    """One run's input and output."""

    def __init__(self, directory: Path) -> None:
        self.warehouse = Warehouse(directory.as_uri())
        self.request_file = directory / "request.json"
        self.out = PlanDirectory(f"{directory.as_uri()}/plans/p1")

    def arguments(self, rows: Rows, request: Any) -> list[str]:
        snapshot = replace(rows.snapshot(), taken_at=datetime.now(UTC))
        text = request if isinstance(request, str) else json.dumps(request)
        self.request_file.write_text(text)
        return [
            *("--snapshot", self.warehouse.write_snapshot(snapshot)),
            *("--request", str(self.request_file)),
            *("--out", self.out.uri),
        ]

    def run(self, rows: Rows, request: Any, extra: Sequence[str] = ()) -> int:
        return job.main([*self.arguments(rows, request), *extra])

    def failure(self) -> dict[str, Any]:
        assert not [name for name in TO_CARRY_OUT if self.out.exists(name)]
        content: dict[str, Any] = self.out.read_json("failure.json")
        return content


def must_not_plan(*_: object, **__: object) -> None:
    """Replaces the planner of the job's own process."""
    raise AssertionError("the job has planned in its own process")
