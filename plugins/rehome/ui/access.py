"""Who may see the page, and who may act on it: Airflow's own users and rights."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import (
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.models.dag import DagModel
from airflow.providers.common.compat.sdk import conf
from fastapi import Depends, Header, HTTPException, Request, status
from itsdangerous import BadSignature, URLSafeTimedSerializer

VIEWED_DAG = "reassign_partitions"
"""Users who may read this DAG may see the page, with the plans of all DAGs that they may read."""
CONTROL_DAG = "control_reassignment"
TOKEN_LASTS_S = 12 * 3600

reader = requires_access_dag("GET", param_dag_id=VIEWED_DAG)
"""The dependency of the whole application: 401 for the anonymous, 403 without rights."""


def may_read(user: BaseUser, dag_id: str | None) -> bool:
    """Whether a user may see the plans of a DAG; those of an earlier Rehome name none."""
    if dag_id is None:
        return True
    return bool(
        get_auth_manager().is_authorized_dag(method="GET", details=_of_team(dag_id), user=user)
    )


def may_control(user: BaseUser) -> bool:
    """Whether a user may ask something of plans: edit `control_reassignment`, and trigger it."""
    manager, details = get_auth_manager(), _of_team(CONTROL_DAG)
    edits = manager.is_authorized_dag(method="PUT", details=details, user=user)
    triggers = manager.is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user
    )
    return bool(edits and triggers)


def may_plan(user: BaseUser) -> bool:
    """Whether a user may trigger `reassign_partitions`, for a dry run too."""
    return bool(
        get_auth_manager().is_authorized_dag(
            method="POST",
            access_entity=DagAccessEntity.RUN,
            details=_of_team(VIEWED_DAG),
            user=user,
        )
    )


def _of_team(dag_id: str) -> DagDetails:
    """A DAG as auth managers are asked about it: where Airflow has teams (3.2 on), with its own."""
    if not conf.getboolean("core", "multi_team", fallback=False):
        return DagDetails(id=dag_id)
    return DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))


def token_for(user: BaseUser) -> str:
    """What a form of the page carries: no other site can read it."""
    return _serializer().dumps([user.get_id(), secrets.token_hex(4)])


def own_page(request: Request, user: BaseUser, x_rehome_token: str) -> None:
    """See that a request comes from a page that this user was given, or from a program that says
    itself whose it is: what a browser sends along by itself are cookies.

    :raises HTTPException: 403: another site sent it, or its token is another user's or too old.
    """
    _refuse_other_sites(request)
    by_program = "authorization" in request.headers and not request.cookies
    if by_program and not x_rehome_token:
        return
    try:
        owner, _ = _serializer().loads(x_rehome_token, max_age=TOKEN_LASTS_S)
    except BadSignature:
        owner = None
    if owner != user.get_id():
        raise _forbidden("This page is out of date. Reload it, then try again.")


def _refuse_other_sites(request: Request) -> None:
    """Browsers say where a request comes from; a client that is no browser has no session."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    host = request.headers.get("host")
    if site != "same-origin" or (origin and urlsplit(origin).netloc != host):
        raise _forbidden("Another site sent this request.")


def _forbidden(detail: str) -> HTTPException:
    return HTTPException(status.HTTP_403_FORBIDDEN, detail)


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get("api", "secret_key"), salt="rehome")


@dataclass(frozen=True)
class Holder:
    """The dependency of routes that show what leads to a change: 403 for users without the right.

    :param may: whether a user has it.
    :param right: what it is, as in "You have no right to …".
    """

    may: Callable[[BaseUser], bool]
    right: str

    def __call__(self, user: GetUserDep) -> BaseUser:
        """The user, who has the right."""
        if not self.may(user):
            raise _forbidden(f"You have no right to {self.right}.")
        return user


class Actor(Holder):
    """The dependency of routes that change something: 403 also for what a browser sends from
    elsewhere than the user's own page (:func:`own_page`).
    """

    def __call__(  # type: ignore[override]
        self, request: Request, user: GetUserDep, x_rehome_token: Annotated[str, Header()] = ""
    ) -> BaseUser:
        """The user, who has the right, and has sent this."""
        own_page(request, user, x_rehome_token)
        return super().__call__(user)


_CONTROL = (may_control, f"edit and trigger the DAG {CONTROL_DAG}")
_PLAN = (may_plan, f"trigger the DAG {VIEWED_DAG}")
UserDep = GetUserDep
ControllerDep = Annotated[BaseUser, Depends(Actor(*_CONTROL))]
"""Who asks something of a plan."""
PlannerDep = Annotated[BaseUser, Depends(Actor(*_PLAN))]
"""Who has something planned."""
MayControlDep = Annotated[BaseUser, Depends(Holder(*_CONTROL))]
"""Who is shown what a request would lead to."""
MayPlanDep = Annotated[BaseUser, Depends(Holder(*_PLAN))]
"""Who is shown the form."""
