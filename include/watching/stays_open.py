"""Findings that stay open though what was started for them has ended: what came of it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from include.watching.kinds import WatchPolicy
from include.watching.refusal import RefusedBy, RefusedRun

NEXT = (
    "No other run is started before it has closed and opened anew. To have it remedied, change "
    "what the reasons name (targets, caps, broker sets, or the watch rule), and trigger "
    "reassign_partitions; or set its policy to watch."
)


class RunOutcome(enum.Enum):
    """What came of the run that was started for a finding which is open still."""

    NOTHING_TO_MOVE = "nothing_to_move"  # its plan has no moves
    NOT_ENOUGH = "not_enough"  # its plan is done, and the finding is there still
    REJECTED = "rejected"  # by the person who was asked to approve it
    REFUSED = "refused"  # its plan, before it has changed anything
    NOT_APPROVED = "not_approved"  # a proposal has failed, or nobody has answered
    UNKNOWN = "unknown"  # it made no plan, or another run has ended that


@dataclass(frozen=True, slots=True)
class StaysOpen:
    """Why nothing else is started for an open finding.

    :param policy: that it was started by.
    :param reasons: what its plan could not reach, a sentence each; the first ones.
    :param more: how many more there are.
    :param refused: its plan was refused.
    """

    outcome: RunOutcome
    policy: WatchPolicy
    plan_id: str = ""
    reasons: tuple[str, ...] = ()
    more: int = 0
    refused: RefusedRun | None = None


def stays_open_text(found: StaysOpen) -> str:
    """Why the finding stays open, and what can be done."""
    return f"{why_open(found)} {next_step(found)}"


def next_step(found: StaysOpen) -> str:
    """What happens next by itself, and what a person can do."""
    return NEXT if found.refused is None else refused_next(found.refused)


def refused_next(refused: RefusedRun) -> str:
    """What happens after a plan was refused, and what a person can do."""
    changed = " and not before snapshots show a changed cluster" if refused.until_changed else ""
    unless = ", unless the settings change" if refused.refusal.settings else ""
    return (
        "Nothing was changed, and it counts neither as a heal nor as a failure. It is not planned "
        f"again before {refused.again_at:%Y-%m-%d %H:%M} UTC{changed}{unless}. "
        "To have it planned again now, trigger watch_clusters by hand."
    )


def why_open(found: StaysOpen) -> str:
    """Why the finding stays open."""
    what = what_came(found)
    if not found.reasons:
        return f"The finding stays open: {what}."
    others = f"; and {found.more} more, on the page of its run" if found.more else ""
    return f"The finding stays open: {what}, because {'; '.join(found.reasons)}{others}."


def what_came(found: StaysOpen) -> str:
    """What came of the run, without its reasons."""
    if found.refused is None:
        return _OUTCOMES[found.outcome].format(plan=found.plan_id)
    in_a_row = found.refused.in_a_row
    times = f" ({in_a_row} times in a row)" if in_a_row > 1 else ""
    if found.refused.refusal.by is RefusedBy.CRASH:
        return f"the run that was to propose a plan has failed before it made one{times}"
    return f"its plan was refused by {_REFUSED_BY[found.refused.refusal.by]}{times}"


_REFUSED_BY: Mapping[RefusedBy, str] = {
    RefusedBy.PLANNER: "the planner",
    RefusedBy.GATE: "its gate",
    RefusedBy.CRASHED_GATE: "its gate, a check of which has crashed",
    RefusedBy.DRY_RUN: "its dry run",
    RefusedBy.BROKER_AWAY: "its own snapshot, in which a broker has just gone away",
    RefusedBy.OF_PAUSED: "the dry run of what was left of it",
}
_OUTCOMES: Mapping[RunOutcome, str] = {
    RunOutcome.NOTHING_TO_MOVE: "the remedy cannot help, as its plan {plan} has found nothing to "
    "move",
    RunOutcome.NOT_ENOUGH: "the remedy could not do more, as its plan {plan} is done",
    RunOutcome.REJECTED: "its plan {plan} was rejected by the person who was asked to approve it",
    RunOutcome.REFUSED: "its plan was refused",
    RunOutcome.NOT_APPROVED: "its proposal has failed, or nobody has answered it",
    RunOutcome.UNKNOWN: "the run that was started for it has ended without a plan that is done",
}
