"""Open findings of a watched cluster, as its page lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rehome.domain.run.findings import Severity
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.stores.watched.starts import StartRecord
from rehome.watching.finding_text import text_of, title_of
from rehome.watching.last_attempt import LastAttempt, next_step, what_came


@dataclass(frozen=True, slots=True)
class AttemptWords:
    """What came of the last attempt.

    :param reasons: a sentence each; ``more``: how many are left out.
    :param next_step: what happens next, and what a person can do.
    """

    text: str
    reasons: tuple[str, ...]
    more: int
    next_step: str

    @classmethod
    def of(cls, attempt: LastAttempt) -> AttemptWords:
        """In words for people."""
        return cls(what_came(attempt), attempt.reasons, attempt.more, next_step(attempt))


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One open finding.

    :param started: the newest run that was started for it since it opened; None = none was.
    :param attempt: what has come of the last one; None = there was none.
    """

    title: str
    severity: Severity
    text: str
    opened_at: datetime
    started: StartRecord | None
    attempt: AttemptWords | None = None


def finding_lines(
    findings: Iterable[FindingRecord],
    starts: Iterable[StartRecord],
    attempts: Mapping[tuple[FindingKind, str], LastAttempt],
) -> list[FindingLine]:
    """A line for each open finding, in the given order.

    :param starts: of the cluster, the newest first.
    :param attempts: the last one for each kind and subject.
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
            AttemptWords.of(attempts[each.key]) if each.key in attempts else None,
        )
        for each in findings
        if each.opened_at is not None and each.open
    ]
