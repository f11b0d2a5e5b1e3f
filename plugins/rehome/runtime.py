"""What every task needs: settings, the ledger, the warehouse, the plan of its run, plain errors."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, Variable
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from include.cluster.errors import MissingRightError
from include.errors import InvalidRequestError, PlanConflictError, RehomeError
from include.settings import Settings
from rehome.timetables.window import MaintenanceWindowTimetable

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.cluster.port import ClusterPort
    from include.execution.control import Controller
    from include.execution.lease import Held
    from include.ledger.records import PlanRecord
    from include.ledger.store import Ledger
    from include.planning.plan import Plan
    from include.planning.request import ReassignmentRequest
    from include.warehouse import PlanDirectory, Warehouse

SETTINGS_VARIABLE = "rehome"
LEDGER_CONNECTION = "rehome_ledger"

# What another attempt cannot mend.
_FINAL = (InvalidRequestError, PlanConflictError, MissingRightError)
# Causes of a ClusterUnreachableError that stay until somebody changes the connection.
_MISCONFIGURED = frozenset(
    {"wrong_password", "wrong_mechanism", "wrong_protocol", "wrong_ca", "wrong_host"}
)

log = logging.getLogger(__name__)


def settings() -> Settings:
    """Defaults, the environment, the Variable ``rehome``, and the connection ``rehome_ledger``."""
    overrides: dict[str, Any] = dict(
        Variable.get(SETTINGS_VARIABLE, default={}, deserialize_json=True)
    )
    try:
        connection = BaseHook.get_connection(LEDGER_CONNECTION)
    except AirflowNotFoundException:
        pass  # the ledger is the one in the settings
    else:
        overrides["ledger_url"] = _sqlalchemy_url(connection)
    return Settings.load(overrides)


def _sqlalchemy_url(connection: Any) -> str:
    """Airflow writes postgres://, SQLAlchemy reads postgresql://."""
    uri = str(connection.get_uri())
    scheme, rest = uri.split("://", 1)
    return f"{'postgresql' if scheme == 'postgres' else scheme}://{rest}"


def open_ledger() -> Ledger:
    """The ledger, migrated; close it, or use it as a context manager."""
    from include.ledger.store import Ledger

    return Ledger.open(settings().ledger_url)


def warehouse() -> Warehouse:
    """Where snapshots and plans are kept."""
    from include.warehouse import Warehouse

    return Warehouse(settings().warehouse)


def plan_id_of(context: Context | Mapping[str, Any]) -> str:
    """The id of the run's plan, made by it or continued: the same in every task and retry."""
    return continued_plan_id(context) or _new_plan_id(context)


def continued_plan_id(context: Context | Mapping[str, Any]) -> str | None:
    """The id of the paused plan that the run goes on with; None where it makes one of its own."""
    named = named_plan_id(context)
    if named is not None or window_end_of(context) is None:
        return named
    run = context["dag_run"]
    with open_ledger() as ledger:
        return ledger.taken_up_by(run.dag_id, run.run_id)


def named_plan_id(context: Context | Mapping[str, Any]) -> str | None:
    """The id of the plan that the run is asked to go on with, or to act on."""
    from include.planning.request import Action

    params = context["params"]
    named = str(params.get("plan_id") or "").strip()
    return None if params.get("action") == Action.ROLLBACK.value else named or None


def window_end_of(context: Context | Mapping[str, Any]) -> datetime | None:
    """When the maintenance window of the run closes, aware UTC; None = it has no window."""
    timetable = getattr(context.get("dag"), "timetable", None)
    if not isinstance(timetable, MaintenanceWindowTimetable):
        return None
    run = context["dag_run"]
    window = timetable.infer_manual_data_interval(run_after=run.run_after)
    end: datetime = run.data_interval_end or window.end
    return end.astimezone(UTC)


def _new_plan_id(context: Context | Mapping[str, Any]) -> str:
    run = context["dag_run"]
    digest = hashlib.sha256(f"{run.dag_id}/{run.run_id}".encode()).hexdigest()[:10]
    action = str(context["params"].get("action") or run.dag_id)
    return f"{run.run_after:%Y%m%dT%H%M%SZ}-{action}-{digest}"


def plan_directory(context: Context | Mapping[str, Any]) -> PlanDirectory:
    """The files of the run's plan."""
    return warehouse().plan(plan_id_of(context))


@contextmanager
def driving(
    context: Context | Mapping[str, Any],
    ledger: Ledger,
    cluster: ClusterPort,
    record: PlanRecord,
    **options: Any,
) -> Iterator[Held]:
    """Act on a plan's cluster as the run that drives the plan: see ``lease.hold``.

    :param options: ``wait_s`` and ``release``, as there.
    :raises PlanConflictError: another run drives the plan by now.
    """
    from include.execution.lease import hold, ttl_s

    run_id, lasting_s = context["dag_run"].run_id, ttl_s(settings())
    options["plan_id"] = record.plan_id
    with hold(ledger, cluster, record.cluster_id, run_id, lasting_s, **options) as held:
        yield held


def controller(
    context: Context | Mapping[str, Any], ledger: Ledger, cluster: ClusterPort
) -> Controller:
    """Passes requests to plans on, in the name of whoever triggered the run."""
    from include.execution.control import Controller
    from include.execution.lease import ttl_s

    lease_s = ttl_s(settings())
    return Controller(ledger, cluster, load_plan_at, actor_of(context), lease_s)


def load_plan_at(uri: str) -> Plan:
    """The plan whose files lie there."""
    from include.warehouse import PlanDirectory

    return PlanDirectory(uri).load()


def recorded_plan(ledger: Ledger, plan_id: str) -> PlanRecord | None:
    """What the ledger knows of a plan; None where the run ended before there was one."""
    try:
        return ledger.plan(plan_id)
    except PlanConflictError:
        return None


def load_plan(context: Context | Mapping[str, Any]) -> tuple[Plan, ReassignmentRequest]:
    """The run's plan with the request it was made for."""
    directory = plan_directory(context)
    return directory.load(), request_of(context)


def directory_plan(context: Context | Mapping[str, Any]) -> tuple[Plan, PlanDirectory]:
    """The run's plan and its files."""
    directory = plan_directory(context)
    return directory.load(), directory


def request_of(context: Context | Mapping[str, Any]) -> ReassignmentRequest:
    """The run's parameters, validated as a whole; window_end may lie in the past by now.

    In a maintenance window, ``window_end`` is its end.

    :raises InvalidRequestError: lists every problem.
    """
    from include.planning.request import parse_request

    params, end = dict(context["params"]), window_end_of(context)
    if end is not None:
        params["window_end"] = end
    return parse_request(params, now=context["dag_run"].run_after)


def actor_of(context: Context | Mapping[str, Any]) -> str:
    """Who triggered the run, as far as Airflow knows."""
    run = context["dag_run"]
    return str(getattr(run, "triggering_user_name", None) or run.run_type)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn Rehome's errors into Airflow's: one sentence in the log, told before any traceback.

    What another attempt cannot mend fails the task at once.
    """
    try:
        yield
    except RehomeError as error:
        log.error("%s", error)
        final = isinstance(error, _FINAL) or getattr(error, "cause", None) in _MISCONFIGURED
        raise (AirflowFailException if final else AirflowException)(str(error)) from None
