"""What a forger may write in Airflow or in the warehouse approves nothing; no broker is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from sqlalchemy import delete

from rehome.domain.run.approval.effects import Effects
from rehome.domain.run.approval.questions import AnswerKind
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.states import PlanState
from rehome.ledger.base.approval_tables import DRY_RUNS
from rehome.ledger.base.database import LedgerUnavailableError
from rehome.ledger.store import Ledger
from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.throttle import SetThrottleOperator
from rehome.run import evidence
from rehome.run.asking import hitl
from rehome.run.causes.errors import AskedAgainError
from rehome.run.context import RunContext
from rehome.warehouse import PlanDirectory
from tests.dags.approval.answers import Given, answered
from tests.ledger.people import answers_of, approve_as
from tests.plugins.operators.approval.asked_plan import APPROVED, context, tried_out

Asked = tuple[ApprovePlanOperator, dict[str, Any]]


@pytest.fixture
def asked(directory: PlanDirectory, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The task that has asked, and waits; its context."""
    monkeypatch.setattr(
        hitl, "show_question", lambda asking, ti_id: (asking.body, list(asking.options))
    )
    monkeypatch.setattr(ApprovalOperator, "execute", lambda self, context: "waits")
    run = tried_out(directory, context("ann", APPROVED, "first"), APPROVED)
    task = ApprovePlanOperator(task_id="approve")
    assert task.execute(run) == "waits"
    return task, run


def again(asked: Asked, event: dict[str, Any]) -> str:
    """Why an answer is asked for again."""
    task, run = asked
    with pytest.raises(AskedAgainError) as refused:
        task.execute_complete(RunContext(run), event)
    return str(refused.value)


def next_text(asked: Asked) -> str:
    """What the next attempt shows."""
    task, run = ApprovePlanOperator(task_id="approve"), dict(asked[1])
    run["ti"] = SimpleNamespace(try_number=2, id="ti-of-the-next-attempt")
    task.execute(run)
    return str(task.body)


@pytest.mark.slow
def test_what_is_shown_is_in_the_ledger_before_and_an_answer_to_it_approves(
    asked: Asked, ledger: Ledger
) -> None:
    task, run = asked
    (question,) = ledger.questions("p1")
    assert question.answered is None
    assert question.question.ti_id == run["ti"].id
    option = f"Approve {question.question.code}"
    assert task.options == [option, "Send back", "Reject"]
    assert f"choose `{option}`" in str(task.body)
    task.execute_complete(RunContext(run), Given(by="bob", user_id="7").event(task.options))
    record = ledger.plan("p1")
    assert (record.state, record.approved_by) == (PlanState.APPROVED, "bob (id 7)")
    assert record.approval is not None
    assert record.approval.terms == Terms.from_json(question.question.terms)
    assert record.approval.question_id == question.question_id


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Given("Approve", "bob").event([]), "another text than the one asked"),
        (Given("Approve 00000000", "bob").event([]), "another text than the one asked"),
        (Given("Go on", "bob").event([]), "no option that there was"),
        (
            Given().event([]) | {"responded_by_user": None, "chosen_options": ["Reject"]},
            "does not say who",
        ),
    ],
)
def test_an_answer_that_airflow_does_not_have_so_approves_nothing(
    given: dict[str, Any], why: str, asked: Asked, ledger: Ledger
) -> None:
    assert why in again(asked, given)
    assert answers_of(ledger, "p1") == [AnswerKind.NOT_COUNTED]
    assert ledger.plan("p1").state is PlanState.PLANNED
    assert why in next_text(asked)


@pytest.mark.slow
def test_who_has_asked_for_the_plan_is_known_by_id_and_by_name(
    asked: Asked, ledger: Ledger
) -> None:
    task, run = asked
    event = Given(by="Ann A.", user_id="ann").event(task.options)
    with pytest.raises(AirflowFailException, match="another person has to approve it"):
        task.resume_execution("execute_complete", {"event": event}, run)
    assert answers_of(ledger, "p1") == [AnswerKind.NOT_COUNTED]
    assert ledger.plan("p1").approval is None


