"""One plan: its first screen, and the tabs below it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from rehome.domain.actions import Action
from rehome.domain.kafka_limits import LARGEST_BROKER_ID
from rehome.domain.run.states import MoveState
from rehome.execution.control.resume import only_planned
from rehome.ledger.base.paging import MoveFilter, MoveLine, MoveOrder, Page
from rehome.page.alternatives import choices_of, name_of
from rehome.page.files import SERVED, files_of
from rehome.page.plan_json import moves_json, plan_json
from rehome.page.plan_view import PlanView
from rehome.reporting.number_text import leader_minimums
from rehome.ui import access
from rehome.ui.access import UserDep
from rehome.ui.page_bounds import wants_json
from rehome.ui.rendering import render
from rehome.ui.routes.shared import (
    MOST_PAGES,
    for_reader,
    live_values,
    number_in,
    plans,
    root_of,
    values_for,
    view_for,
)

router = APIRouter()
MOVES_PER_PAGE, EVENTS_SHOWN = 100, 100
TABS = {
    "partitions": "Partitions",
    "events": "Events",
    "checks": "Gates and dry run",
    "configuration": "Configuration changed",
    "files": "Files",
}


@router.get("/plans/{plan_id}")
def plan(request: Request, user: UserDep, plan_id: str, tab: str = "partitions") -> Response:
    """One plan: its first screen, and a tab below; of the screen, its account as JSON."""
    view = view_for(plan_id, user)
    if wants_json(request.scope):
        return JSONResponse(plan_json(view, for_reader(view, user)))
    tab = tab if tab in TABS else "partitions"
    planned = only_planned(view.record)
    summary = plans.follower(view.record.plan_id).files.summary if planned else None
    html = render(
        "plan.html",
        **values_for(request, user),
        **live_values(view, user),
        tabs=TABS,
        tab=tab,
        query=request.url.query,
        choices=choices_of(summary) if summary is not None else None,
        names=name_of,
        may_choose=access.may_plan(user),
        inner=_tab(request, tab, view),
    )
    return HTMLResponse(html)


@router.get("/plans/{plan_id}/tabs/{tab}")
def plan_tab(request: Request, user: UserDep, plan_id: str, tab: str) -> Response:
    """The content of one of the tabs; that of partitions as JSON, too."""
    if tab not in TABS:
        raise HTTPException(404, f"There is no tab {tab!r}")
    view = view_for(plan_id, user)
    if not wants_json(request.scope):
        return HTMLResponse(_tab(request, tab, view))
    if tab != "partitions":
        raise HTTPException(406, f"The tab {tab} is a page only.")
    page = _moves(request, view)
    return JSONResponse(moves_json(view, page.lines, page.total))


def _tab(request: Request, tab: str, view: PlanView) -> str:
    what = f"{root_of(request)} {tab} {request.url.query}"
    return plans.once(view, what, lambda: _TAB_VIEWS[tab](request, view))


def move_filter(request: Request) -> MoveFilter:
    """What the address asks for; what it cannot mean is left out."""
    query = request.query_params
    order = query.get("sort", "")
    return MoveFilter(
        frozenset(MoveState(name) for name in query.getlist("state") if name in set(MoveState)),
        query.get("q", "").strip(),
        number_in(query.get("broker", ""), LARGEST_BROKER_ID),
        MoveOrder(order) if order in set(MoveOrder) else MoveOrder.STATE,
        reverse=query.get("dir") == "reverse",
    )


def _page_number(request: Request) -> int:
    return max(1, number_in(request.query_params.get("page", ""), MOST_PAGES) or 1)


def _moves(request: Request, view: PlanView) -> Page[MoveLine]:
    filters, page = move_filter(request), _page_number(request)
    everything = not (filters.states or filters.topic or filters.broker is not None)
    counts = view.account.moves.by_state if everything else None
    return plans.ledger.move_page(
        view.record.plan_id, filters, (page - 1) * MOVES_PER_PAGE, MOVES_PER_PAGE, counts
    )


def _partitions(request: Request, view: PlanView) -> str:
    filters, page = move_filter(request), _page_number(request)
    moves = _moves(request, view)

    def address(**changes: Any) -> str:
        """The query of another page, order or filter of this table."""
        query: dict[str, Any] = {
            "q": filters.topic,
            "broker": "" if filters.broker is None else filters.broker,
            "state": sorted(filters.states),
            "sort": filters.order,
            "dir": "reverse" if filters.reverse else "",
            "page": 1,
        }
        query |= changes
        return urlencode({key: value for key, value in query.items() if value}, doseq=True)

    return render(
        "tab_partitions.html",
        root=root_of(request),
        view=view,
        lines=moves.lines,
        total=moves.total,
        wanted=filters,
        page=page,
        pages=max(1, -(-moves.total // MOVES_PER_PAGE)),
        address=address,
    )


def _events(request: Request, view: PlanView) -> str:
    page = _page_number(request)
    events = plans.ledger.event_page(view.record.plan_id, (page - 1) * EVENTS_SHOWN, EVENTS_SHOWN)
    return render(
        "tab_events.html",
        root=root_of(request),
        view=view,
        events=events.lines,
        total=events.total,
        page=page,
        pages=max(1, -(-events.total // EVENTS_SHOWN)),
    )


def _checks(request: Request, view: PlanView) -> str:
    files = plans.follower(view.record.plan_id).files
    return render(
        "tab_checks.html",
        root=root_of(request),
        view=view,
        dag_id=view.record.dag_id,
        run_id=view.record.run_id,
        gates=files.read.gates,
        prices=files.summary.prices if files.summary is not None else (),
        unpriced=(
            files.uri
            if files.summary is not None
            and not files.summary.prices
            and files.summary.action in (Action.REBALANCE, Action.EXPAND)
            else ""
        ),
        least_led=(
            leader_minimums(files.summary.min_leaders)
            if files.summary is not None and files.summary.min_leaders is not None
            else ""
        ),
        search_cut=files.summary is not None and files.summary.search_cut,
        dry_run=files.read.tried,
        problem=files.problem,
    )


def _configuration(request: Request, view: PlanView) -> str:
    entries = plans.ledger.throttles(view.record.plan_id)
    return render(
        "tab_configuration.html",
        root=root_of(request),
        view=view,
        entries=entries[:EVENTS_SHOWN],
        total=len(entries),
    )


def _files(request: Request, view: PlanView) -> str:
    files = files_of(plans.ledger, view.record)
    there = [(name, SERVED[name]) for name in files.there]
    there += [(f"export/{name}", "for Kafka's own tools") for name in files.exported]
    return render(
        "tab_files.html", root=root_of(request), view=view, files=there, problem=files.problem
    )


_TAB_VIEWS = {
    "partitions": _partitions,
    "events": _events,
    "checks": _checks,
    "configuration": _configuration,
    "files": _files,
}
