"""Questions are rows that are added; the answer of each is written once, with what follows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from rehome.domain.run.approval.questions import Answered, AnswerKind, NoQuestion, Question
from rehome.domain.run.approval_terms import Person, Terms
from rehome.domain.run.askers import Term
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.base.approval_tables import QUESTIONS
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.base.database import LedgerUnavailableError
from rehome.ledger.store import Ledger
from tests.ledger.audit_rows import audit_of
from tests.ledger.people import answers_of, ask
from tests.ledger.small_plans import make_plan

AT = datetime(2030, 1, 1, 2, tzinfo=UTC)
ANN = Person("7", "ann")
PLAN = make_plan("p1")
TERMS = Terms(PLAN.plan_hash, 5_000_000)
QUESTION = Question(
    plan_id="p1",
    cluster_id="c",
    dag_id="reassign_partitions",
    run_id="run-1",
    task_id="approve",
    try_number=2,
    ti_id="ti-2",
    terms=TERMS.to_json(),
    digest=TERMS.digest,
    shown={"text": "a" * 64, "report.html": "b" * 64},
    plan_asked_by="bob",
    run_asked_by="carl",
    terms_asked_by={Term.RATE: "dan"},
)


def test_a_question_is_read_as_it_was_shown_by_the_attempt_that_shows_it(ledger: Ledger) -> None:
    number = ledger.ask(QUESTION)
    found = ledger.question_of("ti-2")
    assert found is not None
    assert (found.question_id, found.question, found.answered) == (number, QUESTION, None)
    assert Terms.from_json(found.question.terms) == TERMS
    with ledger.reading() as connection:
        assert connection.execute(select(QUESTIONS.c.answer)).scalars().all() == [None]
    assert found.question.askers.what == {
        "bob": ("the plan",),
        "carl": ("the run",),
        "dan": ("the throttle",),
    }
    assert ledger.question_of("ti-3") is None


def test_an_answer_is_written_once(ledger: Ledger) -> None:
    number = ledger.ask(QUESTION)
    given = Answered(number, AnswerKind.REJECTED, ANN, AT)
    ledger.record_answer(given)
    with pytest.raises(PlanConflictError, match="has an answer already"):
        ledger.record_answer(Answered(number, AnswerKind.APPROVED, Person("8", "eve"), AT))
    (found,) = ledger.questions("p1")
    assert found.answered == given
    assert found.recorded_at is not None
    (entry,) = audit_of(ledger)
    assert (entry.decision, entry.user_id, entry.user_name) == (Decided.ANSWERED, "7", "ann")


def test_a_person_and_the_approval_are_in_the_ledger_together_or_not_at_all(
    ledger: Ledger,
) -> None:
    ledger.create_plan(PLAN, {}, "file:///nowhere", "run-1", "bob")
    number = ask(ledger, "p1", TERMS)
    given = Answered(number, AnswerKind.APPROVED, ANN, AT)
    ledger.approve("p1", PLAN.plan_hash, "ann", TERMS, by_person=True, lasting_s=9, answered=given)
    assert answers_of(ledger, "p1") == [AnswerKind.APPROVED]
    slower = Terms(PLAN.plan_hash, 1)
    with pytest.raises(PlanConflictError, match="has an answer already"):
        ledger.approve(
            "p1", PLAN.plan_hash, "eve", slower, by_person=True, lasting_s=9, answered=given
        )
    approval = ledger.plan("p1").approval
    assert approval is not None
    assert (approval.terms, approval.person, approval.question_id) == (TERMS, ANN, number)


def test_where_nobody_was_asked_the_approval_names_no_person(ledger: Ledger) -> None:
    ledger.create_plan(PLAN, {}, "file:///nowhere", "run-1", "bob")
    ledger.approve("p1", PLAN.plan_hash, "bob", TERMS, lasting_s=9)
    record = ledger.plan("p1")
    assert record.approval is not None
    assert (record.state, record.approved_by, record.approver) == (PlanState.APPROVED, None, None)
    assert (record.approval.by, record.approval.by_whom) == ("", "the run's own parameters")


def test_what_needs_no_person_is_complete_with_the_reason(ledger: Ledger) -> None:
    ledger.ask(replace(QUESTION, not_asked=NoQuestion.NOT_REQUIRED))
    found = ledger.last_question("p1")
    assert found is not None
    assert found.answered == Answered(found.question_id, AnswerKind.NOT_ASKED)
    with pytest.raises(PlanConflictError):
        ledger.record_answer(Answered(found.question_id, AnswerKind.APPROVED, ANN, AT))


def test_an_approval_goes_by_a_code_of_all_that_was_shown() -> None:
    shown = dict(QUESTION.shown)
    others = [
        replace(QUESTION, shown=shown | {"text": "c" * 64}),
        replace(QUESTION, shown=shown | {"report.html": "c" * 64}),
        replace(QUESTION, digest="c" * 64),
    ]
    codes = {QUESTION.code, *(other.code for other in others)}
    assert len(codes) == 4
    assert replace(QUESTION, ti_id="ti-9", try_number=9).code == QUESTION.code


def test_a_ledger_that_is_away_has_no_answer_and_nothing_is_approved(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.create_plan(PLAN, {}, "file:///nowhere", "run-1", "bob")
    number = ask(ledger, "p1", TERMS)
    monkeypatch.setattr("rehome.ledger.stores.plans.write_answer", _away)
    given = Answered(number, AnswerKind.APPROVED, ANN, AT)
    with pytest.raises(LedgerUnavailableError):
        ledger.approve("p1", PLAN.plan_hash, "ann", TERMS, by_person=True, answered=given)
    assert ledger.plan("p1").state is PlanState.PLANNED
    assert ledger.plan("p1").approval is None
    assert answers_of(ledger, "p1") == [None]


def _away(*_: object) -> None:
    raise LedgerUnavailableError("The ledger cannot be used now")
