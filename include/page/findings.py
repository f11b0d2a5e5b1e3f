"""Open findings of a watched cluster, as its page lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from include.domain.run.findings import Severity
from include.ledger.stores.watched.starts import StartRecord
from include.watching.finding import FindingRecord
from include.watching.finding_text import text_of, title_of
from include.watching.kinds import FindingKind
from include.watching.last_attempt import Attempted, LastAttempt, next_step, what_came
from include.watching.paused_plan import Outlook
from include.watching.paused_text import PausedText, paused_text


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
    def of(cls, found: LastAttempt) -> AttemptWords:
        """In words for people."""
        return cls(what_came(found), found.reasons, found.more, next_step(found))


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One open finding.

    :param started: the newest run that was started for it since it opened; None = none was.
    :param paused: what the plan of that run waits for; None = it is not paused.
    :param attempt: what came of the last one; None = none has ended.
    """

    title: str
    severity: Severity
    text: str
    opened_at: datetime
    started: StartRecord | None
    paused: PausedText | None = None
    attempt: AttemptWords | None = None


@dataclass(frozen=True, slots=True)
class PausedStart:
    """The start that has led to the paused plan of a cluster, or has gone on with it."""

    start: StartRecord
    outlook: Outlook


def _words(found: LastAttempt | None) -> AttemptWords | None:
    silent = (Attempted.UNDER_WAY, Attempted.PARTLY)
    return None if found is None or found.outcome in silent else AttemptWords.of(found)


def finding_lines(
    findings: Iterable[FindingRecord],
    starts: Iterable[StartRecord],
    paused: PausedStart | None = None,
    attempts: Mapping[tuple[FindingKind, str], LastAttempt] | None = None,
) -> list[FindingLine]:
    """A line for each open finding, in the given order.

    :param starts: of the cluster, the newest first.
    :param paused: of them, the one whose plan is paused; None = none is.
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
            (found := newest.get((each.kind, each.subject, each.opened_at))),
            paused_text(paused.outlook) if paused is not None and found == paused.start else None,
            _words((attempts or {}).get(each.key)),
        )
        for each in findings
        if each.opened_at is not None and each.open
    ]
