"""Credentials of the warehouse, from an Airflow connection."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from rehome.errors import InvalidRequestError
from rehome.places.stores import EXTRAS, StoreLogin, abfss_login, gs_login, s3_login

_KINDS = {"s3": ("aws",), "gs": ("google_cloud_platform",), "abfss": ("wasb", "adls")}
_WITHOUT_PROVIDER = "generic"
"""What Airflow makes of a type whose provider is not installed."""


def store_login(conn_id: str, scheme: str) -> StoreLogin | None:
    """What a connection has for the store of a scheme; None = it is no scheme of a store.

    Its fields are those of Airflow's own providers, which need not be there.

    :raises InvalidRequestError: there is no such connection, or something in it is missing.
    """
    store = EXTRAS.get(scheme)
    if store is None:
        return None
    try:
        found = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise _refusal(f"There is no Airflow connection {conn_id!r}.") from None
    if found.conn_type not in (*_KINDS[store], _WITHOUT_PROVIDER):
        raise _refusal(
            f"Connection {conn_id} is of type {found.conn_type}; a warehouse in {store} takes "
            f"{' or '.join((*_KINDS[store], _WITHOUT_PROVIDER))}."
        )
    make = {"s3": _aws, "gs": _google, "abfss": _azure}[store]
    return make(found, found.extra_dejson)


def _google(found: Any, extra: dict[str, Any]) -> StoreLogin:
    if not extra.get("key_path"):
        raise _refusal(f"Connection {found.conn_id} has no key_path: the file with the key.")
    return gs_login(str(extra["key_path"]))


def _azure(found: Any, extra: dict[str, Any]) -> StoreLogin:
    if not (extra.get("tenant_id") and found.login and found.password):
        raise _refusal(
            f"Connection {found.conn_id} needs a service principal: tenant_id, and its id and "
            "secret as login and password."
        )
    return abfss_login(str(extra["tenant_id"]), found.login, found.password)


def _aws(found: Any, extra: dict[str, Any]) -> StoreLogin:
    if extra.get("role_arn"):
        raise _refusal(
            f"Connection {found.conn_id} names a role to take on (role_arn), which Spark would "
            "not: give the role to the machines, and leave the connection out."
        )
    services = extra.get("service_config") or {}
    endpoint = services.get("s3", {}).get("endpoint_url") or extra.get("endpoint_url") or ""
    return s3_login(
        found.login or "",
        found.password or "",
        token=extra.get("aws_session_token") or "",
        region=extra.get("region_name") or "",
        endpoint=endpoint,
    )


def _refusal(problem: str) -> InvalidRequestError:
    return InvalidRequestError(
        [problem], next_step="Correct the setting warehouse_connection, or the connection."
    )
