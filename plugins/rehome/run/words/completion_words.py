"""Why a run fails at the end of its plan, or of what it was to do, in words."""

from __future__ import annotations

from rehome.alerts.alert_text import SWEPT
from rehome.domain.text import count_text, join_names
from rehome.errors import STEP_UNCHANGED, sentence
from rehome.execution.completion.follow_up import NoFollowUp
from rehome.execution.completion.words.end_words import (
    NOT_FOLLOWED_UP,
    demotion_text,
    not_elected_text,
    not_ended,
)
from rehome.run.causes.task_end import EndTexts, TaskEnd
from rehome.run.causes.task_end import TaskReason as R
from rehome.run.words.plan_words import NOTHING_CHANGED

REMEDIES_NAMED = "Each finding names its remedy. Then trigger a new run."


def state_text(end: TaskEnd) -> str:
    """Where a plan stands, and why."""
    return f"Plan {end.plan_id} is {end.state}: {end.said}"


def followed_up_text(plan_id: str, appeared: str) -> str:
    """The event of a plan that another one follows up."""
    return f"plan {plan_id} moves what has appeared: {appeared}"


def _follow_up(end: TaskEnd) -> str:
    """Why what a plan was to empty is not: its follow-up has not done it, or there was none."""
    if end.plan_id:
        return f"plan {end.plan_id} is {end.state}: {end.said}"
    return end.said


def _not_followed_up(end: TaskEnd) -> str:
    assert isinstance(end.why, NoFollowUp)
    return NOT_FOLLOWED_UP[end.why]


def _sweep(end: TaskEnd) -> str:
    return (
        "When the cause is gone, trigger sweep_throttles with kafka_config_id "
        f"{end.connection}, or leave it to the schedule. {SWEPT}"
    )


def _refused_left(end: TaskEnd) -> str:
    if end.state is None:
        return NOTHING_CHANGED
    return (
        f"This step has changed nothing. Plan {end.plan_id} had started before, and is "
        f"{end.state}: what it has moved stays moved."
    )


def _by_cluster(end: TaskEnd) -> str:
    return " ".join(sentence(f"{name}: {why}") for name, why in end.content.items())


