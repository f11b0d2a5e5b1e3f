"""Why tasks end their runs, in words: every reason, and some of each topic in full."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.domain.run.states import PlanState
from rehome.run.causes.task_end import (
    NotApproved,
    ProposalKind,
    TaskEnd,
    TaskReason,
    WrittenWhen,
)
from rehome.run.words.asker_words import ASKER_STEPS, ASKER_TEXTS, idle_text
from rehome.run.words.completion_words import COMPLETION_STEPS, COMPLETION_TEXTS
from rehome.run.words.job_words import JOB_STEPS, JOB_TEXTS
from rehome.run.words.plan_words import RUN_STEPS, RUN_TEXTS
from rehome.run.words.worded import LEFT, ended_text
from tests.plugins.run.words.reason_table import CAUSES, NOTHING_SAID_OF_WHAT_IS_LEFT

TOPICS = (
    (ASKER_TEXTS, ASKER_STEPS),
    (COMPLETION_TEXTS, COMPLETION_STEPS),
    (JOB_TEXTS, JOB_STEPS),
    (RUN_TEXTS, RUN_STEPS),
)


def test_each_reason_has_its_words_in_one_topic() -> None:
    of_topics = [reason for texts, _ in TOPICS for reason in texts]
    assert sorted(of_topics) == sorted(TaskReason)
    assert all(texts.keys() == steps.keys() for texts, steps in TOPICS)


@pytest.mark.parametrize(
    ("end", "what", "left", "step"),
    [
        (
            TaskEnd(TaskReason.NO_PLAN_AT_END),
            "The run ended before there was a plan: no task has said why",
            "Nothing was changed.",
            "See the log of the task that failed first.",
        ),
        (
            TaskEnd(TaskReason.NO_PLAN_AT_END, said="no Java", remedy="Install it."),
            "The run ended before there was a plan: no Java",
            "Nothing was changed.",
            "Install it.",
        ),
        (
            TaskEnd(TaskReason.OWED, names=("broker 1 rate: away",), connection="k"),
            "Throttles that could not be taken back yet:\n  broker 1 rate: away\n",
            "The ledger lists them as pending cleanup.",
            "When the cause is gone, trigger sweep_throttles with kafka_config_id k, or leave it",
        ),
        (
            TaskEnd(TaskReason.DRY_RUN_REFUSES, "p", PlanState.PAUSED, said="x", remedy="Wait."),
            "The dry run refuses plan p:\nx",
            "This step has changed nothing. Plan p had started before, and is paused: what it has "
            "moved stays moved.",
            "Wait.",
        ),
        (
            TaskEnd(TaskReason.REJECTED, "p", PlanState.PAUSED, who="ann"),
            "Going on with plan p was rejected by ann",
            "It stays paused: what it has moved stays moved.",
            "",
        ),
        (
            TaskEnd(TaskReason.REJECTED, "p", who="ann"),
            "Plan p was rejected by ann",
            "Nothing was changed.",
            "",
        ),
        (
            TaskEnd(TaskReason.NO_ANSWER, "p", PlanState.PLANNED, said="nobody has answered"),
            "Plan p: nobody has answered",
            "It is cancelled. Nothing was changed.",
            "Trigger it again at a time at which a person can answer.",
        ),
        (
            TaskEnd(
                TaskReason.NOT_APPROVED,
                "p",
                why=NotApproved.TOO_OLD,
                task="approve",
                proposal=ProposalKind.PARTITIONS,
            ),
            "The new partitions p are not approved: what the ledger has was approved too long ago. "
            "The task approve is not done, whatever its state says",
            "No partition was created.",
            "Clear the task approve, with what comes after it: it asks.",
        ),
        (
            TaskEnd(TaskReason.FILE_CHANGED, place="s3://b/x.json", why=WrittenWhen.BY_TASK),
            "s3://b/x.json is not what was written by the task that it is of: it was changed",
            "This step has changed nothing.",
            "Find out who may write to the warehouse.",
        ),
        (
            TaskEnd(TaskReason.MADE_FOR_ANOTHER, "p", ledger_id="l1", place="u"),
            "This ledger (l1) knows no plan p, but its files are at u, made for no ledger that",
            "What the run has changed on the cluster is not known here.",
            "See that the connection rehome_ledger",
        ),
        (
            TaskEnd(TaskReason.MIXED_PYSPARK, names=("4.2.0", "4.1.2")),
            "pyspark 4.2.0 and pyspark-client 4.1.2 are installed together on this worker",
            "No plan was made; nothing was changed.",
            "Install pyspark==4.1.2",
        ),
        (
            TaskEnd(TaskReason.NO_JAVA, place="/j", said="/j/bin/java"),
            "There is no Java on this worker, and spark-submit needs one: JAVA_HOME is /j, and "
            "/j/bin/java is no program",
            "No plan was made; nothing was changed.",
            "Install Java 17",
        ),
        (
            TaskEnd(
                TaskReason.CLEARED_TOO_LATE,
                run_id="r",
                who="ann",
                at=datetime(2030, 1, 31, 4, tzinfo=UTC),
                hours=24,
            ),
            "Run r was asked for by ann, for 2030-01-31 04:00 UTC, and was cleared when that was "
            "over: a request counts for 24 hours",
            "This step has changed nothing.",
            "Trigger a new run on Rehome's page",
        ),
    ],
    ids=lambda value: value.reason.value if isinstance(value, TaskEnd) else "",
)
def test_what_is_so_what_is_left_and_what_to_do(
    end: TaskEnd, what: str, left: str, step: str
) -> None:
    said = ended_text(end)
    assert said[0].startswith(what)
    assert said[1] == left
    assert said[2].startswith(step)


def test_each_reason_has_its_cause_and_whether_another_attempt_may_go_through() -> None:
    assert {str(each): (each.cause, each.passing) for each in TaskReason} == CAUSES


def test_what_is_left_is_said_of_all_but_some() -> None:
    assert set(TaskReason) - LEFT.keys() == NOTHING_SAID_OF_WHAT_IS_LEFT


def test_a_window_with_nothing_to_do_says_why() -> None:
    assert idle_text(None, stated=False) == (
        "Nothing to do: no plan waits for this window. Windows of this cluster make no plan of "
        "their own, for own_plan is false."
    )
    assert idle_text(None, stated=None).endswith("had none before, and own_plan is not true.")
