"""Findings that stay open though what was started for them has ended: what came of it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from include.watching.kinds import WatchPolicy

NEXT = (
    "No other run is started before it has closed and opened anew. To have it remedied, change "
    "what the reasons name (targets, caps, broker sets, or the watch rule), and trigger "
    "reassign_partitions; or set its policy to watch."
)


class Outcome(enum.Enum):
    """What came of the run that was started for a finding which is open still."""

    NOTHING_TO_MOVE = "nothing_to_move"  # its plan has no moves
    NOT_ENOUGH = "not_enough"  # its plan is done, and the finding is there still
    REJECTED = "rejected"  # by the person who was asked to approve it
    NOT_APPROVED = "not_approved"  # a proposal has failed, or nobody has answered
    UNKNOWN = "unknown"  # it made no plan, or another run has ended that


@dataclass(frozen=True, slots=True)
class StaysOpen:
    """Why nothing else is started for an open finding.

    :param policy: that it was started by.
    :param reasons: what its plan could not reach, a sentence each; the first ones.
    :param more: how many more there are.
    """

    outcome: Outcome
    policy: WatchPolicy
    plan_id: str = ""
    reasons: tuple[str, ...] = ()
    more: int = 0


def stays_open_text(found: StaysOpen) -> str:
    """Why the finding stays open, and what can be done."""
    return f"{_sentence(found)} {NEXT}"


def _sentence(found: StaysOpen) -> str:
    what = _OUTCOMES[found.outcome].format(plan=found.plan_id)
    if not found.reasons:
        return f"The finding stays open: {what}."
    others = f"; and {found.more} more, on its page" if found.more else ""
    return f"The finding stays open: {what}, because {'; '.join(found.reasons)}{others}."


_OUTCOMES: Mapping[Outcome, str] = {
    Outcome.NOTHING_TO_MOVE: "the remedy cannot help, as its plan {plan} has found nothing to move",
    Outcome.NOT_ENOUGH: "the remedy could not do more, as its plan {plan} is done",
    Outcome.REJECTED: "its plan {plan} was rejected by the person who was asked to approve it",
    Outcome.NOT_APPROVED: "its proposal has failed, or nobody has answered it",
    Outcome.UNKNOWN: "the run that was started for it has ended without a plan that is done",
}
