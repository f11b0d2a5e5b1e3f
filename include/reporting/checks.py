"""The dry run of a plan as its report shows it: each check with what it found."""

from __future__ import annotations

from dataclasses import dataclass

from include.account.findings import findings_of
from include.domain.run.findings import FindingGroup, Severity
from include.reporting.data import ReportData


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the dry run with what it found. ``outcome``: passed, warning or refused."""

    name: str
    outcome: str
    findings: tuple[FindingGroup, ...]


_OUTCOMES = {Severity.ERROR: "refused", Severity.WARNING: "warning", Severity.INFO: "passed"}


def findings_in(data: ReportData) -> tuple[FindingGroup, ...]:
    """Of the account; of a plan that the ledger has no record of, by its own files."""
    return data.account.findings if data.account is not None else findings_of(data.dry_run)


def checks_of(data: ReportData) -> list[Check]:
    """Each check of the dry run, in the order of the checks."""
    checks = []
    for name in (data.dry_run or {}).get("checks", ()):
        found = tuple(group for group in findings_in(data) if group.kind.check == name)
        worst = _OUTCOMES[found[0].kind.severity] if found else "passed"  # the worst is first
        checks.append(Check(name, worst, found))
    return checks
