"""Credentials of the warehouse, from an Airflow connection."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from rehome.errors import InvalidRequestError
from rehome.places.stores import StoreLogin, abfss_login, gs_login, s3_login

_KINDS = ("aws", "google_cloud_platform", "wasb")


def store_login(conn_id: str) -> StoreLogin:
    """What a connection has for a store; its fields are those of Airflow's own providers.

    :raises InvalidRequestError: there is no such connection, or something in it is missing.
    """
    try:
        found = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise _refused(f"There is no Airflow connection {conn_id!r}.") from None
    extra: dict[str, Any] = found.extra_dejson
    if found.conn_type == "aws":
        return _aws(found, extra)
    if found.conn_type == "google_cloud_platform":
        key_file = extra.get("key_path")
        if not key_file:
            raise _refused(f"Connection {conn_id} has no key_path: the file with the key.")
        return gs_login(str(key_file))
    if found.conn_type == "wasb":
        if not (extra.get("tenant_id") and found.login and found.password):
            raise _refused(
                f"Connection {conn_id} needs a service principal: tenant_id, and its id and secret "
                "as login and password."
            )
        return abfss_login(str(extra["tenant_id"]), found.login, found.password)
    raise _refused(
        f"Connection {conn_id} is of type {found.conn_type}; the warehouse takes "
        f"{', '.join(_KINDS)}."
    )


def _aws(found: Any, extra: dict[str, Any]) -> StoreLogin:
    if extra.get("role_arn"):
        raise _refused(
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


def _refused(problem: str) -> InvalidRequestError:
    return InvalidRequestError(
        [problem], next_step="Correct the setting warehouse_connection, or the connection."
    )
