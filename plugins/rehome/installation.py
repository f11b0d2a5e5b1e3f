"""What this installation of Rehome has: settings, ledger and warehouse, and a login for that."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook, Variable
from airflow.sdk.log import mask_secret

from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.text import json_fault, json_in
from rehome.errors import InvalidRequestError
from rehome.fleet import clusters
from rehome.hooks.connection_form import unread_variable
from rehome.places.stores import EXTRAS, StoreLogin, abfss_login, gs_login, log_in, s3_login
from rehome.places.uris import scheme_of
from rehome.setting_problems import CORRECT_SETTINGS, env_name
from rehome.settings import Settings

if TYPE_CHECKING:
    from rehome.ledger.store import Ledger
    from rehome.warehouse import Warehouse


log = logging.getLogger(__name__)

SETTINGS_VARIABLE = "rehome"
SETTINGS_LAST_S = 30
"""How long settings that Airflow holds are taken as read."""
_ONLY_OF_THE_ENVIRONMENT = {
    "clusters_file": "Airflow parses DAGs without the Variable.",
    "other_uri_schemes": "Jobs run without the Variable.",
    "ledger_is_connection": "Where the connection is not found, the Variable may not be, either.",
}
LEDGER_CONNECTION = "rehome_ledger"

_CONNECTION_TYPES = {"s3": ("aws",), "gs": ("google_cloud_platform",), "abfss": ("wasb", "adls")}
_WITHOUT_PROVIDER = "generic"
"""What Airflow makes of a type whose provider is not installed."""


def settings(connection: str | None = None) -> Settings:
    """Defaults, the environment, the Variable ``rehome``, the connection ``rehome_ledger``, and
    what the clusters file sets for the cluster behind a connection.

    What Airflow holds is asked anew only after ``SETTINGS_LAST_S``: each time would be two requests
    to Airflow's API.

    :param connection: None = of no cluster: what holds for all of them.
    :raises InvalidRequestError: names what is wrong with them.
    """
    period = int(time.monotonic() // SETTINGS_LAST_S)
    all_settings = Settings.load({**_overrides(period), **_of_cluster(connection)})
    _open_store(all_settings.warehouse_connection, scheme_of(all_settings.warehouse), period)
    return all_settings


@lru_cache(maxsize=1)
def _open_store(conn_id: str, scheme: str, _period: int) -> None:
    """Have the warehouse opened with the connection's credentials, if it names any.

    Where there are none, what needs no file goes on: throttles are taken back all the same.
    """
    try:
        log_in(store_login(conn_id, scheme) if conn_id else None)
    except InvalidRequestError as error:
        log.error("%s The warehouse is opened with this machine's own credentials.", error)


def _of_cluster(connection: str | None) -> Mapping[str, Any]:
    """Without a file that can be used, what runs goes on: with the settings of all clusters.

    Nothing new begins then: its parameters and its policy are refused.
    """
    try:
        return clusters.own_settings(connection)
    except ClustersFileError as error:
        log.error("%s Settings of the cluster's own are left out.", error)
        return {}


@lru_cache(maxsize=1)
def _overrides(_period: int) -> Mapping[str, Any]:
    overrides = _of_variable()
    for name, why in _ONLY_OF_THE_ENVIRONMENT.items():
        if name in overrides:
            raise InvalidRequestError(
                [f"The Variable {SETTINGS_VARIABLE} sets {name}, which has no effect there: {why}"],
                next_step=f"Take {name} out of the Variable {SETTINGS_VARIABLE}, set "
                f"{env_name(name)} in the environment of every Airflow component, and start these "
                "anew. Then clear the task.",
            )
    try:
        connection = BaseHook.get_connection(LEDGER_CONNECTION)
    except AirflowNotFoundException:
        _refuse_unread_connection()
        _refuse_other_ledger(overrides)  # else the ledger is the one in the settings
    else:
        overrides["ledger_url"] = _sqlalchemy_url(connection)
    return overrides


def _of_variable() -> dict[str, Any]:
    """What the Variable sets. It is read as text: Airflow takes what is no JSON for no Variable.

    :raises InvalidRequestError: it is no JSON object.
    """
    text = str(Variable.get(SETTINGS_VARIABLE, default=""))
    problem = "is no JSON object: write names of settings, each with its value"
    try:
        content = json_in(text) if text.strip() else {}
    except ValueError as error:
        content, problem = None, json_fault(error)
    if not isinstance(content, dict):
        raise InvalidRequestError(
            [f"The Variable {SETTINGS_VARIABLE} {problem}."], next_step=CORRECT_SETTINGS
        )
    mask_secret(content)  # by the names in it, as Airflow does where it reads JSON
    return content


def _refuse_unread_connection() -> None:
    """See that the environment has no connection to the ledger, which Airflow would have found.

    :raises InvalidRequestError: it has one.
    """
    if unread := unread_variable(LEDGER_CONNECTION):
        raise InvalidRequestError([unread], next_step=CORRECT_SETTINGS)


def _refuse_other_ledger(overrides: Mapping[str, Any]) -> None:
    """:raises InvalidRequestError: the settings say that the ledger is that of the connection."""
    if not Settings.load(overrides).ledger_is_connection:
        return
    variable = env_name("ledger_is_connection")
    raise InvalidRequestError(
        [
            f"The connection {LEDGER_CONNECTION} is not found, and no other ledger is opened: "
            f"{variable} is set."
        ],
        next_step=f"See that the connection {LEDGER_CONNECTION} exists and, if connections come "
        f"from a secrets backend, that it answers; or take {variable} out of the environment. Then "
        "clear the task.",
    )


def _sqlalchemy_url(connection: Any) -> str:
    """Airflow writes postgres://, SQLAlchemy reads postgresql://."""
    uri = str(connection.get_uri())
    scheme, rest = uri.split("://", 1)
    return f"{'postgresql' if scheme == 'postgres' else scheme}://{rest}"


