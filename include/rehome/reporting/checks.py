"""Gates and dry run of a plan as its report shows them: each check with what it found."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.domain.run.findings import FindingGroup, Severity
from rehome.reporting.data import ReportData


@dataclass(frozen=True, slots=True)
class Check:
    """One check, or gate, with what it found. ``outcome``: passed, warning or refused."""

    name: str
    outcome: str
    findings: tuple[FindingGroup, ...]


_OUTCOMES = {Severity.ERROR: "refused", Severity.WARNING: "warning", Severity.INFO: "passed"}


def checks_of(data: ReportData) -> list[Check]:
    """Gates that have found something, and each check of the dry run, in their order."""
    checks, listed = [], (data.account.files.tried or {}).get("checks", ())
    every = data.account.findings
    gates = dict.fromkeys(g.kind.check for g in every if g.kind.check not in listed)
    for name in (*gates, *listed):
        groups = tuple(group for group in every if group.kind.check == name)
        worst = _OUTCOMES[groups[0].kind.severity] if groups else "passed"  # the worst is first
        checks.append(Check(name, worst, groups))
    return checks
