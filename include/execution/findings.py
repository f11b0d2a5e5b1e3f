"""What a dry run says, for people and as data."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any


class Severity(enum.StrEnum):
    """Whether a finding stops the run."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a dry run found.

    :param check: which check found it: verdict, rights, throttle, disk, drift, foreign, …
    :param code: Kafka's error code where a broker said it or would say it.
    :param subject: the partition, broker or right it is about.
    """

    severity: Severity
    check: str
    subject: str
    message: str
    remedy: str = ""
    code: int | None = None

    def __str__(self) -> str:
        code = f" ({self.code})" if self.code is not None else ""
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.severity}: {self.check}: {self.subject}: {self.message}{code}{remedy}"


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """Everything a dry run found.

    :param checks: the checks that were made, in order; those without findings passed.
    """

    plan_id: str
    plan_hash: str
    checks: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that stop the run."""
        return tuple(item for item in self.findings if item.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """Whether nothing stops the run."""
        return not self.errors

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types, for dry_run.json."""
        return {"ok": self.ok, **asdict(self)}


def describe(result: DryRunResult) -> str:
    """The checks with their outcome, each finding below its check."""
    verdict = "may run" if result.ok else "is refused"
    lines = [f"Dry run: plan {result.plan_id} {verdict}; nothing was changed."]
    for check in result.checks:
        found = [item for item in result.findings if item.check == check]
        worst = "refused" if any(f.severity is Severity.ERROR for f in found) else "passed"
        lines.append(f"  {worst:8} {check}")
        lines += [f"           {item}" for item in found]
    return "\n".join(lines)
