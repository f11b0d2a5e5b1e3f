"""How a plan stands and what to do next: the first lines of its report."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.domain.run.states import MoveState, PlanState
from include.ledger.base.records import EndReason
from include.reporting.data import ReportData
from include.reporting.words import count_text, duration_text


class Tone(enum.StrEnum):
    """What the reader should feel."""

    GOOD = "good"
    BAD = "bad"
    BUSY = "busy"
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class StatusSummary:
    """The report's head.

    :param label: the state in one or two words.
    :param headline: what happened, in one sentence.
    :param state_left: what is true of the cluster now.
    :param next_step: what the reader should do.
    """

    tone: Tone
    label: str
    headline: str
    state_left: str
    next_step: str


UNCHANGED = "Nothing was changed on the cluster."
SWEEP = "Run sweep_throttles when the cause is gone: it takes back what is owed."


def standing_of(data: ReportData) -> StatusSummary:
    """The plan's standing. What was not verified is never called good."""
    return _STANDINGS[data.state](data)


def _planned(data: ReportData) -> StatusSummary:
    if data.dry_run is None:
        return StatusSummary(
            Tone.CALM,
            "Planned",
            "The plan is made; its dry run is still to come.",
            UNCHANGED,
            "Wait for the dry run.",
        )
    if not data.dry_run.get("ok"):
        return _refused(data)
    if data.request.get("dry_run"):
        return StatusSummary(
            Tone.GOOD,
            "Ready",
            "The dry run found nothing that speaks against this plan.",
            UNCHANGED,
            "Trigger again without dry_run to carry it out.",
        )
    step = (
        f"Approve it in Airflow, task approve. The approval holds for hash "
        f"{data.plan.plan_hash[:12]} only, and for the rate and the window that it names."
        if data.request.get("approval")
        else "Nothing: the run goes on by itself."
    )
    return StatusSummary(
        Tone.CALM, "Ready", "The dry run found nothing that speaks against it.", UNCHANGED, step
    )


def _refused(data: ReportData) -> StatusSummary:
    findings = (data.dry_run or {}).get("findings", ())
    errors = [item for item in findings if item["severity"] == "error"]
    return StatusSummary(
        Tone.BAD,
        "Refused",
        f"The dry run refuses this plan: {count_text(len(errors), 'error')}.",
        UNCHANGED,
        "Each finding below names its remedy. Then trigger again.",
    )


def _approved(data: ReportData) -> StatusSummary:
    return StatusSummary(
        Tone.CALM,
        "Approved",
        "The plan is approved and about to start.",
        UNCHANGED,
        "Nothing: the run goes on by itself.",
    )


def _running(data: ReportData) -> StatusSummary:
    return StatusSummary(
        Tone.BUSY,
        "Running",
        f"{_done_of_all(data)} so far.",
        _throttle_left(data),
        "Watch task progress in Airflow.",
    )


def _paused(data: ReportData) -> StatusSummary:
    return StatusSummary(
        Tone.CALM,
        "Paused",
        f"The plan is paused: {data.cause}. {_done_of_all(data)}.",
        f"Nothing of it is in flight. {_throttle_left(data)}",
        f"Trigger again with plan_id {data.plan.plan_id} to go on.",
    )


def _done(data: ReportData) -> StatusSummary:
    verified = data.verification is not None and data.verification.get("ok")
    if not verified:
        what = "did not verify" if data.verification else "was not verified"
        return StatusSummary(
            Tone.BAD,
            "Not verified",
            f"Every move ended, but the plan {what}.",
            _throttle_left(data),
            "See below what differs, or compare with kafka-reassign-partitions --verify.",
        )
    if data.owed:
        return StatusSummary(
            Tone.BAD,
            "Throttles owed",
            f"Every partition is where the plan says, but {_owed(data)}.",
            _throttle_left(data),
            SWEEP,
        )
    if data.drained is not None and not data.drained["as_planned"]:
        return _not_empty(data, data.drained)
    if not data.plan.moves:
        return StatusSummary(
            Tone.GOOD,
            "Done",
            "The cluster was already as asked: nothing had to move.",
            UNCHANGED,
            "Nothing.",
        )
    took = f", after {duration_text(data.elapsed_s)}" if data.elapsed_s is not None else ""
    moved = count_text(len(data.plan.moves), "partition is", "partitions are")
    return StatusSummary(
        Tone.GOOD,
        "Done",
        f"{moved} where the plan says{took}. A fresh read proves it.",
        f"{_unpaid(data)}{_out_of_isr(data)}{_throttle_left(data)}",
        f"{_after_done(data)} To take it back: action rollback with plan_id {data.plan.plan_id}.",
    )


