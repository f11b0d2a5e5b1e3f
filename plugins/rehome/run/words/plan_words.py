"""Why a task may not begin, by what the ledger has of its run and plan, in words."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime

from rehome.domain.text import minute_text
from rehome.run.causes.task_end import EndTexts, TaskEnd, WrittenWhen
from rehome.run.causes.task_end import TaskReason as R

NOTHING_CHANGED = "Nothing was changed."
EARLY_END = "the run ended before the plan did"
"""Where nothing else is known."""
REFUSED_BY_DRY_RUN = "refused by the dry run"
NOTHING_TO_MOVE = "there is nothing to move"
MAKES_WAY = "it makes way for a heal: no move of it could end in its last window"
_AFTER = "with what comes after it"
_RIGHT_LEDGER = (
    "See that the connection rehome_ledger, or the setting ledger_url, leads to the ledger that "
    "the run began with. Then clear this task."
)
_WRITTEN: Mapping[enum.Enum | None, str] = {
    WrittenWhen.RECORDED: "when the plan was recorded",
    WrittenWhen.FOR_JOB: "for the job that makes the plan",
    WrittenWhen.BY_TASK: "by the task that it is of",
}


def window_closed_text(at: datetime) -> str:
    """Of a run whose window is over."""
    return f"The window closed at {minute_text(at)}."


def recorded_already_text(plan_id: str) -> str:
    """Of a cluster of a fleet, in a run that was cleared."""
    return (
        f"This run has recorded plan {plan_id} already, and its files stay. The next run of "
        "plan_fleet makes a new one."
    )


def other_cluster_text(connection: str, actual_id: str, requested_id: str) -> str:
    """Of a run that names another cluster than its connection leads to."""
    return f"Connection {connection} leads to cluster {actual_id}, not to {requested_id}."


def _unknown_text(end: TaskEnd) -> str:
    return f"This ledger ({end.ledger_id}) knows no plan {end.plan_id}, but"


def _made_for(end: TaskEnd) -> str:
    where = f"ledger {end.other_id}" if end.other_id else "no ledger that they name"
    return f"{_unknown_text(end)} its files are at {end.place}, made for {where}"


def _held_text(end: TaskEnd) -> str:
    return f"Plan {end.plan_id} is {end.state} on this cluster (run {end.run_id})"


def _missing_step(end: TaskEnd) -> str:
    how = f"Put {end.said} before it"
    if end.count:
        how = f"The DAG has that task in another place: write {end.names[0]} >> {end.task}"
    return (
        f"{how}, or use the task group reassign(), which has all tasks in their order "
        "(docs/howto/own-dag.md)"
    )


def _file_changed(end: TaskEnd) -> str:
    return (
        f"{end.place} is not what was written {_WRITTEN[end.why]}: it was changed, "
        "removed or added since, by something else than the task that writes it"
    )


RUN_TEXTS: EndTexts = {
    R.NOT_TRIED_OUT: lambda end: (
        f"The ledger has no dry run of {end.plan_id} by this run, so the task dry_run is not done, "
        "whatever its state says"
    ),
    R.TRY_REFUSED: lambda end: f"The newest dry run of plan {end.plan_id} refuses that plan",
    R.NOT_PLACED: lambda end: (
        f"The ledger has no placement {end.plan_id}, so the task place is not done, whatever its "
        "state says"
    ),
    R.NOT_LOOKED: lambda end: (
        f"The ledger does not know which reassignments run {end.run_id} is about, so the task look "
        "is not done, whatever its state says"
    ),
    R.STEP_MISSING: lambda end: (
        f"The task {end.task} needs what the task {end.names[0]} writes, and in the DAG "
        f"{end.other_id} that does not come before it"
    ),
    R.FILE_CHANGED: _file_changed,
    R.SNAPSHOT_CHANGED: lambda end: (
        f"The files of snapshot {end.names[0]} have changed since it was taken"
    ),
    R.NO_SNAPSHOT: lambda end: (
        f"The ledger has no snapshot that the task {end.task} of run {end.run_id} has taken: it "
        "took none, or an earlier version of Rehome took it, which recorded none"
    ),
    R.NO_NEWEST_SNAPSHOT: lambda end: (
        f"The ledger has no snapshot of cluster {end.names[0]} any more, so it is not known "
        "whether the placement keeps the caps and broker sets that hold now"
    ),
    R.OTHER_LEDGER: lambda end: (
        f"The files of plan {end.plan_id} at {end.place} were made for the ledger {end.other_id}, "
        f"but this is the ledger {end.ledger_id}"
    ),
    R.RECORDED_ELSEWHERE: lambda end: f"{_unknown_text(end)} the task {end.task} has recorded it",
    R.FILES_UNREADABLE: lambda end: (
        f"{_unknown_text(end)} its files in the warehouse cannot be read: {end.said}"
    ),
    R.MADE_FOR_ANOTHER: _made_for,
    R.NOT_FOLLOWED_UP: lambda end: (
        f"Plan {end.plan_id} is not followed up: its task drained has found nothing to move"
    ),
    R.NO_FOLLOW_UP_PLAN: lambda end: f"No plan has been made that follows plan {end.plan_id} up",
    R.NO_PLAN_YET: "The run has no plan yet",
    R.NOT_THROTTLED: lambda end: (
        f"Plan {end.plan_id} is {end.state}: no task has set its throttle yet"
    ),
    R.DRIVEN_BY_OTHER: lambda end: (
        f"Run {end.run_id} drives plan {end.plan_id} now, which is {end.state}"
    ),
    R.PLAN_OVER: lambda end: (
        f"Plan {end.plan_id} of this run has ended ({end.state}: {end.said}), and a run makes one "
        "plan only"
    ),
    R.CLUSTER_HELD: _held_text,
    R.CLUSTER_HELD_SILENT: lambda end: f"{_held_text(end)}, and its run sends no heartbeat",
}
RUN_STEPS: EndTexts = {
    R.NOT_TRIED_OUT: f"Clear the task dry_run, {_AFTER}.",
    R.TRY_REFUSED: "Correct what it names, and trigger a new run.",
    R.NOT_PLACED: f"Clear the task place, {_AFTER}.",
    R.NOT_LOOKED: f"Clear the task look, {_AFTER}.",
    R.STEP_MISSING: _missing_step,
    R.FILE_CHANGED: "Find out who may write to the warehouse. Put the file back as it was, or "
    "trigger a new run.",
    R.SNAPSHOT_CHANGED: "Find out who has write access to the warehouse. Then take another "
    f"snapshot: clear the task that has taken it, {_AFTER}.",
    R.NO_SNAPSHOT: lambda end: f"Clear the task {end.task}, {_AFTER}: it takes one.",
    R.NO_NEWEST_SNAPSHOT: "Trigger a new run: it takes a snapshot and places the partitions anew.",
    R.OTHER_LEDGER: _RIGHT_LEDGER,
    R.RECORDED_ELSEWHERE: _RIGHT_LEDGER,
    R.FILES_UNREADABLE: _RIGHT_LEDGER,
    R.MADE_FOR_ANOTHER: _RIGHT_LEDGER,
    R.NOT_FOLLOWED_UP: lambda end: f"Leave the tasks of the group {end.names[0]} as they are.",
    R.NO_FOLLOW_UP_PLAN: lambda end: (
        f"Clear the task {end.task}, {_AFTER}: it says whether there is anything to move."
    ),
    R.NO_PLAN_YET: lambda end: f"Clear the task {end.task}, {_AFTER}.",
    R.NOT_THROTTLED: f"Clear the task throttle, {_AFTER}.",
    R.DRIVEN_BY_OTHER: "Follow that run.",
    R.PLAN_OVER: "Trigger a new run: it makes a new plan. Clearing tasks of this run does not.",
    R.CLUSTER_HELD: "Wait until it has ended, or cancel it; resume it if it is paused.",
    R.CLUSTER_HELD_SILENT: "Resume or cancel that plan with control_reassignment.",
}
_NOT_KNOWN_HERE = "What the run has changed on the cluster is not known here."
RUN_LEFT: EndTexts = {
    R.NO_NEWEST_SNAPSHOT: "No partition was created.",
    R.RECORDED_ELSEWHERE: _NOT_KNOWN_HERE,
    R.FILES_UNREADABLE: _NOT_KNOWN_HERE,
    R.MADE_FOR_ANOTHER: _NOT_KNOWN_HERE,
    R.NO_PLAN_YET: NOTHING_CHANGED,
    R.NOT_THROTTLED: "Nothing of it has started.",
}
"""Of all others, this step has changed nothing."""
