"""What is wrong with the parameters of a run, before there is a run.

Airflow checks each parameter by its own JSON schema when a run is triggered. What depends on
several of them, names that there are not, and times, it cannot check. :mod:`rehome.api.guard` does,
by this module, for the form and for the REST API alike, and answers with every problem. What does
not come that way (``airflow dags trigger``, a DAG that triggers another, an asset, a backfill) is
refused by the first task of the run.

Nor does Airflow say that a run waits for a pool that is missing: only its scheduler's log does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from rehome.domain.request.fields.fleet_parameters import parse_fleet
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.partition_counts import parse_partition_counts
from rehome.domain.run.control_parameters import parse_control
from rehome.domain.run.foreign.foreign_request import parse_foreign
from rehome.errors import InvalidRequestError
from rehome.fleet.clusters import connection_of_dag, fill_params
from rehome.params import FORM_DEFAULTS, IN_WINDOWS

OURS = frozenset(
    {
        *("reassign_partitions", "rebalance_in_window", "add_partitions", "control_reassignment"),
        *("plan_fleet", "collect_snapshots", "sweep_throttles", "watch_clusters"),
        *("foreign_reassignments", "remove_old_data"),
    }
)
"""Rehome's DAGs. Those of single clusters have the cluster's name behind two underscores."""
POOL = "rehome_cluster"
"""Pool that limits the runs on clusters; a run that waits for its copies keeps its slot."""
DAGS_IN_POOL = frozenset({"reassign_partitions", "rebalance_in_window", "plan_fleet"})
"""DAGs whose first task waits in it, before the two underscores."""
OWN_DAGS = "reassign_partitions__"
"""With this begin the ids of people's own DAGs that reassign partitions: so the API server, which
reads no DAG's file, guards and records requests to them as it does for Rehome's.
"""
OWN_FOREIGN_DAGS = "foreign_reassignments__"
"""The same of those about what other clients have in flight."""


def is_ours(dag_id: str) -> bool:
    """Whether a DAG is one of Rehome's; every request to Airflow's API asks this."""
    return _base(dag_id) in OURS


def _of_people(dag_id: str) -> bool:
    """Whether a DAG is of people's own, with tasks of Rehome."""
    return dag_id.startswith((OWN_DAGS, OWN_FOREIGN_DAGS))


def problems_of(dag_id: str, conf: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with the parameters of a run of one of Rehome's DAGs; () = nothing."""
    check = _CHECKS.get(_base(dag_id))
    if check is None:
        return ()
    try:
        check(conf, dag_id)
    except InvalidRequestError as error:
        return error.problems
    return ()


def refusal_without_pool(dag_id: str) -> str:
    """Why no task of a run of this DAG would start; "" = nothing prevents it.

    DAGs of people's own may have another pool: nothing is said of them.
    """
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    if _base(dag_id) not in DAGS_IN_POOL or _of_people(dag_id):
        return ""
    with create_session() as session:
        has_pool = Pool.get_pool(POOL, session=session) is not None
    if has_pool:
        return ""
    return (
        f"Airflow has no pool {POOL}, so no task of this run would start. No run was triggered. "
        "Run `rehome settings import` in Airflow's environment, or add the pool by hand, with its "
        "deferred tasks included. Then trigger the run again."
    )


def _reassignment(conf: Mapping[str, Any], dag_id: str) -> None:
    if _of_people(dag_id):
        return  # what its author has fixed in its file, its first task judges
    now = datetime.now(UTC)
    own = IN_WINDOWS if _base(dag_id) == "rebalance_in_window" else {}
    given = {**FORM_DEFAULTS, **own, "kafka_config_id": connection_of_dag(dag_id), **conf}
    parse_request(fill_params(given, now).params, now=now)


def _partitions(conf: Mapping[str, Any], _dag_id: str) -> None:
    parse_partition_counts(conf)


def _control(conf: Mapping[str, Any], _dag_id: str) -> None:
    parse_control(conf)


def _foreign(conf: Mapping[str, Any], dag_id: str) -> None:
    if _of_people(dag_id):
        return  # as above
    parse_foreign(conf)


def _fleet(conf: Mapping[str, Any], _dag_id: str) -> None:
    parse_fleet(conf)


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], None]] = {
    "reassign_partitions": _reassignment,
    "rebalance_in_window": _reassignment,
    "add_partitions": _partitions,
    "control_reassignment": _control,
    "plan_fleet": _fleet,
    "foreign_reassignments": _foreign,
}


def _base(dag_id: str) -> str:
    """As ``rehome.fleet.clusters.base_of``, which is loaded only where there is something of
    Rehome's to check.
    """
    return dag_id.split("__")[0]
