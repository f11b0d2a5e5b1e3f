"""Findings of a dry run as one list, grouped by kind."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from include.account.findings import findings_of
from include.account.words.finding_words import (
    counted_text,
    found_sentence,
    group_line,
    names_text,
)
from include.domain.run.findings import Finding, Severity

GROWN = [
    Finding(
        Severity.WARNING,
        "drift",
        f"t-{number}",
        "has grown since the snapshot",
        "Plan anew.",
        detail=f"from 1 MB to {number} MB",
        more=3 if number == 11 else 0,
    )
    for number in range(12)
]
RIGHT = Finding(Severity.ERROR, "rights", "Alter on Cluster", "the right is lacking", code=31)
NOTE = Finding(Severity.INFO, "foreign", "x-0", "a reassignment is in flight")


def tried(*findings: Finding) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps({"findings": [asdict(f) for f in findings]}))
    return found


def test_findings_of_one_kind_are_one_row_with_the_names_behind_it_the_worst_first() -> None:
    right, grown, note = findings_of(tried(NOTE, *GROWN, RIGHT))
    assert (right.kind.severity, note.names) == (Severity.ERROR, ("x-0",))
    assert (grown.count, len(grown.names), grown.more) == (15, 12, 3)
    assert grown.names[2] == "t-2 (from 1 MB to 2 MB)"
    assert names_text(grown, 1) == "t-0 (from 1 MB to 0 MB) and 14 more"
    assert group_line(right) == "error: rights: Alter on Cluster: the right is lacking (31)."


def test_only_an_empty_list_has_nothing_that_speaks_against_the_plan() -> None:
    assert "nothing that speaks against" in found_sentence(findings_of(tried()))
    assert "nothing that speaks against" in found_sentence(findings_of(None))
    found = findings_of(tried(NOTE, *GROWN))
    assert counted_text(found) == "1 warning and 1 note"
    assert "speaks against" not in found_sentence(found)


def test_a_dry_run_of_an_earlier_version_has_no_details() -> None:
    earlier = {"severity": "warning", "check": "disk", "subject": "broker 3", "message": "full"}
    (group,) = findings_of({"findings": [earlier]})
    assert (group.names, group.count) == (("broker 3",), 1)
