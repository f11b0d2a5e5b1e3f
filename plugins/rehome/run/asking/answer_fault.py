"""Why an answer of a person's approves nothing, as types. ``words.answer_words`` says it."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class AnswerFault(enum.StrEnum):
    """Why an answer approves nothing."""

    SHOWN_NOT_KNOWN = "shown_not_known"
    """The ledger has no question for it."""
    ANSWERED_BEFORE = "answered_before"
    NO_PERSON = "no_person"
    """Airflow does not say who has answered."""
    OTHER_TEXT = "other_text"
    NO_OPTION = "no_option"
    CHANGED = "changed"
    """What would run is another by now."""
    PROPOSAL_CHANGED = "proposal_changed"
    FILE_CHANGED = "file_changed"
    RUNS_UNTHROTTLED = "runs_unthrottled"
    """It is sent back with a throttle, and is to run without one."""
    NO_RATE = "no_rate"
    RATE_REFUSED = "rate_refused"
    """By the policy."""
    OWN_RATE = "own_rate"
    """Who answers asks for more, and may not approve what is their own."""
    TO_BE_TRIED = "to_be_tried"
    """It is sent back with another throttle, and is tried out with that."""

    @property
    def sends_back(self) -> bool:
        """Whether the person has sent the plan back, and approves nothing."""
        return self in _SENDS_BACK


_SENDS_BACK = frozenset(
    {
        AnswerFault.RUNS_UNTHROTTLED,
        AnswerFault.NO_RATE,
        AnswerFault.RATE_REFUSED,
        AnswerFault.OWN_RATE,
        AnswerFault.TO_BE_TRIED,
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an answer approves nothing.

    :param said: what has changed, which file, or the throttle as it was written; ``why``: what
        is wrong with it.
    """

    kind: AnswerFault
    said: str = ""
    why: str = ""
