"""Findings of gates and dry runs in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rehome.domain.run.findings import FindingGroup, Severity
from rehome.domain.text import count_text, join_names

NAMES_SHOWN = 5
_WORDS: Mapping[Severity, str] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFO: "note",
}


def counted_text(groups: Collection[FindingGroup]) -> str:
    """``1 error and 2 notes``, each kind counted once; "" = there is none."""
    counts = [
        count_text(number, _WORDS[severity])
        for severity in Severity
        if (number := sum(group.kind.severity is severity for group in groups))
    ]
    return join_names(counts)


def found_sentence(groups: Collection[FindingGroup]) -> str:
    """The head of a plan that may be run."""
    if not groups:
        return "Gates and dry run found no problems."
    return f"Gates and dry run found {counted_text(groups)}, and nothing that stops this plan."


def what_text(group: FindingGroup) -> str:
    """What is so of all of them: ``have grown since the snapshot`` with a broker's code."""
    code = f" ({group.kind.code})" if group.kind.code is not None else ""
    return f"{group.kind.message}{code}"


def names_text(group: FindingGroup, most: int = NAMES_SHOWN) -> str:
    """What they are about; of many, the first, and how many others there are."""
    left = group.count - len(group.names[:most])
    others = [f"{left:,} more"] if left else []
    return join_names([*group.names[:most], *others])


def group_line(group: FindingGroup) -> str:
    """All of it in one line."""
    remedy = f" {group.kind.remedy}" if group.kind.remedy else ""
    what = f"{group.kind.severity}: {group.kind.check}: {names_text(group)}: {what_text(group)}"
    return f"{what}.{remedy}"
