"""What a run that makes no plan proposes is done only as a person has approved it: reassignments
of other clients, and new partitions. No broker is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

from rehome import installation
from rehome.domain.clock import utc_now
from rehome.domain.kafka import OngoingReassignment, TopicPartition
from rehome.domain.run.approval.questions import AnswerKind, NoQuestion
from rehome.domain.run.askers import Askers
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.execution.access.connection_policy import ConnectionPolicy, PolicyError
from rehome.execution.foreign.named import NamedReassignment, NamedReassignments
from rehome.ledger.store import Ledger
from rehome.operators.approval import without_plan
from rehome.operators.foreign.approve import ApproveForeignOperator
from rehome.operators.foreign.asked import NAMED_FILE, require_person
from rehome.run import evidence
from rehome.run.asking import hitl
from rehome.run.causes.errors import AskedAgainError
from rehome.run.context import RunContext
from tests.dags.approval.answers import Given
from tests.ledger.people import answers_of
from tests.plugins.run.asked import run_of, task_of

NAMED = NamedReassignments(
    "c1",
    ForeignAction.CANCEL,
    (
        NamedReassignment(
            TopicPartition("t", 0), "id-1", OngoingReassignment((3, 1, 2), (3,), (1,))
        ),
    ),
)
OTHERS = NamedReassignments(
    "c1",
    ForeignAction.CANCEL,
    (NamedReassignment(TopicPartition("u", 7), "id-2", OngoingReassignment((3, 1), (3,), ())),),
)
ANYBODY = ConnectionPolicy("kafka_default")
FOUR_EYES = ConnectionPolicy("kafka_default", approval=True, own_approval=False)
Context = dict[str, Any]


def context_of(run_id: str = "r1", **given: Any) -> Context:
    """A run of ann's."""
    params = {"kafka_config_id": "kafka_default"}
    run = run_of(run_id, dag_id="foreign_reassignments", conf=params, **given)
    context = task_of(run, "approve", **params)
    return {**context, "ti": SimpleNamespace(try_number=1, id=f"ti-of-{run_id}")}


def name(ledger: Ledger, context: Context, asked: NamedReassignments) -> None:
    directory = RunContext(context).directory
    evidence.keep(ledger, directory, RunContext(context).plan_id, NAMED_FILE, asked.to_json())


