"""The table of Airflow's routes is what Airflow has, with the rights that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rehome.api.airflow_routes import CHANGING, ROUTES, parse_api_request
from rehome.ledger.base.audit_entry import Decided

NOT_OF_INTEREST = {
    "POST /dags/{dag_id}/dagRuns/list",  # reads
    "POST /dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/list",
    "POST /dags/{dag_id}/favorite",  # of one user alone
    "POST /dags/{dag_id}/unfavorite",
    "DELETE /dags/{dag_id}/assets/queuedEvents",  # none of ours waits for assets
    "DELETE /dags/{dag_id}/assets/{asset_id}/queuedEvents",
}


def airflows() -> Iterator[tuple[str, str, Any]]:
    """Method, path and rights of every route of Airflow that changes something of a named DAG."""
    from airflow.api_fastapi.core_api.routes.public import public_router

    for route in public_router.routes:
        path = route.path.removeprefix("/api/v2")
        for method in route.methods & set(CHANGING):
            if path.startswith("/dags/{dag_id}") or f"{method} {path}" in OTHERS:
                yield method, path, list(rights(route.dependant))


OTHERS = ("POST /backfills", "POST /assets/{asset_id}/materialize")


def rights(dependant: Any) -> Iterator[tuple[str, str]]:
    """What ``requires_access_dag`` was given: it is all that its closure holds."""
    for each in dependant.dependencies:
        call = each.call
        if getattr(call, "__qualname__", "").startswith("requires_access_dag.<locals>"):
            names = call.__code__.co_freevars
            held = dict(zip(names, (cell.cell_contents for cell in call.__closure__), strict=True))
            entity = held["access_entity"]
            yield held["method"], entity.name if entity else ""


@pytest.mark.slow
def test_every_route_by_which_airflow_changes_a_dag_is_known_with_its_right() -> None:
    known = {f"{route.method} {route.path}": route for route in ROUTES}
    found = {f"{method} {path}": rights for method, path, rights in airflows()}
    assert len(found) > 20
    assert set(known) == set(found) - NOT_OF_INTEREST
    assert set(found) >= NOT_OF_INTEREST
    for name, rights_asked in found.items():
        if name in known and rights_asked:
            assert rights_asked == [(known[name].right, known[name].entity)], name


def scope(method: str, path: str, root: str = "") -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "root_path": root}


RUNS = "/api/v2/dags/d/dagRuns"


@pytest.mark.parametrize(
    ("method", "path", "decided"),
    [
        ("POST", RUNS, Decided.TRIGGERED),
        ("POST", f"{RUNS}\n", Decided.TRIGGERED),
        ("POST", f"{RUNS}/r/clear", Decided.CLEARED),
        ("PATCH", f"{RUNS}/r/taskInstances/t/dry_run", None),
        ("PATCH", f"{RUNS}/r/taskInstances/t/-1", Decided.TASK_STATE_SET),
        ("PATCH", f"{RUNS}/r/taskInstances/t/-1/hitlDetails", Decided.ANSWERED),
        ("PATCH", f"{RUNS}/r/taskInstances/t/xcomEntries/a/b", Decided.XCOM_WRITTEN),
        ("POST", f"{RUNS}/r/unheard_of", None),
    ],
)
@pytest.mark.parametrize("root", ["", "/airflow"])
def test_a_request_is_known_by_its_path_wherever_airflow_is_mounted(
    method: str, path: str, decided: Decided | None, root: str
) -> None:
    for mounted in {path, root + path}:  # a proxy takes the prefix away, or leaves it
        found = parse_api_request(scope(method, mounted, root))
        assert found is not None
        assert (found.route.decided, found.dag_id) == (decided, "d")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", RUNS),
        ("HEAD", RUNS),
        ("OPTIONS", RUNS),
        ("POST", "/api/v2/variables"),
        ("POST", "/x"),
    ],
)
def test_what_changes_nothing_of_a_dag_is_not_looked_at(method: str, path: str) -> None:
    assert parse_api_request(scope(method, path)) is None


def test_of_several_dags_the_path_names_none() -> None:
    found = parse_api_request(scope("PATCH", "/api/v2/dags/~/dagRuns/~/taskInstances"))
    assert found is not None
    assert (found.dag_id, found.route.decided) == ("", Decided.TASK_STATE_SET)
