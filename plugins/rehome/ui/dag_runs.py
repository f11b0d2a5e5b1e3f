"""Runs of DAGs that the page triggers, and how far they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select

from rehome.account.clusters.cluster_evidence import WindowAhead
from rehome.account.requests import RequestLine, RequestState
from rehome.domain.run.states import Control
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import ANYTHING, ConnectionPolicy
from rehome.fleet import clusters, policies
from rehome.fleet.clusters import WINDOW_DAG
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.ui.access import CONTROL_DAG, VIEWED_DAG

PLANNING_DAGS = (VIEWED_DAG, "rebalance_in_window")


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is.

    :param ended: whether nothing more happens to its run.
    :param failed: whether it was refused, or did not work.
    """

    ended: bool
    failed: bool


def policy_of(ledger: Ledger, plan: PlanRecord, connection: str | None) -> ConnectionPolicy:
    """What may be done for a plan through a connection; what is wrong with it, the run itself says.

    Policies of other connections to its cluster are taken from the ledger, as last read.
    """
    if connection is None:
        return ANYTHING
    try:
        return policies.policy_of_cluster(
            ledger, plan.cluster_id, connection, plan, as_last_read=True
        )
    except InvalidRequestError:
        return ANYTHING


def trigger(dag_id: str, conf: Mapping[str, Any], user: str) -> str:
    """Trigger a DAG in a user's name; returns the run's id."""
    run = trigger_dag(
        dag_id,
        triggered_by=DagRunTriggeredByType.UI,
        triggering_user_name=user,
        conf=dict(conf),
        replace_microseconds=False,
    )
    assert run is not None
    return str(run.run_id)


def trigger_control(
    plan_id: str, control: Control, connection: str, params: Mapping[str, Any], user: str
) -> str:
    """Trigger `control_reassignment` in a user's name; returns the run's id.

    :param params: parameters that go with the request: a throttle, moves at once.
    """
    conf = {
        "plan_id": plan_id,
        "action": control.value,
        "kafka_config_id": connection,
        **params,
    }
    return trigger(CONTROL_DAG, conf, user)


def outcome(dag_id: str, run_id: str) -> RunProgress:
    """What has become of a run."""
    query = select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
    with create_session() as session:
        state = session.scalar(query)
    ended = state in (None, DagRunState.SUCCESS, DagRunState.FAILED)
    return RunProgress(ended, failed=ended and state != DagRunState.SUCCESS)


def windows_ahead(connections: Iterable[str]) -> dict[str, WindowAhead]:
    """The next window of each cluster that has one, by the connection that leads to it."""
    dags = clusters.dags_for(WINDOW_DAG, connections)
    query = select(
        DagModel.dag_id,
        DagModel.next_dagrun_data_interval_start,
        DagModel.next_dagrun_data_interval_end,
        DagModel.is_paused,
    ).where(DagModel.dag_id.in_(set(dags.values())))
    with create_session() as session:
        ahead = {
            dag_id: WindowAhead(opens.astimezone(UTC), closes.astimezone(UTC), bool(paused))
            for dag_id, opens, closes, paused in session.execute(query)
            if opens is not None and closes is not None
        }
    return {through: ahead[dag_id] for through, dag_id in dags.items() if dag_id in ahead}


def paused_dags(dag_ids: Iterable[str]) -> frozenset[str]:
    """Those of some DAGs that are paused in Airflow."""
    query = select(DagModel.dag_id).where(
        DagModel.dag_id.in_(set(dag_ids)), DagModel.is_paused.is_(True)
    )
    with create_session() as session:
        return frozenset(session.scalars(query))


def unfinished_runs() -> list[RequestLine]:
    """Runs that are on their way to a plan, or to carry one out; of some, that is done already."""
    query = select(
        DagRun.dag_id, DagRun.run_id, DagRun.run_after, DagRun.triggering_user_name, DagRun.conf
    ).where(DagRun.state.in_((DagRunState.QUEUED, DagRunState.RUNNING)))
    with create_session() as session:
        rows = session.execute(query).all()
    lines = []
    for dag_id, run_id, at, by, conf in rows:
        if clusters.base_of(dag_id) not in PLANNING_DAGS:
            continue
        about = conf.get("plan_id") if isinstance(conf, Mapping) else None
        state = RequestState.STARTING if about else RequestState.PLANNING
        lines.append(RequestLine(dag_id, run_id, state, at.astimezone(UTC), by or "", about))
    return lines


def steps(dag_id: str, run_id: str, task_ids: Sequence[str]) -> dict[str, str]:
    """The states of some tasks of a run, by Airflow's names; "" = not begun."""
    query = select(TaskInstance.task_id, TaskInstance.state).where(
        TaskInstance.dag_id == dag_id,
        TaskInstance.run_id == run_id,
        TaskInstance.task_id.in_(task_ids),
    )
    with create_session() as session:
        states = {task_id: state or "" for task_id, state in session.execute(query)}
    return {task_id: states.get(task_id, "") for task_id in task_ids}
