"""Open findings of a watched cluster, as its page lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from include.domain.run.findings import Severity
from include.ledger.stores.watched.starts import StartRecord
from include.watching.finding import FindingRecord
from include.watching.words import text_of, title_of


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One open finding.

    :param started: the newest run that was started for it since it opened; None = none was.
    """

    title: str
    severity: Severity
    text: str
    opened_at: datetime
    started: StartRecord | None


def finding_lines(
    findings: Iterable[FindingRecord], starts: Iterable[StartRecord]
) -> list[FindingLine]:
    """A line for each open finding, in the given order.

    :param starts: of the cluster, the newest first.
    """
    newest: dict[tuple[str, str, datetime], StartRecord] = {}
    for start in starts:
        newest.setdefault((start.kind, start.subject, start.opened_at), start)
    return [
        FindingLine(
            title_of(each.kind),
            each.kind.severity,
            text_of(each),
            each.opened_at,
            newest.get((each.kind, each.subject, each.opened_at)),
        )
        for each in findings
        if each.opened_at is not None and each.open
    ]
