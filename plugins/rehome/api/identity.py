"""Who sends a request, and whether they may: asked as Airflow's own API asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user, requires_access_dag
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from starlette.types import Scope


async def user_of(scope: Scope) -> BaseUser:
    """The user of a request, by the token of its Authorization header, or of its cookie.

    :raises HTTPException: 401 or 403, as Airflow answers.
    """
    request = Request(scope)
    return await get_user(request, None, await bearer_scheme(request))


async def see_to_right(scope: Scope, user: BaseUser, dag_id: str, method: str, entity: str) -> None:
    """See that a user has a right on a DAG.

    :param entity: name of a DagAccessEntity; "" = the DAG itself.
    :raises HTTPException: 403.
    """
    of_what = DagAccessEntity[entity] if entity else None
    allowed = requires_access_dag(cast(Any, method), of_what, param_dag_id=dag_id)
    await run_in_threadpool(allowed, Request(scope), user)  # an auth manager may ask its database


def address_of(scope: Scope) -> str | None:
    """The client's address, as uvicorn knows it: behind a proxy it is the proxy's, unless Airflow
    trusts that one's headers (``--proxy-headers``, ``FORWARDED_ALLOW_IPS``).
    """
    client = scope.get("client")
    return str(client[0]) if client else None
