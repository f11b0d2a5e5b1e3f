"""The last attempt for a finding: what came of it, why, and when another one may start. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rehome.domain.run.causes.cause import Cause
from rehome.domain.text import minute_text

FIRST_WAIT = timedelta(minutes=30)
LONGEST_WAIT = timedelta(days=1)
NEXT = (
    "No other run is started before it has closed and opened anew. To have it remedied, change "
    "what the reasons name (targets, caps, broker sets, or the watch rule), and trigger "
    "reassign_partitions; or set its policy to watch."
)

ALL_DONE = (
    "No other run is started before it has closed and opened anew. The plan has done all that it "
    "was to do: what is left takes a person, or more time."
)


class Attempted(enum.StrEnum):
    """What came of a run that was started for a finding."""

    UNDER_WAY = "under_way"  # or its plan is paused
    HANDED_OVER = "handed_over"  # its plan waits for a window
    PARTLY = "partly"  # its plan is done as far as its budget went: another one goes on
    TOO_LARGE = "too_large"  # its budget pays for nothing of what is left
    NOTHING_TO_MOVE = "nothing_to_move"  # its plan has no moves
    NOT_ENOUGH = "not_enough"  # its plan is done, and the finding is there still
    BY_PERSON = "by_person"  # rejected, or cancelled
    NO_ANSWER = "no_answer"  # to its proposal
    REFUSED = "refused"  # it has changed nothing
    FAILED = "failed"  # after it had begun, or its end is not known


AGAIN = frozenset({Attempted.TOO_LARGE, Attempted.REFUSED, Attempted.FAILED})
"""Another attempt may go better: it is made after a wait."""
FINAL = frozenset(
    {
        Attempted.NOTHING_TO_MOVE,
        Attempted.NOT_ENOUGH,
        Attempted.BY_PERSON,
        Attempted.NO_ANSWER,
    }
)
"""Another attempt would come to the same: none is made while the finding stays open."""


@dataclass(frozen=True, slots=True)
class LastAttempt:
    """The newest run that was started for a finding's kind and subject.

    :param opened_at: when the finding opened that it was started for.
    :param ended_at: None = it has not ended.
    :param plan_id: of its plan; "" = it has made none.
    :param cause: what has ended or refused it; None = nothing has, or that is not known.
    :param reasons: what its plan could not reach, a sentence each; the first ones.
    :param more: how many more there are.
    :param in_a_row: how many attempts, with this one, have had such an outcome.
    """

    run_id: str
    opened_at: datetime
    ended_at: datetime | None
    outcome: Attempted
    plan_id: str = ""
    cause: Cause | None = None
    reasons: tuple[str, ...] = ()
    more: int = 0
    in_a_row: int = 1

    @property
    def again_at(self) -> datetime | None:
        """No other attempt is made before; None = that is no matter of time."""
        if self.outcome not in AGAIN or self.ended_at is None:
            return None
        doubled: int = 2 ** min(self.in_a_row - 1, 10)
        return self.ended_at + min(FIRST_WAIT * doubled, LONGEST_WAIT)

    def holds(
        self,
        opened_at: datetime | None,
        now: datetime,
        *,
        by_person: bool = False,
        window_began: bool = False,
    ) -> bool:
        """Whether no other attempt is made now.

        :param opened_at: of the finding; another one may have opened since.
        :param by_person: a person has asked to try again.
        :param window_began: one is open, and its own run has left what was handed over.
        """
        if self.outcome in FINAL:
            return opened_at == self.opened_at
        if self.again_at is not None:
            return now < self.again_at and not by_person
        if self.outcome is Attempted.HANDED_OVER:
            return not window_began
        return self.outcome is not Attempted.PARTLY


def attempt_text(attempt: LastAttempt) -> str:
    """What came of it, why, and what comes next."""
    others = f"; and {attempt.more} more, on the page of its run" if attempt.more else ""
    because = f", because {'; '.join(attempt.reasons)}{others}" if attempt.reasons else ""
    return f"{what_came(attempt)}{because}. {next_step(attempt)}".rstrip()


def what_came(attempt: LastAttempt) -> str:
    """What came of it, without its reasons and without a full stop."""
    times = f" ({attempt.in_a_row} times in a row)" if attempt.in_a_row > 1 else ""
    cause = "" if attempt.cause is None else f": {attempt.cause.short.rstrip('.')}"
    text = _OUTCOMES[attempt.outcome].format(plan=attempt.plan_id, run=attempt.run_id)
    return f"{text}{times}{cause}"


def next_step(attempt: LastAttempt) -> str:
    """What happens next by itself, and what a person can do; "" = that is said elsewhere."""
    if attempt.again_at is not None:
        return (
            f"It is not tried again before {minute_text(attempt.again_at)}. To have it tried "
            "again now, trigger watch_clusters by hand."
        )
    if attempt.outcome is Attempted.NOT_ENOUGH and not attempt.reasons:
        return ALL_DONE
    return NEXT if attempt.outcome in FINAL else ""


_OUTCOMES: Mapping[Attempted, str] = {
    Attempted.UNDER_WAY: "Run {run} is under way, or its plan is paused: see its page",
    Attempted.HANDED_OVER: "Plan {plan} is handed over to the windows, see its page",
    Attempted.PARTLY: "Plan {plan} is done as far as its budget went",
    Attempted.TOO_LARGE: "Each partition that is left is larger than budget_bytes of plan {plan}",
    Attempted.NOTHING_TO_MOVE: "The remedy cannot help, as plan {plan} has found nothing to move",
    Attempted.NOT_ENOUGH: "The remedy could not do more, as plan {plan} is done",
    Attempted.BY_PERSON: "A person has rejected or cancelled what run {run} was to do",
    Attempted.NO_ANSWER: "No person has answered the proposal",
    Attempted.REFUSED: "The last attempt has changed nothing",
    Attempted.FAILED: "The last attempt has failed",
}
