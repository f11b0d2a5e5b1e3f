"""What Airflow's API lets people change of a DAG: each route, the right that it needs, what it is.

A test compares the table with Airflow's own routes. Paths are matched by Starlette's own regular
expressions, so that both always mean the same request: ``/dagRuns%0A`` triggers a run, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rehome.ledger.base.audit_entry import Decided

if TYPE_CHECKING:
    from starlette.types import Scope

API = "/api/v2"
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
ANY_DAG = "~"
"""In the place of a DAG's id: the body names the DAGs."""


@dataclass(frozen=True, slots=True)
class AirflowRoute:
    """One of Airflow's routes that change something of a DAG.

    :param path: as Airflow declares it, below ``/api/v2``.
    :param right: Airflow's name of the method that is_authorized_dag is asked for.
    :param entity: name of Airflow's DagAccessEntity; "" = the DAG itself.
    :param decided: what it is in the audit; None = it changes nothing of a run.
    :param of_any: its body, or its answer, may name other DAGs than the path does.
    :param by_default_dry: it changes nothing unless its body says ``"dry_run": false``.
    """

    method: str
    path: str
    right: str
    entity: str = ""
    decided: Decided | None = None
    by_default_dry: bool = False
    of_any: bool = False


_DAG = "/dags/{dag_id}"
_RUNS = f"{_DAG}/dagRuns"
_RUN = f"{_RUNS}/{{dag_run_id}}"
_TASKS = f"{_RUN}/taskInstances"
_TASK = f"{_TASKS}/{{task_id}}"
_GROUP = f"{_RUN}/taskGroupInstances/{{group_id}}"
_STORE = f"{_TASK}/state-store"
_RUN_RIGHT, _TASK_RIGHT, _XCOM_RIGHT = "RUN", "TASK_INSTANCE", "XCOM"

ROUTES: tuple[AirflowRoute, ...] = (
    AirflowRoute("POST", _RUNS, "POST", _RUN_RIGHT, Decided.TRIGGERED),
    # Of these two, Airflow asks for rights by what the body names; to read is the least of them.
    AirflowRoute("PATCH", _RUNS, "GET", _RUN_RIGHT, Decided.RUN_STATE_SET, of_any=True),
    AirflowRoute(
        "POST", f"{_DAG}/clearDagRuns", "GET", _RUN_RIGHT, Decided.CLEARED, True, of_any=True
    ),
    AirflowRoute("POST", f"{_DAG}/clearPartitions", "PUT", _RUN_RIGHT, Decided.CLEARED, True),
    AirflowRoute("POST", f"{_RUN}/clear", "PUT", _RUN_RIGHT, Decided.CLEARED, True),
    AirflowRoute("POST", f"{_DAG}/clearTaskInstances", "PUT", _TASK_RIGHT, Decided.CLEARED, True),
    AirflowRoute("PATCH", _RUN, "PUT", _RUN_RIGHT, Decided.RUN_STATE_SET),
    AirflowRoute("DELETE", _RUN, "DELETE", _RUN_RIGHT, Decided.DELETED),
    AirflowRoute("PATCH", _GROUP, "PUT", _TASK_RIGHT, Decided.TASK_STATE_SET),
    AirflowRoute("PATCH", f"{_GROUP}/dry_run", "PUT", _TASK_RIGHT),
    AirflowRoute("PATCH", _TASKS, "PUT", _TASK_RIGHT, Decided.TASK_STATE_SET, of_any=True),
    AirflowRoute("PATCH", f"{_TASK}/dry_run", "PUT", _TASK_RIGHT),
    AirflowRoute("PATCH", f"{_TASK}/{{map_index}}/dry_run", "PUT", _TASK_RIGHT),
    AirflowRoute("PATCH", _TASK, "PUT", _TASK_RIGHT, Decided.TASK_STATE_SET),
    AirflowRoute("PATCH", f"{_TASK}/{{map_index}}", "PUT", _TASK_RIGHT, Decided.TASK_STATE_SET),
    AirflowRoute("DELETE", _TASK, "DELETE", _TASK_RIGHT, Decided.DELETED),
    AirflowRoute(
        "PATCH", f"{_TASK}/{{map_index}}/hitlDetails", "PUT", "HITL_DETAIL", Decided.ANSWERED
    ),
    AirflowRoute("POST", f"{_TASK}/xcomEntries", "POST", _XCOM_RIGHT, Decided.XCOM_WRITTEN),
    AirflowRoute(
        "PATCH", f"{_TASK}/xcomEntries/{{xcom_key:path}}", "PUT", _XCOM_RIGHT, Decided.XCOM_WRITTEN
    ),
    AirflowRoute(
        "DELETE",
        f"{_TASK}/xcomEntries/{{xcom_key:path}}",
        "DELETE",
        _XCOM_RIGHT,
        Decided.XCOM_WRITTEN,
    ),
    AirflowRoute("PUT", f"{_STORE}/{{key:path}}", "PUT", _TASK_RIGHT, Decided.TASK_STORE_WRITTEN),
    AirflowRoute("PATCH", f"{_STORE}/{{key:path}}", "PUT", _TASK_RIGHT, Decided.TASK_STORE_WRITTEN),
    AirflowRoute(
        "DELETE", f"{_STORE}/{{key:path}}", "DELETE", _TASK_RIGHT, Decided.TASK_STORE_WRITTEN
    ),
    AirflowRoute("DELETE", _STORE, "DELETE", _TASK_RIGHT, Decided.TASK_STORE_WRITTEN),
    AirflowRoute("PATCH", _DAG, "PUT", decided=Decided.DAG_CHANGED),
    AirflowRoute("DELETE", _DAG, "DELETE", decided=Decided.DELETED),
    # These say only in their answer which DAG it was.
    AirflowRoute("POST", "/backfills", "POST", _RUN_RIGHT, Decided.TRIGGERED, of_any=True),
    AirflowRoute(
        "POST",
        "/assets/{asset_id}/materialize",
        "POST",
        _RUN_RIGHT,
        Decided.TRIGGERED,
        of_any=True,
    ),
)
_BELOW_DAG = AirflowRoute("", f"{_DAG}/{{rest:path}}", "GET")
"""Every other request to a DAG, those of later versions of Airflow included."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that would change something of a DAG.

    :param values: of the path: ``dag_id``, ``dag_run_id``, ``task_id``, ``xcom_key``, …
    """

    route: AirflowRoute
    values: Mapping[str, str]

    @property
    def dag_id(self) -> str:
        """As the path names it; "" = it names none, or any."""
        dag_id = self.values.get("dag_id", "")
        return "" if dag_id == ANY_DAG else dag_id


def parse_api_request(scope: Scope) -> ApiRequest | None:
    """What a request asks of a DAG; None = it changes nothing of any."""
    if scope["type"] != "http" or scope["method"] not in CHANGING:
        return None
    path = _route_path(scope)
    if not path.startswith(API):
        return None
    for route, pattern in _patterns():
        if route.method in ("", scope["method"]) and (match := pattern.match(path)):
            return ApiRequest(route, match.groupdict())
    return None


def _route_path(scope: Scope) -> str:
    """The path below where Airflow is mounted, by the rule of Starlette's routers."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
        return path[len(root) :]
    return path


@cache
def _patterns() -> tuple[tuple[AirflowRoute, re.Pattern[str]], ...]:
    from starlette.routing import compile_path

    return tuple((route, compile_path(API + route.path)[0]) for route in (*ROUTES, _BELOW_DAG))