def _rate(ledger: Ledger, directory: PlanDirectory) -> None:
    ledger.request_rate("p1", 2 * APPROVED, "ann")


def _summary(ledger: Ledger, directory: PlanDirectory) -> None:
    directory.write_json("summary.json", directory.read_json("summary.json") | {"partitions": 1})


def _report(ledger: Ledger, directory: PlanDirectory) -> None:
    directory.write_text("report.html", "nothing of it matters")


def _dry_run(ledger: Ledger, directory: PlanDirectory) -> None:
    directory.write_json("dry_run.json", directory.read_json("dry_run.json") | {"findings": []})
    directory.write_text("dry_run.json", directory.read_text("dry_run.json") + " ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_rate, "another throttle was asked for"),
        (_summary, "summary.json is not what was written when the plan was recorded"),
        (_report, "report.html is another one than the one that was linked"),
        (_dry_run, "dry_run.json is not what was written by the task"),
    ],
)
def test_what_changes_while_a_person_reads_is_asked_about_again(
    change: Callable[..., None],
    why: str,
    asked: Asked,
    ledger: Ledger,
    directory: PlanDirectory,
) -> None:
    change(ledger, directory)
    assert why in again(asked, Given(by="bob").event(asked[0].options))
    assert answers_of(ledger, "p1") == [AnswerKind.NOT_COUNTED]
    assert ledger.plan("p1").approval is None