def _not_empty(data: ReportData, drained: Mapping[str, Any]) -> StatusSummary:
    found = count_text(len(drained["left"]), "replica was", "replicas were")
    step = "See below what was found. Do not take the brokers away; trigger the drain again."
    if drained["follow_up"] is not None:
        step = f"See the report of plan {drained['follow_up']}, which follows this one up. {step}"
    return StatusSummary(
        Tone.BAD,
        "Not empty",
        f"Every partition is where the plan says, but {found} found on the brokers to be drained.",
        _throttle_left(data),
        step,
    )


def _unpaid(data: ReportData) -> str:
    """A sentence on what a budget has left on drained brokers; "" = nothing."""
    found = len((data.drained or {}).get("unpaid", ()))
    if not found:
        return ""
    stay = count_text(found, "replica stays", "replicas stay")
    return f"{stay} on the brokers to be drained, for want of budget: they are not empty. "


def _out_of_isr(data: ReportData) -> str:
    """A sentence on partitions that are done with a replica out of the ISR; "" = none."""
    found = len((data.verification or {}).get("findings", ()))
    if not found:
        return ""
    return f"{count_text(found, 'partition has', 'partitions have')} replicas out of the ISR. "


def _after_done(data: ReportData) -> str:
    if not _out_of_isr(data):
        return "Nothing."
    return "See below which replicas are out of the ISR, and look at their brokers."


def _failed(data: ReportData) -> StatusSummary:
    if not data.started:
        if data.dry_run is not None and not data.dry_run.get("ok"):
            return _refused(data)
        return StatusSummary(
            Tone.BAD,
            "Failed",
            f"The plan failed before it started: {data.cause}.",
            UNCHANGED,
            "Remove the cause and trigger again: a new plan is made from what is there then.",
        )
    return StatusSummary(
        Tone.BAD, "Failed", f"The plan failed: {data.cause}.", _left_by(data), _after_failure(data)
    )


def _cancelled(data: ReportData) -> StatusSummary:
    if not data.started:
        who = [event.actor for event in data.events if event.kind == PlanState.CANCELLED]
        by = f" by {who[-1]}" if who else ""
        rejected = data.record is not None and data.record.end_reason is EndReason.REJECTED
        what = f"rejected{by}" if rejected else f"cancelled: {data.cause}"
        return StatusSummary(
            Tone.CALM, "Cancelled", f"The plan was {what}.", UNCHANGED, "Nothing is left to do."
        )
    return StatusSummary(
        Tone.BAD,
        "Cancelled",
        f"The plan was cancelled: {data.cause}.",
        _left_by(data),
        _after_failure(data),
    )


def _rolled_back(data: ReportData) -> StatusSummary:
    return StatusSummary(
        Tone.CALM,
        "Rolled back",
        f"The plan was taken back: {data.cause}.",
        _throttle_left(data),
        "Nothing is left to do.",
    )


_STANDINGS = {
    PlanState.PLANNED: _planned,
    PlanState.APPROVED: _approved,
    PlanState.RUNNING: _running,
    PlanState.PAUSED: _paused,
    PlanState.DONE: _done,
    PlanState.FAILED: _failed,
    PlanState.CANCELLED: _cancelled,
    PlanState.ROLLED_BACK: _rolled_back,
}


def _done_of_all(data: ReportData) -> str:
    total = len(data.plan.moves)
    return f"{data.moves_in(MoveState.DONE):,} of {count_text(total, 'move is', 'moves are')} done"


def _left_by(data: ReportData) -> str:
    untouched = data.moves_in(MoveState.PENDING, MoveState.CANCELLED)
    failed = data.moves_in(MoveState.FAILED, MoveState.SUPERSEDED)
    flying = data.moves_in(MoveState.ADMITTED)
    parts = [f"{_done_of_all(data)} and stay where they are now."]
    if untouched:
        parts.append(f"{count_text(untouched, 'partition is', 'partitions are')} as before.")
    if failed:
        parts.append(f"{count_text(failed, 'move')} failed: see why below.")
    if flying:
        parts.append(f"{count_text(flying, 'move')} may still be in flight.")
    return " ".join([*parts, _throttle_left(data)])


def _after_failure(data: ReportData) -> str:
    steps = [SWEEP] if data.owed else []
    if data.moves_in(MoveState.ADMITTED):
        steps.append("See with kafka-reassign-partitions --list what is still in flight.")
    if data.moves_in(MoveState.DONE):
        steps.append(
            "Trigger again to move the rest, or take back what moved: action rollback with "
            f"plan_id {data.plan.plan_id}."
        )
    else:
        steps.append("Remove the cause and trigger again.")
    return " ".join(steps)


def _owed(data: ReportData) -> str:
    return count_text(len(data.owed), "throttle setting is owed", "throttle settings are owed")


def _throttle_left(data: ReportData) -> str:
    if not data.throttles:
        return "No throttle was set."
    if not data.owed:
        return "No throttle of it is left."
    if data.state.active:
        return f"{count_text(len(data.owed), 'throttle setting')} in force."
    return f"{_owed(data)[:1].upper()}{_owed(data)[1:]}."
