"""Open findings of a watched cluster, as its page lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from include.domain.run.findings import Severity
from include.ledger.stores.watched.starts import StartRecord
from include.watching.finding import About, FindingRecord
from include.watching.finding_text import text_of, title_of
from include.watching.paused_plan import Outlook
from include.watching.paused_text import PausedText, paused_text
from include.watching.stays_open import StaysOpen, next_step, what_came


@dataclass(frozen=True, slots=True)
class StayingWords:
    """Why a finding stays open.

    :param reasons: a sentence each; ``more``: how many are left out.
    :param next_step: what happens next, and what a person can do.
    """

    text: str
    reasons: tuple[str, ...]
    more: int
    next_step: str

    @classmethod
    def of(cls, found: StaysOpen) -> StayingWords:
        """In words for people."""
        text = f"The finding stays open: {what_came(found)}"
        return cls(text, found.reasons, found.more, next_step(found))


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One open finding.

    :param started: the newest run that was started for it since it opened; None = none was.
    :param paused: what the plan of that run waits for; None = it is not paused.
    :param stays_open: why it is open though that run has ended; None = that is not so, or not yet.
    """

    title: str
    severity: Severity
    text: str
    opened_at: datetime
    started: StartRecord | None
    paused: PausedText | None = None
    stays_open: StayingWords | None = None


@dataclass(frozen=True, slots=True)
class PausedStart:
    """The start that has led to the paused plan of a cluster, or has gone on with it."""

    start: StartRecord
    outlook: Outlook


def finding_lines(
    findings: Iterable[FindingRecord],
    starts: Iterable[StartRecord],
    paused: PausedStart | None = None,
    stays_open: Mapping[About, StaysOpen] | None = None,
) -> list[FindingLine]:
    """A line for each open finding, in the given order.

    :param starts: of the cluster, the newest first.
    :param paused: of them, the one whose plan is paused; None = none is.
    :param stays_open: findings that are open though their run has ended.
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
            StayingWords.of(why) if (why := (stays_open or {}).get(each.about)) else None,
        )
        for each in findings
        if each.opened_at is not None and each.open
    ]
