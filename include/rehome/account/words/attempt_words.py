"""What was last tried with a plan, and why it is not to be run as it is, in words."""

from __future__ import annotations

from collections.abc import Mapping

from rehome.account.attempts import is_refusal
from rehome.account.requests import RequestState
from rehome.domain.run.causes.cause import CauseKind
from rehome.ledger.stores.by_run.causes import EndedRun

ATTEMPT_LABELS: Mapping[CauseKind, str] = {
    CauseKind.STALE: "Out of date",
    CauseKind.CHANGED_FILES: "Files changed",
    CauseKind.NOT_APPROVED: "Not approved",
    CauseKind.NO_ANSWER: "Not answered",
    CauseKind.REJECTED: "Rejected",
    CauseKind.CANCELLED: "Cancelled",
    CauseKind.SILENT: "Ended silently",
}
"""The state of a plan whose last run has ended by a cause of this kind; else see
:func:`label_of`.
"""
REQUEST_WORDS: Mapping[RequestState, str] = {
    RequestState.PLANNING: "Being planned",
    RequestState.STARTING: "About to start",
    RequestState.REFUSED: "Refused",
    RequestState.FAILED: "Failed",
    RequestState.REJECTED: "Rejected",
}
PLAN_ANEW = (
    "Trigger a new run with the same parameters: it makes a plan for the cluster as it is now."
)


def label_of(kind: CauseKind) -> str:
    """The state of a plan, in one or two words, whose last run has ended so."""
    return ATTEMPT_LABELS.get(kind) or ("Refused" if is_refusal(kind) else "Failed")


def tried_text(last: EndedRun) -> str:
    """What ended or refused the run, and which run it was."""
    return f"{last.cause.short} (Run {last.run_id}, task {last.cause.task_id}.)"


def superseded_text(by: str) -> str:
    """Why a plan is not to be run, where another one has moved its partitions."""
    return (
        f"Since this plan was made, plan {by} has moved partitions that this plan moves, too. So "
        "this plan is out of date: trigger a new run."
    )
