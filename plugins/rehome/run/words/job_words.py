"""Why a task has failed that runs a job, waits or asks a person, in words."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from rehome.errors import STEP_UNCHANGED
from rehome.run.causes.task_end import EndTexts, NotApproved, ProposalKind, TaskEnd
from rehome.run.causes.task_end import TaskReason as R
from rehome.run.words.plan_words import NOTHING_CHANGED

LOG_HAS_ALL = "The log of the task {task} has all of it."
NO_PLAN_MADE = "No plan was made; nothing was changed."
_PROPOSALS: Mapping[ProposalKind, str] = {
    ProposalKind.PARTITIONS: "the new partitions {}",
    ProposalKind.FOREIGN: "the reassignments that {} names",
}
_ANEW: Mapping[ProposalKind, str] = {
    ProposalKind.PARTITIONS: "it places them anew, and asks anew",
    ProposalKind.FOREIGN: "it describes what is in flight, and asks again",
}
_NOT_APPROVED: Mapping[enum.Enum | None, str] = {
    NotApproved.NO_ANSWER: "no person has answered the question of the run",
    NotApproved.OTHER_ASKER: "another person has asked for what was approved",
    NotApproved.TOO_OLD: "what the ledger has was approved too long ago",
    NotApproved.OTHER_TERMS: "the ledger has an approval of something else",
    NotApproved.NO_PERSON: "no person was asked, and one has to be",
}


def proposal_text(end: TaskEnd) -> str:
    """What a run proposes, in the plural."""
    assert end.proposal is not None
    return _PROPOSALS[end.proposal].format(end.plan_id)


def lapsed_text(*, in_window: bool) -> str:
    """Of a plan whose question has no answer."""
    until = "before its window closed" if in_window else "before its deadline"
    return f"no person has answered {until}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _no_java(end: TaskEnd) -> str:
    where = "PATH has no java"
    if end.place:
        where = f"JAVA_HOME is {end.place}, and {end.said} is no program"
    return f"There is no Java on this worker, and spark-submit needs one: {where}"


def _rejected_text(end: TaskEnd) -> str:
    begun = end.state is not None and end.state.active
    return f"{'Going on with plan' if begun else 'Plan'} {end.plan_id} was rejected by {end.who}"


def _rejected_left(end: TaskEnd) -> str:
    if end.state is None or not end.state.active:
        return NOTHING_CHANGED
    return f"It stays {end.state}: what it has moved stays moved."


def _lapsed_left(end: TaskEnd) -> str:
    active = end.state is not None and end.state.active
    return f"It stays {end.state}." if active else f"It is cancelled. {NOTHING_CHANGED}"


def _lapsed_step(end: TaskEnd) -> str:
    if end.state is not None and end.state.active:
        return "To have it asked again, resume it with control_reassignment."
    return "Trigger it again at a time at which a person can answer."


def _proposal_left(end: TaskEnd) -> str:
    created = end.proposal is ProposalKind.PARTITIONS
    return "No partition was created." if created else STEP_UNCHANGED


def _anew(end: TaskEnd) -> str:
    assert end.proposal is not None
    return f"If they are still wanted, trigger a new run: {_ANEW[end.proposal]}."


def _log_has_all(end: TaskEnd) -> str:
    return LOG_HAS_ALL.format(task=end.task)


JOB_TEXTS: EndTexts = {
    R.NOT_PLANNED: lambda end: f"No plan (invalid request). {end.said}",
    R.GATE_REFUSED: lambda end: f"No plan (gate refused). {end.said}",
    R.GATE_CRASHED: lambda end: f"No plan (expectation crashed). {end.said}",
    R.JOB_CRASHED: lambda end: f"No plan (crashed). {end.said}",
    R.JOB_FAILED: lambda end: (
        f"The Spark application {end.place} has failed, and left no reason. It ends with: "
        f"{end.said}"
    ),
    R.NO_JAVA: _no_java,
    R.NO_SPARK_SERVER: lambda end: (
        f"The Spark Connect server {end.place} of the connection {end.names[0]} takes no "
        f"connection: {end.said}"
    ),
    R.MIXED_PYSPARK: lambda end: (
        f"pyspark {end.names[0]} and pyspark-client {end.names[1]} are installed together on this "
        "worker. They share files: of two versions, some files of each are there"
    ),
    R.TRIGGER_FAILED: lambda end: f"The trigger of the task {end.task} has failed: {end.said}",
    R.SILENT: lambda end: (
        f"The task {end.task} has failed, and has left no reason: its process was killed, its "
        "machine is gone, or a person has marked it as failed."
    ),
    R.NO_ANSWER: lambda end: f"Plan {end.plan_id}: {end.said}",
    R.REJECTED: _rejected_text,
    R.PROPOSAL_REJECTED: lambda end: f"What {end.plan_id} proposes was rejected by {end.who}",
    R.REJECTED_BEFORE: lambda end: (
        f"{end.who} has rejected {proposal_text(end)}, and no other person is asked in this run"
    ),
    R.NOT_APPROVED: lambda end: (
        f"{_capitalize(proposal_text(end))} are not approved: {_NOT_APPROVED[end.why]}. The task "
        f"{end.task} is not done, whatever its state says"
    ),
}
JOB_STEPS: EndTexts = {
    R.NOT_PLANNED: "",
    R.GATE_REFUSED: "",
    R.GATE_CRASHED: "",
    R.JOB_CRASHED: "",
    R.JOB_FAILED: _log_has_all,
    R.NO_JAVA: "Install Java 17 or newer on each worker, or set JAVA_HOME; then clear the task.",
    R.NO_SPARK_SERVER: ("Start the server, or correct the connection; then clear the task."),
    R.MIXED_PYSPARK: lambda end: (
        f"Install pyspark=={end.names[1]} on each worker, by its version where you install with "
        "Airflow's constraints; then clear the task."
    ),
    R.TRIGGER_FAILED: _log_has_all,
    R.SILENT: lambda end: (
        f"See the log of the task {end.task}, and Airflow's audit log, which says whether a person "
        "has marked it. Then clear it, with what comes after it."
    ),
    R.NO_ANSWER: _lapsed_step,
    R.REJECTED: "",
    R.PROPOSAL_REJECTED: "",
    R.REJECTED_BEFORE: _anew,
    R.NOT_APPROVED: lambda end: f"Clear the task {end.task}, with what comes after it: it asks.",
}
JOB_LEFT: EndTexts = {
    R.NOT_PLANNED: NOTHING_CHANGED,
    R.GATE_REFUSED: NOTHING_CHANGED,
    R.GATE_CRASHED: NOTHING_CHANGED,
    R.JOB_CRASHED: NOTHING_CHANGED,
    R.JOB_FAILED: NO_PLAN_MADE,
    R.NO_JAVA: NO_PLAN_MADE,
    R.NO_SPARK_SERVER: NO_PLAN_MADE,
    R.MIXED_PYSPARK: NO_PLAN_MADE,
    R.NO_ANSWER: _lapsed_left,
    R.REJECTED: _rejected_left,
    R.PROPOSAL_REJECTED: NOTHING_CHANGED,
    R.REJECTED_BEFORE: _proposal_left,
    R.NOT_APPROVED: _proposal_left,
}
