"""Airflow's questions: what it has of an answer, and that a next attempt shows its own text."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.domain.run.approval_terms import Person
from rehome.run.asking import hitl
from rehome.run.asking.hitl import HumanAnswer

AT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        (
            {
                "chosen_options": ["Approve ab12"],
                "params_input": {"throttle": "5 MB/s"},
                "responded_by_user": {"id": "7", "name": "ann"},
                "responded_at": AT,
                "timedout": False,
            },
            HumanAnswer("Approve ab12", {"throttle": "5 MB/s"}, Person("7", "ann"), AT),
        ),
        ({"chosen_options": ["Approve"], "responded_by_user": None}, HumanAnswer("Approve")),
        ({"chosen_options": ["Approve", "Reject"]}, HumanAnswer("")),
        ({"error": "late", "error_type": "timeout"}, HumanAnswer("", timed_out=True)),
        ({"chosen_options": ["Approve"], "timedout": True}, HumanAnswer("Approve", timed_out=True)),
    ],
)
def test_only_a_user_that_airflow_names_has_answered(
    event: dict[str, Any], answer: HumanAnswer
) -> None:
    assert hitl.answer_in(event) == answer


def test_a_question_goes_into_the_history_and_the_next_attempt_has_none(
    airflow_database: None,
) -> None:
    """Airflow's own way would show the old text, and options, for whatever is asked next."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.hitl_history import HITLDetailHistory
    from airflow.models.taskinstance import TaskInstance
    from airflow.sdk import DAG
    from airflow.sdk.bases.operator import BaseOperator
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from tests.dags.runs import register

    class Nothing(BaseOperator):
        def execute(self, context: Any) -> None: ...

    with DAG("asks_again", schedule=None) as dag:
        Nothing(task_id="approve")
    run = register(dag).test()
    hitl.forget_earlier_questions()
    hitl.forget_earlier_questions()
    with create_session() as session:
        of_run = TaskInstance.dag_id == dag.dag_id, TaskInstance.run_id == run.run_id
        task = session.scalar(select(TaskInstance).where(*of_run))
        assert task is not None
        first = task.id
        session.add(HITLDetail(ti_id=first, options=["Approve 1"], subject="?", body="first"))
        session.flush()
        task.prepare_db_for_next_try(session)
        session.flush()
        assert task.id != first
        # Other tests have asked questions as well.
        left = select(HITLDetail.body).where(HITLDetail.ti_id.in_([first, task.id]))
        assert session.scalars(left).all() == []
        of_first = HITLDetailHistory.ti_history_id == first
        past = session.scalars(select(HITLDetailHistory).where(of_first)).all()
        assert [each.body for each in past] == ["first"]


@pytest.mark.parametrize(("operator", "left"), [("ApprovePlanOperator", 0), ("Another", 1)])
def test_where_airflow_keeps_no_history_of_questions_rehomes_own_are_forgotten_too(
    airflow_database: None, operator: str, left: int
) -> None:
    """As Airflow 3.1 does it: an attempt goes into the history, and its question does not."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.taskinstancehistory import TaskInstanceHistory
    from airflow.sdk import DAG
    from airflow.sdk.bases.operator import BaseOperator
    from airflow.utils.session import create_session
    from sqlalchemy import func, select

    from tests.dags.runs import register

    asks = type(operator, (BaseOperator,), {"execute": lambda self, context: None})
    with DAG(f"asks_in_3_1_{operator}", schedule=None) as dag:
        asks(task_id="approve")
    run = register(dag).test()
    hitl.forget_earlier_questions()
    with create_session() as session:
        of_run = TaskInstance.dag_id == dag.dag_id, TaskInstance.run_id == run.run_id
        task = session.scalar(select(TaskInstance).where(*of_run))
        assert task is not None
        session.add(HITLDetail(ti_id=task.id, options=["Approve 1"], subject="?", body="first"))
        session.flush()
        session.add(TaskInstanceHistory(task, state="failed"))
        session.flush()
        kept = select(func.count()).where(HITLDetail.ti_id == task.id)
        assert session.scalar(kept) == left
        session.rollback()


def test_the_operators_that_ask_are_known_by_their_names() -> None:
    from rehome.operators.add_partitions import ApprovePartitionsOperator
    from rehome.operators.approval.approve import ApprovePlanOperator
    from rehome.operators.approval.asking import AskingOperator
    from rehome.operators.foreign.approve import ApproveForeignOperator

    ours = {ApproveForeignOperator, ApprovePartitionsOperator, ApprovePlanOperator}
    asking, ahead = set[type](), [AskingOperator]
    while ahead:
        ahead += (below := ahead.pop().__subclasses__())
        asking |= {each for each in below if not inspect.isabstract(each)}
    assert ours == {each for each in asking if each.__module__ != __name__}
    assert {each.__name__ for each in ours} == hitl.ASKING
