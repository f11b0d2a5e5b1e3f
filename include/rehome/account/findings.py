"""What gates and the newest dry run of a plan have found, as one list for everybody who shows it.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehome.domain.run.findings import Finding, FindingGroup, Severity, group_findings

Gates = Iterable[Mapping[str, Any]]
"""As ``gates.json`` has them."""


def findings_of(tried: Mapping[str, Any] | None, gates: Gates = ()) -> tuple[FindingGroup, ...]:
    """By kind, the worst first.

    :param tried: ``dry_run.json``; None = there was no dry run.
    """
    by_dry_run = map(Finding.from_json, (tried or {}).get("findings", ()))
    return group_findings([*_of_gates(gates), *by_dry_run])


def _of_gates(gates: Gates) -> Iterator[Finding]:
    """Rules that do not hold: of a gate that stops nothing, what the plan was made without."""
    for gate in gates:
        binding = gate.get("binding", True)
        for outcome in gate["outcomes"]:
            if outcome["status"] != "passed":
                yield from _of_rule(f"gate on the {gate['gate']}", outcome, binding=binding)


def _of_rule(check: str, outcome: Mapping[str, Any], *, binding: bool) -> Iterator[Finding]:
    rule = outcome["name"].replace("_", " ")
    crashed = outcome["status"] == "crashed"
    what = f"the check that {rule} has crashed" if crashed else f"does not hold: {rule}"
    severity = Severity.ERROR if binding else Severity.WARNING
    less = "" if binding else "; the plan was made without the data that it checks"
    rows = outcome["offending_rows"] or [outcome.get("exception") or outcome["table"]]
    for place, row in enumerate(rows, start=1):
        more = max(0, outcome["offending_count"] - len(rows)) if place == len(rows) else 0
        yield Finding(severity, check, row, f"{what}{less}", outcome["remedy"], more=more)