def open_ledger() -> Ledger:
    """The ledger, migrated; close it, or use it as a context manager."""
    from rehome.ledger.store import Ledger

    return Ledger.open(settings().ledger_url)


def warehouse() -> Warehouse:
    """Where snapshots and plans are kept; on a disk of this machine, closed as the settings say."""
    from rehome.warehouse import Warehouse

    chosen = settings()
    store = Warehouse(chosen.warehouse)
    store.close_to_others(int(chosen.warehouse_mode, 8))
    return store


def store_login(conn_id: str, scheme: str) -> StoreLogin | None:
    """What a connection has for the store of a scheme; None = it is no scheme of a store.

    Its fields are those of Airflow's own providers, which need not be there.

    :raises InvalidRequestError: there is no such connection, or something in it is missing.
    """
    store = EXTRAS.get(scheme)
    if store is None:
        return None
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise _login_refusal(f"There is no Airflow connection {conn_id!r}.") from None
    if connection.conn_type not in (*_CONNECTION_TYPES[store], _WITHOUT_PROVIDER):
        raise _login_refusal(
            f"Connection {conn_id} is of type {connection.conn_type}; a warehouse in {store} takes "
            f"{' or '.join((*_CONNECTION_TYPES[store], _WITHOUT_PROVIDER))}."
        )
    make = {"s3": _aws_login, "gs": _google_login, "abfss": _azure_login}[store]
    return make(connection, connection.extra_dejson)


def _google_login(connection: Any, extra: dict[str, Any]) -> StoreLogin:
    if not extra.get("key_path"):
        raise _login_refusal(
            f"Connection {connection.conn_id} has no key_path: the file with the key."
        )
    return gs_login(str(extra["key_path"]))


def _azure_login(connection: Any, extra: dict[str, Any]) -> StoreLogin:
    if not (extra.get("tenant_id") and connection.login and connection.password):
        raise _login_refusal(
            f"Connection {connection.conn_id} needs a service principal: tenant_id, and its id and "
            "secret as login and password."
        )
    return abfss_login(str(extra["tenant_id"]), connection.login, connection.password)


def _aws_login(connection: Any, extra: dict[str, Any]) -> StoreLogin:
    if extra.get("role_arn"):
        raise _login_refusal(
            f"Connection {connection.conn_id} names a role to take on (role_arn), which Spark "
            "would not: give the role to the machines, and leave the connection out."
        )
    services = extra.get("service_config") or {}
    endpoint = services.get("s3", {}).get("endpoint_url") or extra.get("endpoint_url") or ""
    return s3_login(
        connection.login or "",
        connection.password or "",
        token=extra.get("aws_session_token") or "",
        region=extra.get("region_name") or "",
        endpoint=endpoint,
    )


def _login_refusal(problem: str) -> InvalidRequestError:
    return InvalidRequestError(
        [problem], next_step="Correct the setting warehouse_connection, or the connection."
    )