COMPLETION_TEXTS: EndTexts = {
    R.NO_PLAN_AT_END: lambda end: (
        f"The run ended before there was a plan: {end.said or 'no task has said why'}"
    ),
    R.NOT_DONE_AT_END: state_text,
    R.PLAN_FAILED: state_text,
    R.PLAN_CANCELLED: lambda end: f"Plan {end.plan_id} is {end.state}: {end.who} has asked for it",
    R.PROOF_NOT_READ: lambda end: (
        f"Every move of plan {end.plan_id} has ended, but whether the result was verified is not "
        f"known: {end.said}"
    ),
    R.NO_PROOF: lambda end: (
        f"Plan {end.plan_id} is done, but was not verified: the ledger has no proof of the task "
        "verify, whatever its state says"
    ),
    R.DISPROVED: lambda end: (
        f"Plan {end.plan_id} is done, but a fresh read finds partitions that differ from the plan, "
        "that have lost messages, or that could not be read"
    ),
    R.NOT_VERIFIED: lambda end: (
        f"Plan {end.plan_id} is not verified. What was read differs from the plan, or could not be "
        f"read:\n{end.said}"
    ),
    R.OWED_AT_END: lambda end: (
        f"Plan {end.plan_id} is done and verified, but throttles are pending cleanup: "
        f"{'; '.join(end.names)}"
    ),
    R.OWED: lambda end: (
        "Throttles that could not be taken back yet:\n"
        + "".join(f"  {name}\n" for name in end.names)
    ),
    R.EMPTINESS_NOT_SEEN: lambda end: (
        f"Plan {end.plan_id} is done, but no task has seen that what was to be empty is empty"
    ),
    R.NOT_EMPTY_AT_END: lambda end: not_ended(end.content, _follow_up(end)),
    R.DRAIN_NOT_ENDED: lambda end: (
        f"Plan {end.plan_id} is done, but the drain has not ended. {end.said}\n"
        f"What is left there was not moved away: {_not_followed_up(end)}"
    ),
    R.NOT_ELECTED: lambda end: (
        f"Plan {end.plan_id} is done, but its leaders were not elected: see the task "
        "restore_leaders"
    ),
    R.NOT_PREFERRED: lambda end: (
        f"Plan {end.plan_id} has ended, but not every preferred leader leads: "
        f"{not_elected_text(end.content)}"
    ),
    R.STILL_LEADS: lambda end: (
        f"Every move of plan {end.plan_id} has ended, but brokers still lead that were to be "
        f"demoted. {demotion_text(end.content)}"
    ),
    R.NOT_CHECKED: lambda end: (
        f"Plan {end.plan_id} is {end.state} ({end.said}), and only a plan that is done is checked "
        "by a fresh read"
    ),
    R.DRY_RUN_REFUSES: lambda end: f"The dry run refuses plan {end.plan_id}:\n{end.said}",
    R.PARTITIONS_REFUSED: lambda end: f"The dry run refuses the new partitions:\n{end.said}",
    R.FOREIGN_LEFT: lambda end: f"Not all of it could be cancelled: {end.said}",
    R.WATCHED_OTHERWISE: lambda end: (
        f"Not every reassignment that was watched is complete: {end.said}"
    ),
    R.NOT_JUDGED: lambda end: " ".join(
        sentence(f"Cluster {each} could not be judged: {why}") for each, why in end.content.items()
    ),
    R.SOME_NOT_JUDGED: lambda end: f"Clusters that could not be judged: {join_names(end.names)}",
    R.FLEET_WITHOUT_PLANS: lambda end: (
        f"No plan was made for {', '.join(sorted(end.content))}. {_by_cluster(end)}"
    ),
    R.OLD_DATA_LEFT: lambda end: " ".join(end.names),
}
_CLEAR_VERIFY = "clear the task verify, with what comes after it"
_NEXT_SNAPSHOT = (
    "The findings of these clusters stay as they were. watch_clusters judges the next snapshot of "
    "each cluster."
)
COMPLETION_STEPS: EndTexts = {
    R.NO_PLAN_AT_END: lambda end: (
        end.remedy if end.said else "See the log of the task that failed first."
    ),
    R.NOT_DONE_AT_END: lambda end: f"See the report: {end.place}/report.html",
    R.PLAN_FAILED: "The report has what was moved, and what to do about the rest.",
    R.PLAN_CANCELLED: "The report has what was moved, and what to do about the rest.",
    R.PROOF_NOT_READ: f"Remove the cause, then {_CLEAR_VERIFY}: it reads the cluster afresh.",
    R.NO_PROOF: "Clear that task, with what comes after it.",
    R.DISPROVED: "See the report, which names each. What could not be read: fix the broker, then "
    f"{_CLEAR_VERIFY}. Where replicas differ: trigger a new run.",
    R.NOT_VERIFIED: f"If something could not be read, {_CLEAR_VERIFY}. If partitions differ, find "
    "out which client has moved them; a new run plans on what is there then.",
    R.OWED_AT_END: _sweep,
    R.OWED: _sweep,
    R.EMPTINESS_NOT_SEEN: "Clear the task drained, with what comes after it.",
    R.NOT_EMPTY_AT_END: "",
    R.DRAIN_NOT_ENDED: "Do not take away what was to be empty. Trigger a new run of the drain.",
    R.NOT_ELECTED: "Clear the task restore_leaders, with what comes after it.",
    R.NOT_PREFERRED: "Trigger a new run of elect_preferred when these replicas are in sync.",
    R.STILL_LEADS: "Trigger a new run of the demotion.",
    R.NOT_CHECKED: "See the log of the task progress for how the plan has ended.",
    R.DRY_RUN_REFUSES: lambda end: end.remedy or REMEDIES_NAMED,
    R.PARTITIONS_REFUSED: REMEDIES_NAMED,
    R.FOREIGN_LEFT: "Trigger foreign_reassignments with action describe: it says what is in "
    "flight, what can never end, and what ends it.",
    R.WATCHED_OTHERWISE: "See with kafka-reassign-partitions --list what is still in flight, and "
    "with the client that started the others why they ended.",
    R.NOT_JUDGED: _NEXT_SNAPSHOT,
    R.SOME_NOT_JUDGED: f"The task watch says why. {_NEXT_SNAPSHOT}",
    R.FLEET_WITHOUT_PLANS: "Fix what is named for each, then trigger plan_fleet with these "
    "clusters as its parameter clusters.",
    R.OLD_DATA_LEFT: "See that Airflow's workers may write to the warehouse; the next run tries "
    "again.",
}
COMPLETION_LEFT: EndTexts = {
    R.NO_PLAN_AT_END: NOTHING_CHANGED,
    R.OWED: "The ledger lists them as pending cleanup.",
    R.DRAIN_NOT_ENDED: "The moves of the plan stay where they are, and none of its throttles is "
    "left.",
    R.NOT_CHECKED: STEP_UNCHANGED,
    R.DRY_RUN_REFUSES: _refused_left,
    R.PARTITIONS_REFUSED: "No partition and no topic was created.",
    R.FOREIGN_LEFT: lambda end: (
        f"{count_text(end.count, 'reassignment was', 'reassignments were')} cancelled. Those named "
        "above are still in flight."
    ),
    R.WATCHED_OTHERWISE: "This task only watched, and changed nothing.",
    R.FLEET_WITHOUT_PLANS: "Nothing was changed on any cluster.",
    R.OLD_DATA_LEFT: "The ledger keeps what is named here; all other old data was removed.",
}
"""Of all others, the error does not say."""
