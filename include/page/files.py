"""A plan's files as the page reads them: there, not there yet, or out of reach."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from include.domain.plan.summary import PlanSummary, summary_from_json
from include.domain.time_range import TimeRange
from include.errors import RehomeError
from include.warehouse import PlanDirectory

SERVED = {
    "report.html": ("text/html", "the report"),
    "reassignment.json": ("application/json", "for kafka-reassign-partitions --execute"),
    "rollback.json": ("application/json", "the way back, in the same format"),
    "summary.json": ("application/json", "the plan in numbers"),
    "request.json": ("application/json", "what was asked for"),
    "gates.json": ("application/json", "what the gates found"),
    "dry_run.json": ("application/json", "what the dry run found"),
    "load.json": ("application/json", "what the load history knows, and how full disks will be"),
    "verification.json": ("application/json", "the proof of the end"),
    "leaders.json": ("application/json", "the elections of preferred leaders"),
    "drained.json": ("application/json", "what was found on the drained brokers"),
    "failure.json": ("application/json", "why no plan was made"),
}
"""Files that people may fetch: name → media type, and what is in it."""


class PlanFiles:
    """What a plan's directory held when it was read; make a new one to read it anew.

    :ivar problem: why the directory could not be read; "" = it could, as far as it was.
    """

    def __init__(self, plan_dir: str) -> None:
        self.uri = plan_dir
        self.problem = ""

    @cached_property
    def _directory(self) -> PlanDirectory | None:
        try:
            return PlanDirectory(self.uri)
        except (OSError, ValueError, ImportError) as error:  # fsspec: no such scheme, no driver
            self.problem = f"{self.uri} cannot be read: {error}"
            return None

    def json(self, name: str) -> Any:
        """The parsed file; None where there is none, or it is out of reach."""
        text = self.text(name)
        if text is None:
            return None
        try:
            import json

            return json.loads(text)
        except ValueError as error:
            self.problem = f"{self.uri}/{name} is damaged: {error}"
            return None

    def text(self, name: str) -> str | None:
        """The file; None where there is none, or it is out of reach."""
        directory = self._directory
        try:
            if directory is None or not directory.exists(name):
                return None
            return directory.read_text(name)
        except (OSError, RehomeError) as error:
            self.problem = f"{self.uri}/{name} cannot be read: {error}"
            return None

    @cached_property
    def summary(self) -> PlanSummary | None:
        """The plan in numbers."""
        content = self.json("summary.json")
        if content is None:
            return None
        content.pop("allow_replication_factor_change", None)
        return summary_from_json(content)

    @cached_property
    def dry_run(self) -> dict[str, Any] | None:
        """What the dry run found."""
        found: dict[str, Any] | None = self.json("dry_run.json")
        return found

    @property
    def predicted(self) -> TimeRange | None:
        """Time from the start of the plan to its end; None = not predicted, or without end."""
        found = (self.dry_run or {}).get("predicted")
        return TimeRange(found["least_s"], found["most_s"]) if found else None

    @cached_property
    def there(self) -> tuple[str, ...]:
        """Names of the files that people may fetch now."""
        directory = self._directory
        try:
            return tuple(
                name for name in SERVED if directory is not None and directory.exists(name)
            )
        except OSError as error:
            self.problem = f"{self.uri} cannot be read: {error}"
            return ()
