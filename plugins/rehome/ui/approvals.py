"""Runs that wait for a person's approval, as Airflow knows them."""

from __future__ import annotations

from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from sqlalchemy import select

from rehome.airflow_versions import asking_states
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord


def asking_task(record: PlanRecord) -> str | None:
    """The task of the plan's run that waits for a person; None = none does."""
    if record.dag_id is None or record.state not in (PlanState.PLANNED, PlanState.PAUSED):
        return None
    query = (
        select(TaskInstance.task_id)
        .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
        .where(
            TaskInstance.dag_id == record.dag_id,
            TaskInstance.run_id == record.run_id,
            TaskInstance.state.in_(asking_states()),
            HITLDetail.responded_at.is_(None),
        )
        .limit(1)
    )
    with create_session() as session:
        found: str | None = session.scalar(query)
    return found
