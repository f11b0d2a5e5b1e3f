"""Runs of `control_reassignment` that the page triggers, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select

from include.domain.run.states import Control
from include.errors import InvalidRequestError
from include.execution.access.connection_policy import ANYTHING, ConnectionPolicy
from rehome.hooks.cluster import KafkaClusterHook
from rehome.ui.access import CONTROL_DAG


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a request is.

    :param ended: whether nothing more happens to its run.
    :param failed: whether it was refused, or did not work.
    """

    ended: bool
    failed: bool


def policy_of(connection: str | None) -> ConnectionPolicy:
    """What may be done through a connection; what is wrong with it, the run itself says."""
    if connection is None:
        return ANYTHING
    try:
        return KafkaClusterHook(connection).policy
    except InvalidRequestError:
        return ANYTHING


def trigger(
    plan_id: str, control: Control, connection: str, rate_bytes_per_s: int | None, user: str
) -> str:
    """Trigger `control_reassignment` in a user's name; returns the run's id."""
    run = trigger_dag(
        CONTROL_DAG,
        triggered_by=DagRunTriggeredByType.UI,
        triggering_user_name=user,
        conf={
            "plan_id": plan_id,
            "action": control.value,
            "kafka_config_id": connection,
            "throttle": rate_bytes_per_s,
        },
        replace_microseconds=False,
    )
    assert run is not None
    return str(run.run_id)


def outcome(run_id: str) -> Outcome:
    """What has become of a run."""
    query = select(DagRun.state).where(DagRun.dag_id == CONTROL_DAG, DagRun.run_id == run_id)
    with create_session() as session:
        state = session.scalar(query)
    ended = state in (None, DagRunState.SUCCESS, DagRunState.FAILED)
    return Outcome(ended, failed=ended and state != DagRunState.SUCCESS)
