"""Airflow's questions: what it has of an answer, and that a next attempt shows its own text."""

from __future__ import annotations

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