@pytest.fixture
def context(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Context:
    """A run whose task `look` has named a reassignment."""
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    monkeypatch.setattr(
        hitl, "show_question", lambda asking, ti_id: (asking.body, list(asking.options))
    )
    monkeypatch.setattr(ApprovalOperator, "execute", lambda self, context: "waits")
    found = context_of()
    name(ledger, found, NAMED)
    return found


def asks(context: Context) -> ApproveForeignOperator:
    task = ApproveForeignOperator(task_id="approve")
    assert task.execute(context) == "waits"
    return task


def answers(task: ApproveForeignOperator, context: Context, given: Given) -> None:
    task.execute_complete(RunContext(context), given.event(list(task.options or ())))


def approved(context: Context, by: str = "ops") -> None:
    answers(asks(context), context, Given(by=by))


def refused(context: Context, policy: ConnectionPolicy = ANYBODY) -> str:
    with pytest.raises(evidence.NotDoneError) as error:
        require_person(RunContext(context), NAMED, policy)
    return str(error.value)


def test_what_a_person_has_approved_in_this_run_counts(context: Context) -> None:
    approved(context)
    person = require_person(RunContext(context), NAMED, FOUR_EYES).by
    assert person is not None
    assert person.name == "ops"


def test_nothing_counts_that_the_ledger_does_not_have(context: Context) -> None:
    """As where a user sets the task `approve` to success, before it has asked and after."""
    assert "no person has answered the question of the run" in refused(context)
    asks(context)
    assert "no person has answered the question of the run" in refused(context)


def test_an_answer_that_no_person_has_given_does_not_count(
    context: Context, ledger: Ledger
) -> None:
    task = ApproveForeignOperator(task_id="approve")
    about = (NAMED.digest, Askers("ann"), "c1", NoQuestion.NOT_REQUIRED)
    asked = RunContext(context)
    task.not_asked(asked, task.proposal(asked).terms, *about)
    assert "no person was asked, and one has to be" in refused(context)


def test_an_approval_of_something_else_does_not_count(context: Context, ledger: Ledger) -> None:
    approved(context)
    with pytest.raises(evidence.NotDoneError, match="an approval of something else"):
        require_person(RunContext(context), OTHERS, ANYBODY)


def test_the_approval_of_another_run_does_not_count(context: Context, ledger: Ledger) -> None:
    other = context_of("r2")
    name(ledger, other, NAMED)
    approved(other)
    assert "no person has answered" in refused(context)


def test_a_run_that_was_deleted_and_triggered_by_another_person_is_not_approved(
    context: Context,
) -> None:
    approved(context)
    again = context_of(triggering_user_name="bob")
    assert "another person has asked for what was approved" in refused(again)


def test_an_approval_lapses(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    approved(context)
    later = utc_now() + timedelta(seconds=installation.settings().approval_lasts_s + 1)
    monkeypatch.setattr(without_plan, "utc_now", lambda: later)
    assert "approved too long ago" in refused(context)


def test_a_policy_that_was_tightened_meanwhile_counts(context: Context) -> None:
    approved(context, by="ann")
    assert require_person(RunContext(context), NAMED, ANYBODY)
    with pytest.raises(PolicyError, match="another person has to approve it"):
        require_person(RunContext(context), NAMED, FOUR_EYES)


def test_an_answer_of_the_one_who_has_asked_does_not_count_under_four_eyes(
    context: Context, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {"approval": True, "own_approval": False}
    extra = {"bootstrap.servers": "127.0.0.1:1", "rehome.policy": policy}
    kafka = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", kafka)
    task = asks(context)
    with pytest.raises(PolicyError, match="another person has to approve it"):
        answers(task, context, Given(by="ann"))
    assert answers_of(ledger, RunContext(context).plan_id) == [AnswerKind.NOT_COUNTED]


def swap_what_is_named(context: Context) -> None:
    """The task `look`, cleared, names something else by now."""
    with installation.open_ledger() as ledger:
        name(ledger, context, OTHERS)


def forge_the_file(context: Context) -> None:
    RunContext(context).directory.write_json(NAMED_FILE, OTHERS.to_json())


def leave_it(context: Context) -> None:
    """Nothing has changed; what is approved is an older question's text."""


@pytest.mark.parametrize(
    ("meanwhile", "option", "error", "why"),
    [
        (swap_what_is_named, "Approve", AskedAgainError, "proposes something else by now"),
        (forge_the_file, "Approve", evidence.FileChangedError, NAMED_FILE),
        (leave_it, "Approve 00000000", AskedAgainError, "another text than the one asked"),
        (leave_it, "Yes", AskedAgainError, "no option that there was"),
    ],
)
def test_an_answer_to_something_else_than_what_would_be_done_approves_nothing(
    context: Context,
    meanwhile: Callable[[Context], None],
    option: str,
    error: type[Exception],
    why: str,
) -> None:
    task = asks(context)
    event = Given(option, by="ops").event(list(task.options or ()))
    meanwhile(context)
    with pytest.raises(error, match=why):
        task.execute_complete(RunContext(context), event)
    assert "no person has answered" in refused(context)


def test_what_one_person_has_rejected_no_other_approves(context: Context) -> None:
    answers(asks(context), context, Given("Reject", by="ops"))
    again = {**context, "ti": SimpleNamespace(try_number=2, id="ti-2")}
    with pytest.raises(AirflowFailException, match="ops has rejected the reassignments that"):
        ApproveForeignOperator(task_id="approve").execute(again)
    with pytest.raises(Exception, match="no other person is asked in this run"):
        require_person(RunContext(again), NAMED, ANYBODY)
