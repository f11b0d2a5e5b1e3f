"""Plans, requests without a plan, and the plan of a DAG run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from rehome import installation
from rehome.account.evidence import read_line
from rehome.account.known import Fact
from rehome.account.plan_bytes import PlanBytes, bytes_of
from rehome.account.requests import RequestLine, RequestState, in_order
from rehome.account.run_account import RunAccount, RunEvidence, account_of_run
from rehome.account.times import EndRange, ends_of
from rehome.account.words.run_words import changed_text
from rehome.domain.clock import utc_now
from rehome.domain.run.states import PlanState
from rehome.fleet.clusters import base_of
from rehome.ledger.base.paging import PlanFilter, PlanLine
from rehome.ledger.store import Ledger
from rehome.page.files import PlanFiles
from rehome.run.context import run_digest
from rehome.ui import access, dag_runs
from rehome.ui.access import UserDep
from rehome.ui.page_bounds import wants_json
from rehome.ui.rendering import render
from rehome.ui.routes import programs
from rehome.ui.routes.shared import MOST_PAGES, plans, root_of, values_for

router = APIRouter()
PLANS_SHOWN = 50
BEFORE_THE_PLAN = ("snapshot", "plan")
"""Tasks of a run that make its plan."""

_LISTED, _LISTED_FOR = 50, timedelta(days=7)
"""The newest that have ended, and for how long they are listed."""
REQUESTS_SHOWN = 10


@router.get("/")
def list_plans(
    request: Request,
    user: UserDep,
    q: str = "",
    state: Annotated[list[str] | None, Query()] = None,
    page: Annotated[int, Query(ge=1, le=MOST_PAGES)] = 1,
) -> Response:
    """Every plan that the user may see, newest first; as JSON, too."""
    states = frozenset(PlanState(name) for name in state or () if name in set(PlanState))
    ledger = plans.ledger
    dag_ids = frozenset(d for d in ledger.dag_ids() if access.may_read(user, d))
    plan_page = ledger.plan_page(
        PlanFilter(states, q.strip(), dag_ids), (page - 1) * PLANS_SHOWN, PLANS_SHOWN
    )
    lines, pages = (
        [_line(ledger, line) for line in plan_page.lines],
        -(-plan_page.total // PLANS_SHOWN),
    )
    if wants_json(request.scope):
        return JSONResponse(programs.plans_json(lines, plan_page.total, page, max(1, pages)))
    counts = ledger.plan_counts(dag_ids)

    def address(to: int) -> str:
        """The query of another page of this list."""
        return urlencode({"q": q, "state": sorted(states), "page": to}, doseq=True)

    html = render(
        "plans.html",
        **values_for(request, user),
        query=address(page),
        earlier=address(page - 1),
        later=address(page + 1),
        requests=() if states or q or page > 1 else without_plan(ledger, user),
        lines=lines,
        total=plan_page.total,
        counts=counts,
        chosen=states,
        q=q,
        page=page,
        pages=max(1, pages),
        fragment="hx-request" in request.headers,
    )
    return HTMLResponse(html)


def _line(ledger: Ledger, line: PlanLine) -> tuple[PlanLine, PlanBytes, Fact[EndRange]]:
    evidence = read_line(ledger, line)
    return line, bytes_of(evidence), ends_of(evidence, utc_now())


@router.get("/requests")
def list_requests(user: UserDep) -> JSONResponse:
    """Requests that go on, were refused or have failed, as JSON; those about a plan, too."""
    return JSONResponse([line.facts() for line in _listed_requests(plans.ledger, user)])


@router.get("/runs/{dag_id}/{run_id:path}")
def plan_of_run(request: Request, user: UserDep, dag_id: str, run_id: str) -> Response:
    """The page of the plan that a DAG run has made or carries on; as JSON, which plan that is."""
    plan_id = _of_run(user, dag_id, run_id)
    if wants_json(request.scope):
        return JSONResponse(_run_json(dag_id, run_id, plan_id))
    if plan_id is None:
        return HTMLResponse(_without_plan(request, user, dag_id, run_id))
    there = f"{root_of(request)}/plans/{quote(plan_id)}"
    if "hx-request" in request.headers:
        return Response(headers={"HX-Redirect": there})
    return RedirectResponse(there)


@router.get("/reports/{dag_id}/{run_id:path}")
def report_of_run(request: Request, user: UserDep, dag_id: str, run_id: str) -> Response:
    """The report of the plan that a DAG run has made or carries on."""
    plan_id = _of_run(user, dag_id, run_id)
    if plan_id is None:
        return HTMLResponse(_without_plan(request, user, dag_id, run_id))
    return RedirectResponse(f"{root_of(request)}/files/{quote(plan_id)}/report.html")


def _of_run(user: UserDep, dag_id: str, run_id: str) -> str | None:
    """Id of the plan of a run; None = none is known.

    :raises HTTPException: 404: its DAG is not for this user.
    """
    if not access.may_read(user, dag_id):
        raise HTTPException(404, f"No plan of a run of {dag_id} is known")
    ledger = plans.ledger
    return (
        ledger.plan_of_run(dag_id, run_id)
        or ledger.taken_up_by(dag_id, run_id)
        # Another run drives it by now.
        or ledger.plan_that_ends(f"-{run_digest(dag_id, run_id)}")
    )


def _is_planning(dag_id: str, run_id: str, steps: Mapping[str, str]) -> bool:
    """Whether a run is on its way to a plan: only of such a run is it known that it has changed
    nothing.
    """
    over = {"success", "failed", "skipped", "upstream_failed", "removed"}
    if not _makes_plan(dag_id) or steps["plan"] in over or steps["snapshot"] in over - {"success"}:
        return False
    return not dag_runs.outcome(dag_id, run_id).ended


def _makes_plan(dag_id: str) -> bool:
    return base_of(dag_id) in dag_runs.PLANNING_DAGS


def _without_plan(request: Request, user: UserDep, dag_id: str, run_id: str) -> str:
    """What is known of a run that has recorded no plan: what has ended it, and its gates' and its
    planner's answer.
    """
    steps = dag_runs.steps(dag_id, run_id, BEFORE_THE_PLAN)
    account, files = _account_without_plan(dag_id, run_id, steps)
    return render(
        "no_plan.html",
        **values_for(request, user),
        account=account,
        changed=changed_text(account),
        steps=steps,
        gates=files.gates if files else (),
        problem=files.problem if files else "",
    )


def _account_without_plan(
    dag_id: str, run_id: str, steps: Mapping[str, str]
) -> tuple[RunAccount, PlanFiles | None]:
    directory = installation.warehouse().plan_that_ends(run_digest(dag_id, run_id))
    files = PlanFiles(directory.uri) if directory is not None else None
    evidence = RunEvidence(
        dag_id,
        run_id,
        _makes_plan(dag_id),
        _is_planning(dag_id, run_id, steps),
        plans.ledger.cause_of(dag_id, run_id),
        files.json("failure.json") if files else None,
        files.gates if files else (),
        files is not None and "summary.json" in files.there,
    )
    return account_of_run(evidence), files


def _run_json(dag_id: str, run_id: str, plan_id: str | None) -> dict[str, Any]:
    """What a program asks for until a run has its plan, or has ended without one."""
    steps = dag_runs.steps(dag_id, run_id, BEFORE_THE_PLAN)
    cause = plans.ledger.cause_of(dag_id, run_id)
    run_data = programs.run_json(dag_runs.outcome(dag_id, run_id), cause)
    account = _account_without_plan(dag_id, run_id, steps)[0] if plan_id is None else None
    without = None if account is None else programs.without_plan_json(account)
    ids = {"dag_id": dag_id, "run_id": run_id, "plan_id": plan_id}
    return {**run_data, **ids, "steps": steps, "without_plan": without}


def _listed_requests(ledger: Ledger, user: BaseUser) -> list[RequestLine]:
    """Those that go on first, then those that have ended, newest first."""
    may_read = cache(lambda dag_id: access.may_read(user, dag_id))
    going_on = [line for line in dag_runs.unfinished_runs() if _has_no_plan(ledger, line)]
    ended = ledger.ended_runs(_LISTED, datetime.now(UTC) - _LISTED_FOR)
    return [line for line in in_order(going_on, ended) if may_read(line.dag_id)]


def without_plan(ledger: Ledger, user: BaseUser) -> list[RequestLine]:
    """Those of them that no plan's own page shows: the first so many."""
    lines = [
        line
        for line in _listed_requests(ledger, user)
        if line.state in (RequestState.PLANNING, RequestState.STARTING)
        or (line.plan_id is None and _has_no_plan(ledger, line))
    ]
    return lines[:REQUESTS_SHOWN]


def _has_no_plan(ledger: Ledger, line: RequestLine) -> bool:
    run = line.dag_id, line.run_id
    return ledger.plan_of_run(*run) is None and ledger.taken_up_by(*run) is None
