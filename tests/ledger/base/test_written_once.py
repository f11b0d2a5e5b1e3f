"""Questions and their answers stay as they were written, whoever writes to the database."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import DBAPIError, IntegrityError

from rehome.domain.run.approval.questions import Answered, AnswerKind
from rehome.ledger.base.approval_tables import QUESTIONS
from rehome.ledger.migrations import written_once
from rehome.ledger.store import Ledger
from tests.ledger.base.test_append_only import by_another_client
from tests.ledger.stores.approvals.test_questions import ANN, AT, QUESTION

OPEN = "question_id = 2"


def _asked(ledger: Ledger) -> None:
    """One that ann has rejected, and one that is open."""
    number = ledger.ask(QUESTION)
    ledger.record_answer(Answered(number, AnswerKind.REJECTED, ANN, AT))
    ledger.ask(replace(QUESTION, ti_id="ti-3"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE questions SET answer = 'approved'",
        "UPDATE questions SET answer = NULL WHERE question_id = 1",
        "UPDATE questions SET answered_by_name = 'eve' WHERE question_id = 1",
        "UPDATE questions SET detail = '' WHERE question_id = 1",
        f"UPDATE questions SET terms = '{{}}' WHERE {OPEN}",
        f"UPDATE questions SET digest = 'd', answer = 'approved' WHERE {OPEN}",
        f"UPDATE questions SET run_asked_by = 'eve' WHERE {OPEN}",
        f"UPDATE questions SET question_id = 9 WHERE {OPEN}",
        "DELETE FROM questions WHERE question_id = 1",
        f"DELETE FROM questions WHERE {OPEN}",
    ],
)
def test_neither_question_nor_answer_is_changed_or_removed(ledger: Ledger, statement: str) -> None:
    _asked(ledger)
    before = ledger.questions("p1")
    with pytest.raises(IntegrityError, match="are written once"):
        by_another_client(ledger, statement)
    assert ledger.questions("p1") == before


def test_an_open_question_is_answered_and_then_it_is_closed(ledger: Ledger) -> None:
    _asked(ledger)
    ledger.record_answer(Answered(2, AnswerKind.REJECTED, ANN, AT))
    with pytest.raises(IntegrityError, match="are written once"):
        by_another_client(ledger, f"UPDATE questions SET answered_by_name = 'eve' WHERE {OPEN}")


def test_no_question_is_put_in_place_of_another_nor_all_of_them_away(ledger: Ledger) -> None:
    _asked(ledger)
    before = ledger.questions("p1")
    columns = ", ".join(c.name for c in QUESTIONS.columns if c.name != "question_id")
    copied = f"questions (question_id, {columns}) SELECT 1, {columns} FROM questions WHERE {OPEN}"
    with pytest.raises(DBAPIError):  # PostgreSQL knows no REPLACE, nor SQLite the other one
        by_another_client(ledger, f"INSERT OR REPLACE INTO {copied}")
    with pytest.raises(DBAPIError):
        by_another_client(ledger, "TRUNCATE questions")
    assert ledger.questions("p1") == before


def test_every_column_is_the_questions_or_the_answers(ledger: Ledger) -> None:
    """One that is added belongs to either."""
    answers = {"answer", "answered_by_id", "answered_by_name", "answered_at", "detail"}
    there = {column["name"] for column in inspect(ledger.engine).get_columns("questions")}
    assert there == {*written_once.ASKED, *answers, "recorded_at"}


def test_a_migration_may_rewrite_the_table(ledger: Ledger) -> None:
    _asked(ledger)
    with ledger.writing() as connection, written_once.rewriting(connection):
        connection.exec_driver_sql("UPDATE questions SET detail = 'anew' WHERE question_id = 1")
    with pytest.raises(IntegrityError, match="are written once"):
        by_another_client(ledger, "UPDATE questions SET detail = '' WHERE question_id = 1")
