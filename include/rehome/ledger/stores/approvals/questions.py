"""Questions to people: rows that are only added; the answer of each is written once."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select, update

from rehome.domain.clock import Clock
from rehome.domain.run.approval.questions import (
    Answered,
    AnswerKind,
    NoQuestion,
    Question,
    QuestionRecord,
)
from rehome.domain.run.approval_terms import Person
from rehome.domain.run.askers import Term
from rehome.errors import PlanConflictError
from rehome.ledger.base.approval_tables import QUESTIONS
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.base.database import Database
from rehome.ledger.stores.audit.entries import by_task, write_audit


class QuestionStore(Database):
    """What was asked of people, and what they have answered."""

    def ask(self, question: Question) -> int:
        """Write a question down before it is shown; its number. Where no person is asked, the row
        is complete with that.
        """
        values: dict[str, Any] = {**asdict(question), "terms": dict(question.terms)}
        with self.writing() as connection:
            now = self._clock()
            values["shown_at"] = now
            if question.not_asked is not None:
                values |= {"answer": AnswerKind.NOT_ASKED, "recorded_at": now}
            key = QUESTIONS.c.question_id
            added = QUESTIONS.insert().values(**values).returning(key)
            return int(connection.execute(added).scalar_one())

    def question_of(self, ti_id: str) -> QuestionRecord | None:
        """What a task instance has asked last; None = nothing that this ledger knows of."""
        return self._last(select(QUESTIONS).where(QUESTIONS.c.ti_id == ti_id))

    def last_question(self, plan_id: str) -> QuestionRecord | None:
        """What was asked last of a plan, or of new partitions; None = nothing."""
        return self._last(select(QUESTIONS).where(QUESTIONS.c.plan_id == plan_id))

    def unanswered_question(self, cluster_id: str, dag_id: str) -> QuestionRecord | None:
        """What runs of a DAG have asked last about a cluster, and nobody has answered; None =
        nothing.
        """
        query = select(QUESTIONS).where(
            QUESTIONS.c.cluster_id == cluster_id,
            QUESTIONS.c.dag_id == dag_id,
            QUESTIONS.c.answer.is_(None),
        )
        return self._last(query)

    def questions(self, plan_id: str) -> list[QuestionRecord]:
        """All that was asked of a plan, or of new partitions, oldest first."""
        query = select(QUESTIONS).where(QUESTIONS.c.plan_id == plan_id)
        with self.reading() as connection:
            rows = connection.execute(query.order_by(QUESTIONS.c.question_id)).mappings().all()
        return [_record(row) for row in rows]

    def record_answer(self, answered: Answered) -> None:
        """Write what has become of a question.

        :raises PlanConflictError: it has an answer already.
        """
        with self.writing() as connection:
            write_answer(connection, answered, self._clock)

    def _last(self, query: Select[Any]) -> QuestionRecord | None:
        with self.reading() as connection:
            newest = query.order_by(QUESTIONS.c.question_id.desc()).limit(1)
            row = connection.execute(newest).mappings().one_or_none()
        return None if row is None else _record(row)


def write_answer(connection: Connection, answered: Answered, clock: Clock) -> None:
    """Within a transaction that writes what follows from it, too.

    :raises PlanConflictError: the question has an answer already, or is none.
    """
    by, now = answered.by, clock()
    its_row = QUESTIONS.c.question_id == answered.question_id
    done = connection.execute(
        update(QUESTIONS)
        .where(its_row, QUESTIONS.c.answer.is_(None))
        .values(
            answer=answered.answer,
            answered_by_id=by and by.id,
            answered_by_name=by and by.name,
            answered_at=answered.at,
            detail=answered.detail,
            recorded_at=now,
        )
    )
    if done.rowcount != 1:
        raise PlanConflictError(
            f"The answer to question {answered.question_id} cannot be recorded: the question has "
            "an answer already, which counts, or this ledger does not have the question",
            state_left="Nothing is approved by this answer.",
            next_step="Clear the task that asks, with what comes after it: it asks again.",
        )
    if by is not None:
        row = connection.execute(select(QUESTIONS).where(its_row)).mappings().one()
        who = by_task(Decided.ANSWERED, by.name, row)
        detail = {"answer": answered.answer.value, "question": answered.question_id}
        write_audit(connection, now, replace(who, user_id=by.id or None, detail=detail))


def _record(row: RowMapping) -> QuestionRecord:
    values = {item.name: row[item.name] for item in fields(Question)}
    values["terms_asked_by"] = {Term(term): who for term, who in row["terms_asked_by"].items()}
    values["not_asked"] = row["not_asked"] and NoQuestion(row["not_asked"])
    answered = None
    if row["answer"] is not None:
        has_person = row["answered_by_id"] is not None or row["answered_by_name"] is not None
        answered = Answered(
            row["question_id"],
            AnswerKind(row["answer"]),
            Person(row["answered_by_id"] or "", row["answered_by_name"] or "")
            if has_person
            else None,
            row["answered_at"],
            row["detail"] or "",
        )
    return QuestionRecord(
        row["question_id"], Question(**values), row["shown_at"], answered, row["recorded_at"]
    )
