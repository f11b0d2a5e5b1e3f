"""What a check has found."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

SETTINGS_CHECK = "settings"
"""The check for caps, broker sets and targets that changed since the plan was made."""


class Severity(enum.StrEnum):
    """How bad a finding is, the worst first. In a dry run an error stops the run."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a dry run found.

    :param check: which check found it: verdict, rights, throttle, disk, drift, foreign, …
    :param code: Kafka's error code where a broker said it or would say it.
    :param subject: the partition, broker or right it is about.
    :param message: what is so of it, and of every other subject of its kind.
    :param detail: the figures of this one; "" = there are none.
    :param more: so many others of its kind are not listed.
    :param what: the name of what a dry run found; "" = not known, as of an earlier Rehome.
    """

    severity: Severity
    check: str
    subject: str
    message: str
    remedy: str = ""
    code: int | None = None
    detail: str = ""
    more: int = 0
    what: str = ""

    def __str__(self) -> str:
        code = f" ({self.code})" if self.code is not None else ""
        remedy = f" {self.remedy}" if self.remedy else ""
        said = f"{self.message} {self.detail}".rstrip()
        more = f" And {self.more} more of this kind." if self.more else ""
        return f"{self.severity}: {self.check}: {self.subject}: {said}{code}.{more}{remedy}"

    @property
    def kind(self) -> FindingOfKind:
        """What all findings share that are one in a list."""
        return FindingOfKind(self.severity, self.check, self.message, self.remedy, self.code)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Finding:
        """One of dry_run.json; an earlier Rehome has not written every field."""
        return cls(**{**content, "severity": Severity(content["severity"])})


class FindingOfKind(NamedTuple):
    """A finding without what it is about."""

    severity: Severity
    check: str
    message: str
    remedy: str
    code: int | None


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one kind.

    :param names: what they are about, each with its figures where there are any.
    :param more: so many others, which are not listed.
    """

    kind: FindingOfKind
    names: tuple[str, ...]
    more: int = 0

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.names) + self.more


def group_findings(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    """A group for each kind, the worst first, else as they came."""
    by_kind: dict[FindingOfKind, list[Finding]] = {}
    for each in findings:
        by_kind.setdefault(each.kind, []).append(each)
    groups = [
        FindingGroup(kind, tuple(map(_name, same)), sum(each.more for each in same))
        for kind, same in by_kind.items()
    ]
    order = list(Severity)
    return tuple(sorted(groups, key=lambda group: order.index(group.kind.severity)))


def _name(finding: Finding) -> str:
    return f"{finding.subject} ({finding.detail})" if finding.detail else finding.subject