def test_figures_that_were_changed_are_not_put_up_for_approval(
    directory: PlanDirectory, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answered(monkeypatch, lambda _: Given(by="bob"))
    run = tried_out(directory, context("ann", APPROVED, "first"), APPROVED)
    _summary(ledger, directory)
    with pytest.raises(AirflowFailException, match=r"summary\.json is not what was written"):
        ApprovePlanOperator(task_id="approve").execute(run)
    assert not found.bodies


@pytest.mark.slow
def test_a_question_from_before_the_upgrade_is_asked_again_in_words_that_say_so(
    asked: Asked, ledger: Ledger
) -> None:
    asked[1]["ti"].id = "an-attempt-that-an-earlier-rehome-has-begun"
    assert "before an upgrade of Rehome" in again(asked, Given(by="bob").event(asked[0].options))
    assert "before an upgrade of Rehome" in next_text(asked)
    assert ledger.plan("p1").approval is None


@pytest.mark.slow
def test_an_approval_from_before_the_upgrade_does_not_count_and_the_question_says_so(
    ledger: Ledger, directory: PlanDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = Terms(ledger.plan("p1").plan_hash, APPROVED)
    ledger.approve("p1", terms.plan_hash, "bob", terms, by_person=True, lasting_s=600)
    ledger.claim("p1")
    ledger.transition("p1", PlanState.PAUSED, "a test")
    found = answered(monkeypatch, lambda _: Given(by="carl"))
    run = tried_out(directory, context("ann", APPROVED, "first"), APPROVED)
    ApprovePlanOperator(task_id="approve").execute(run)
    assert (
        "The approval by bob does not hold any more, so you are asked anew: it was given"
        in (found.bodies[0])
    )
    approval = ledger.plan("p1").approval
    assert approval is not None
    assert approval.by == "carl"


@pytest.mark.slow
def test_a_ledger_that_is_away_when_a_person_answers_approves_nothing_and_it_is_asked_again(
    asked: Asked, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, run = asked

    def away(*_: object) -> None:
        raise LedgerUnavailableError("The ledger cannot be used now")

    with monkeypatch.context() as patched:
        patched.setattr("rehome.ledger.stores.plans.write_answer", away)
        event = Given(by="bob").event(task.options)
        with pytest.raises(AirflowException, match="The ledger cannot be used now") as refused:
            task.resume_execution("execute_complete", {"event": event}, run)
    assert not isinstance(refused.value, AirflowFailException), "Airflow tries again"
    assert ledger.plan("p1").approval is None
    assert "has no answer in the ledger" in next_text(asked)
    assert answers_of(ledger, "p1") == [None, None]


def test_an_old_text_of_airflows_is_noticed_and_nothing_is_asked_by_it(
    directory: PlanDirectory, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the API server runs without Rehome's plugin."""
    monkeypatch.setattr(
        hitl, "show_question", lambda asking, ti_id: ("an older text", asking.options)
    )
    run = tried_out(directory, context("ann", APPROVED, "first"), APPROVED)
    with pytest.raises(
        AskedAgainError, match="Airflow still shows the text of an earlier question"
    ):
        ApprovePlanOperator(task_id="approve").execute(run)
    assert ledger.plan("p1").approval is None


@pytest.mark.parametrize("done", ["nothing", "dry_run", "another's dry_run"])
def test_tasks_that_were_set_to_success_by_hand_are_not_done(
    done: str, directory: PlanDirectory, ledger: Ledger
) -> None:
    """The task `throttle` names the one that is not, and what to do."""
    run = context("ann", APPROVED, "first")
    if done != "nothing":
        by = run if done == "dry_run" else context("eve", APPROVED, "another")
        tried_out(directory, by, APPROVED)
    missing = "no person has" if done == "dry_run" else "so the task dry_run is not"
    with pytest.raises(AirflowFailException, match=missing):
        SetThrottleOperator(task_id="throttle", kafka_config_id="kafka_default").execute(run)
    assert ledger.plan("p1").state is PlanState.PLANNED


@pytest.mark.parametrize("state", [PlanState.PLANNED, PlanState.APPROVED])
def test_a_plan_whose_throttle_no_task_has_set_does_not_start(
    state: PlanState, directory: PlanDirectory, ledger: Ledger
) -> None:
    from rehome.sensors.reassignment import ReassignmentSensor

    plan_hash = ledger.plan("p1").plan_hash
    if state is PlanState.APPROVED:
        approve_as(ledger, "bob", "p1", Terms(plan_hash, APPROVED))
    run = context("ann", APPROVED, "first")
    for task in (
        StartReassignmentOperator(task_id="execute", kafka_config_id="kafka_default"),
        ReassignmentSensor(task_id="progress", kafka_config_id="kafka_default"),
    ):
        with pytest.raises(AirflowFailException, match="no task has set its throttle yet"):
            task.execute(run)
    assert ledger.plan("p1").state is state


def test_a_run_that_goes_on_faster_than_was_approved_is_stopped_whatever_its_tasks_states(
    directory: PlanDirectory, ledger: Ledger
) -> None:
    """Who resumes a plan that runs may name a throttle: `approve` asks about it first."""
    from rehome.run import approval_terms, run_request

    record = ledger.plan("p1")
    effects = Effects(leaders=True)
    approve_as(ledger, "bob", "p1", Terms(record.plan_hash, APPROVED, effects=effects))
    ledger.claim("p1")
    ledger.request_rate("p1", 3 * APPROVED, "eve")
    run = context("eve", APPROVED, "first")
    with pytest.raises(AirflowFailException, match="the rate would be 30000000 bytes per second"):
        StartReassignmentOperator(task_id="execute", kafka_config_id="kafka_default").execute(run)
    ledger.request_rate("p1", APPROVED, "eve")
    task = run_request.task_plan(RunContext(run), ledger.plan("p1"))
    approval_terms.refuse_unapproved(task)


def test_without_its_row_a_dry_run_says_nothing_of_the_rate(
    directory: PlanDirectory, ledger: Ledger
) -> None:
    from rehome.run import approval_terms, run_request

    run = tried_out(directory, context("ann", APPROVED, "first"), APPROVED)
    request = replace(run_request.plan_request(RunContext(run)), throttle_bytes_per_s=None)
    assert approval_terms.rate_of(RunContext(run), request, ledger.plan("p1"))[0] == APPROVED
    with ledger.writing() as connection:
        connection.execute(delete(DRY_RUNS))
    with pytest.raises(evidence.NotDoneError):
        approval_terms.rate_of(RunContext(run), request, ledger.plan("p1"))
