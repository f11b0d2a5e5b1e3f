"""The page that lists every route and method of Rehome's, and who is answered."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from handbook.markdown import table

if TYPE_CHECKING:
    from rehome.api.airflow_routes import AirflowRoute

ROLES = ("viewer", "user", "op", "admin")
"""Of Airflow's SimpleAuthManager."""
YES, NO, LOG_IN, NOT_ASKED, BY_BODY = "yes", "403", "401", "–", "by the body"
HEADS = ("method", "path", "what", "anonymous", *ROLES, "with another user's form")


@dataclass(frozen=True, slots=True)
class RouteAnswers:
    """Who is answered by a route: each cell is :data:`YES`, or the status of the refusal.

    :param by_role: role → cell; :data:`BY_BODY` where Airflow decides by what the body names.
    :param foreign_form: for an admin who sends the token of another user's page.
    """

    method: str
    path: str
    what: str
    by_role: Mapping[str, str]
    foreign_form: str = NOT_ASKED
    anonymous: str = LOG_IN

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of the table."""
        roles = (self.by_role[role] for role in ROLES)
        path = f"`{self.path}`"
        return (self.method, path, self.what, self.anonymous, *roles, self.foreign_form)


def page_routes() -> Iterator[RouteAnswers]:
    """Every route of the page, as FastAPI has it, by the rights that it declares."""
    from rehome.links import URL_PREFIX
    from rehome.ui.access import Actor, Holder
    from rehome.ui.routes import router

    for route in router.routes:
        held = [each for each in _dependencies(route) if isinstance(each, Holder)]
        by_role = {role: YES if all(one.may(_user(role)) for one in held) else NO for role in ROLES}
        acts = any(isinstance(one, Actor) for one in held)
        for method in sorted(_methods(route)):
            path = URL_PREFIX + str(getattr(route, "path", ""))
            foreign = NO if acts else NOT_ASKED
            yield RouteAnswers(method, path, _what(route), by_role, foreign)


def api_routes() -> Iterator[RouteAnswers]:
    """Every route of Airflow's API that the guard stands before, by the right that it asks for."""
    from rehome.api.airflow_routes import API, ROUTES

    for route in ROUTES:
        if "{dag_id}" in route.path:
            yes = BY_BODY if route.right == "GET" else YES
            by_role = {role: yes if _may(route, role) else NO for role in ROLES}
            what = route.decided.value if route.decided is not None else "tries out"
            yield RouteAnswers(route.method, API + route.path, what, by_role)


def routes_page() -> str:
    """Markdown: one table for the page, one for Airflow's API."""
    return f"""# Routes

Every route and every method of Rehome's, and what each user of Airflow's SimpleAuthManager is
answered: yes, or the status of the refusal. Tests ask each of them. Every other method is answered
by 405. With another auth manager, the same rights are asked of that one.

## The page

All routes need the right to read the DAG `reassign_partitions`; those that plan, to trigger it;
those that ask something of a plan or of a connection, to edit and trigger `control_reassignment`.
What changes something also needs a token that only the user's own page has; a program with a
bearer token, and without a cookie, needs none.

{table(HEADS, [each.cells for each in page_routes()])}

## Airflow's API, for Rehome's DAGs

Rehome asks for the right before a body is read; Airflow asks once more. Of requests about several
runs, only Airflow can tell by the body whom it may answer; Rehome asks for the right to read. No
form token protects Airflow's own routes.

{table(HEADS, [each.cells for each in api_routes()])}
"""


def _methods(route: Any) -> set[str]:
    return set(getattr(route, "methods", None) or ()) - {"HEAD"}


def _what(route: Any) -> str:
    text = (inspect.getdoc(route.endpoint) or "").split("\n\n")[0]
    return " ".join(text.split()).rstrip(".")


def _dependencies(route: Any) -> Iterator[Any]:
    left = [route.dependant]
    while left:
        one = left.pop()
        yield one.call
        left += one.dependencies


def _user(role: str) -> Any:
    from airflow.api_fastapi.app import create_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    create_auth_manager()  # what the rights are asked of
    return SimpleAuthManagerUser(username=role, role=role)


def _may(route: AirflowRoute, role: str) -> bool:
    from airflow.api_fastapi.app import create_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import (
        DagAccessEntity,
        DagDetails,
    )

    entity = DagAccessEntity[route.entity] if route.entity else None
    method: Any = route.right
    allowed = create_auth_manager().is_authorized_dag(
        method=method,
        access_entity=entity,
        details=DagDetails(id="reassign_partitions"),
        user=_user(role),
    )
    return bool(allowed)
