"""People who have been asked, and have approved."""

from __future__ import annotations

from datetime import UTC, datetime

from rehome.domain.run.approval.questions import Answered, AnswerKind, Question
from rehome.domain.run.approval_terms import Person, Terms
from rehome.ledger.store import Ledger


def ask(ledger: Ledger, plan_id: str, terms: Terms, asked_by: str | None = None) -> int:
    """Put a plan up for approval; the question's number."""
    record = ledger.plan(plan_id)
    question = Question(
        plan_id=plan_id,
        cluster_id=record.cluster_id,
        dag_id=record.dag_id or "",
        run_id=record.run_id,
        task_id="approve",
        try_number=1,
        ti_id=f"ti-of-{plan_id}",
        terms=terms.to_json(),
        digest=terms.digest,
        plan_asked_by=record.actor,
        run_asked_by=asked_by,
    )
    return ledger.ask(question)


def answers_of(ledger: Ledger, plan_id: str) -> list[AnswerKind | None]:
    """What has become of each question about a plan; None = it has no answer."""
    found = ledger.questions(plan_id)
    return [each.answered.answer if each.answered else None for each in found]


def approve_as(
    ledger: Ledger,
    name: str,
    plan_id: str,
    terms: Terms,
    *,
    lasting_s: float = 600,
    asked_by: str | None = None,
    user_id: str | None = None,
) -> None:
    """Have a person approve a plan who was asked."""
    person = Person(user_id or name, name)
    number = ask(ledger, plan_id, terms, asked_by)
    given = Answered(number, AnswerKind.APPROVED, person, datetime.now(UTC))
    ledger.approve(
        plan_id,
        terms.plan_hash,
        name,
        terms,
        by_person=True,
        lasting_s=lasting_s,
        asked_by=asked_by,
        answered=given,
    )
