"""The run as the one that drives a plan: it alone changes the plan's cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk.api.client import ServerResponseError
from airflow.sdk.exceptions import AirflowRuntimeError

from rehome import installation
from rehome.execution.access.own_cluster import OwnCluster
from rehome.ledger.base.records import driver_name
from rehome.run import run_params

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.cluster.interface.port import ClusterPort
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.execution.access.lease import LeasedCluster
    from rehome.execution.control.controller import Controller
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger


def driver_of(context: Context | Mapping[str, Any], record: PlanRecord | None = None) -> str:
    """The run as the owner of a lease.

    :param record: of the plan to act on; a plan of an earlier Rehome knows no DAG.
    """
    run = context["dag_run"]
    dag_id = None if record is not None and record.dag_id is None else run.dag_id
    return driver_name(dag_id, run.run_id)


def drives(context: Context | Mapping[str, Any], record: PlanRecord) -> bool:
    """Whether the run is the one that drives the plan."""
    return driver_of(context, record) == record.driver


@contextmanager
def driving(
    context: Context | Mapping[str, Any],
    ledger: Ledger,
    cluster: ClusterPort,
    record: PlanRecord,
    **options: Any,
) -> Iterator[LeasedCluster]:
    """Act on a plan's cluster as the run that drives the plan: see ``lease.hold``.

    :param options: ``wait_s`` and ``release``, as there.
    :raises PlanConflictError: another run drives the plan by now.
    :raises WrongClusterError: the connection leads to another cluster than the plan's.
    """
    from rehome.execution.access.lease import hold, ttl_s

    own = OwnCluster.of_plan(cluster, record)
    owner, lasting_s = driver_of(context, record), ttl_s(installation.settings())
    options["plan_id"] = record.plan_id
    with hold(ledger, own, owner, lasting_s, **options) as held:
        yield held


def controller(
    context: Context | Mapping[str, Any],
    ledger: Ledger,
    cluster: ClusterPort,
    policy: ConnectionPolicy,
) -> Controller:
    """Passes requests to plans on, in the name of the user who triggered the run, within the
    policy.
    """
    from rehome.execution.access.lease import ttl_s
    from rehome.execution.control.controller import Controller

    actor, lease_s = run_params.actor_of(context), ttl_s(installation.settings())
    return Controller(
        *(ledger, cluster, actor, lease_s, driver_of(context), policy),
        dag_paused=partial(dag_paused, context),
    )


def dag_paused(context: Context | Mapping[str, Any], dag_id: str) -> bool | None:
    """Whether a DAG is paused in Airflow; None = Airflow knows no such DAG, or cannot be asked.

    A task has no access to Airflow's database: it asks the execution API.
    """
    ask = getattr(context.get("ti"), "get_dag", None)  # not every Airflow has it
    if ask is None:
        return None
    try:
        return bool(ask(dag_id).is_paused)
    except (AirflowRuntimeError, ServerResponseError) as error:
        log.warning("Whether the DAG %s is paused is not known: %s", dag_id, error)
        return None
