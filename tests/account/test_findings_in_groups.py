"""Findings of a dry run as one list, grouped by kind."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rehome.account.findings import findings_of
from rehome.account.words.finding_words import (
    counted_text,
    found_sentence,
    group_line,
    names_text,
)
from rehome.domain.run.findings import Finding, Severity

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
    assert "no problems" in found_sentence(findings_of(tried()))
    assert "no problems" in found_sentence(findings_of(None))
    found = findings_of(tried(NOTE, *GROWN))
    assert counted_text(found) == "1 warning and 1 note"
    assert "no problems" not in found_sentence(found)


def test_a_dry_run_of_an_earlier_version_has_no_details() -> None:
    earlier = {"severity": "warning", "check": "disk", "subject": "broker 3", "message": "full"}
    (group,) = findings_of({"findings": [earlier]})
    assert (group.names, group.count) == (("broker 3",), 1)


def gate(name: str, *outcomes: dict[str, Any], binding: bool = True) -> dict[str, Any]:
    return {"gate": name, "passed": not outcomes, "binding": binding, "outcomes": [*outcomes]}


def rule(name: str, status: str, *rows: str, count: int = 0, exception: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "table": "brokers",
        "status": status,
        "remedy": "Look at it.",
        "offending_count": count or len(rows),
        "offending_rows": [*rows],
        "exception": exception,
    }


def test_what_gates_have_found_is_in_the_same_list() -> None:
    alive = rule("every_broker_is_alive", "failed", "broker 3", "broker 4", count=9)
    gates = [
        gate("snapshot", rule("racks_are_known", "passed"), alive),
        gate("history", rule("bytes_in_are_known", "failed", "t-0"), binding=False),
        gate("plan", rule("no_broker_twice", "crashed", exception="no such column")),
    ]
    broken, crashed, thin, note = findings_of(tried(NOTE), gates)
    assert (broken.kind.check, broken.kind.severity) == ("gate on the snapshot", Severity.ERROR)
    assert (broken.names, broken.count) == (("broker 3", "broker 4"), 9)
    assert broken.kind.message == "does not hold: every broker is alive"
    assert crashed.names == ("no such column",)
    assert "has crashed" in crashed.kind.message
    assert thin.kind.severity is Severity.WARNING
    assert thin.kind.message.endswith("the plan was made without the data that it checks")
    assert note.names == ("x-0",)


def test_gates_that_have_passed_find_nothing() -> None:
    assert findings_of(None, [gate("plan", rule("no_broker_twice", "passed"))]) == ()
