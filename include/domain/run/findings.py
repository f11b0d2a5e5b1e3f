"""What a check has found."""

from __future__ import annotations

import enum
from dataclasses import dataclass

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
        return f"{self.severity}: {self.check}: {self.subject}: {self.message}{code}.{remedy}"
