"""The page's routes. They read the ledger and the warehouse; what changes something runs a DAG."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import mimetypes
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.concurrency import run_in_threadpool

from include.domain.request.param_types import checked_plan_id
from include.domain.run.states import Control, MoveState, PlanState
from include.errors import InvalidRequestError
from include.ledger.stores.pages import MoveFilter, MoveOrder, PlanFilter
from include.page.controls import offer, possible
from include.page.files import SERVED, PlanFiles
from include.page.plan_view import PlanView
from rehome import installation, run_context
from rehome.ui import access, approvals, clusters, control_runs
from rehome.ui.access import ControllerDep, UserDep
from rehome.ui.plans import Plans
from rehome.ui.rendering import render

router = APIRouter()
plans = Plans()

STATIC = Path(__file__).parent / "static"
PLANS_SHOWN, MOVES_SHOWN, EVENTS_SHOWN = 50, 100, 100
LIVE_S = 240.0
"""Then the browser connects anew, and has to be somebody who may."""
LOOK_S = 1.0
STOP_POLLING = 286
"""The status by which htmx asks no more."""
SILENCE_S = 15.0
"""A stream without news says so, or what lies between might end it."""
PARTS = {
    "brokers": "plan_brokers.html",
    "changes": "plan_changes.html",
    "plan": "plan_live.html",
}
"""Events of the stream, each a part of the first screen; the last makes what follows it refresh."""
TABS = {
    "partitions": "Partitions",
    "events": "Events",
    "checks": "Gates and dry run",
    "configuration": "Configuration changed",
    "files": "Files",
}


def _root(request: Request) -> str:
    """What every address of the page begins with."""
    return str(request.scope.get("root_path", ""))


def _whole(request: Request, user: UserDep) -> dict[str, Any]:
    """What every whole page needs."""
    return {"root": _root(request), "token": access.token_for(user)}


def _readable(view: PlanView, user: UserDep) -> PlanView:
    """A view that the user may see.

    :raises HTTPException: 404, as for a plan that there is none of.
    """
    if not access.may_read(user, view.record.dag_id):
        raise HTTPException(404, f"The ledger knows no plan {view.record.plan_id!r}")
    return view


def _view(plan_id: str, user: UserDep) -> PlanView:
    try:
        view, _ = plans.view(checked_plan_id(plan_id))
    except InvalidRequestError as error:
        raise HTTPException(404, str(error)) from None
    return _readable(view, user)


@router.get("/", response_class=HTMLResponse)
def list_plans(
    request: Request,
    user: UserDep,
    q: str = "",
    state: Annotated[list[str] | None, Query()] = None,
    page: Annotated[int, Query(ge=1)] = 1,
) -> str:
    """Every plan that the user may see, newest first."""
    states = frozenset(PlanState(name) for name in state or () if name in set(PlanState))
    ledger = plans.ledger
    dag_ids = frozenset(d for d in ledger.dag_ids() if access.may_read(user, d))
    found = ledger.plan_page(
        PlanFilter(states, q.strip(), dag_ids), (page - 1) * PLANS_SHOWN, PLANS_SHOWN
    )
    counts = ledger.plan_counts(dag_ids)

    def address(to: int) -> str:
        """The query of another page of this list."""
        return urlencode({"q": q, "state": sorted(states), "page": to}, doseq=True)

    return render(
        "plans.html",
        **_whole(request, user),
        query=address(page),
        earlier=address(page - 1),
        later=address(page + 1),
        lines=found.lines,
        total=found.total,
        counts=counts,
        chosen=states,
        q=q,
        page=page,
        pages=max(1, -(-found.total // PLANS_SHOWN)),
        fragment="hx-request" in request.headers,
    )


@router.get("/clusters", response_class=HTMLResponse)
def list_clusters(request: Request, user: UserDep) -> str:
    """Every cluster that has a snapshot."""
    found = [view for name in clusters.cluster_ids() if (view := clusters.newest(name))]
    return render("clusters.html", **_whole(request, user), views=found, now=time.time())


@router.get("/clusters/{cluster_id}", response_class=HTMLResponse)
def cluster(request: Request, user: UserDep, cluster_id: str) -> str:
    """One cluster: its brokers by rack, and what is not well."""
    view = clusters.newest(cluster_id) if cluster_id in clusters.cluster_ids() else None
    if view is None:
        raise HTTPException(404, f"The warehouse has no snapshot of a cluster {cluster_id!r}")
    ledger = plans.ledger
    active = ledger.active_plan(cluster_id)
    return render(
        "cluster.html",
        **_whole(request, user),
        view=view,
        now=time.time(),
        active=active if active and access.may_read(user, active.dag_id) else None,
        owed=ledger.owed_on(cluster_id),
    )


@router.get("/runs/{dag_id}/{run_id:path}")
def plan_of_run(request: Request, user: UserDep, dag_id: str, run_id: str) -> Response:
    """The page of the plan that a DAG run has made or carries on."""
    ledger = plans.ledger
    found = ledger.plan_of_run(dag_id, run_id) or ledger.taken_up_by(dag_id, run_id)
    if found is None:
        return HTMLResponse(_without_plan(request, user, dag_id, run_id))
    return RedirectResponse(f"{_root(request)}/plans/{quote(found)}")


def _without_plan(request: Request, user: UserDep, dag_id: str, run_id: str) -> str:
    """What is known of a run that has recorded no plan: its gates', and its planner's, answer."""
    if not access.may_read(user, dag_id):
        raise HTTPException(404, f"No plan of a run of {dag_id} is known")
    directory = installation.warehouse().plan_that_ends(run_context.run_digest(dag_id, run_id))
    files = PlanFiles(directory.uri) if directory is not None else None
    return render(
        "no_plan.html",
        **_whole(request, user),
        dag_id=dag_id,
        run_id=run_id,
        failure=files.json("failure.json") if files else None,
        gates=(files.json("gates.json") if files else None) or (),
        planned=files is not None and "summary.json" in files.there,
        problem=files.problem if files else "",
    )


@router.get("/plans/{plan_id}", response_class=HTMLResponse)
def plan(request: Request, user: UserDep, plan_id: str, tab: str = "partitions") -> str:
    """One plan: its first screen, and a tab below."""
    view = _view(plan_id, user)
    tab = tab if tab in TABS else "partitions"
    return render(
        "plan.html",
        **_whole(request, user),
        **_live_values(view, user),
        tabs=TABS,
        tab=tab,
        query=request.url.query,
        inner=_tab(request, tab, view),
    )


@router.get("/plans/{plan_id}/tabs/{tab}", response_class=HTMLResponse)
def plan_tab(request: Request, user: UserDep, plan_id: str, tab: str) -> str:
    """What stands below one of the tabs."""
    if tab not in TABS:
        raise HTTPException(404, f"There is no tab {tab!r}")
    return _tab(request, tab, _view(plan_id, user))


def _tab(request: Request, tab: str, view: PlanView) -> str:
    what = f"{_root(request)} {tab} {request.url.query}"
    return plans.once(view.record.plan_id, what, lambda: _TAB_VIEWS[tab](request, view))


@router.get("/plans/{plan_id}/live")
async def live(request: Request, user: UserDep, plan_id: str) -> StreamingResponse:
    """The first screen anew whenever something has changed, as server-sent events."""
    await run_in_threadpool(_view, plan_id, user)  # before the stream begins: 404, 503

    async def events() -> AsyncIterator[str]:
        seen, said = -1, time.monotonic()
        ends = said + LIVE_S
        while time.monotonic() < ends and not await request.is_disconnected():
            number, news = await run_in_threadpool(_news, plan_id, user, _root(request), seen)
            if news:
                yield news
                seen, said = number, time.monotonic()
            elif time.monotonic() - said > SILENCE_S:
                yield ": nothing new\n\n"
                said = time.monotonic()
            await asyncio.sleep(LOOK_S)

    return StreamingResponse(events(), media_type="text/event-stream")


def _news(plan_id: str, user: UserDep, root: str, seen: int) -> tuple[int, str]:
    """The parts of the first screen as events, where they are newer than what was seen."""
    view, number = plans.view(plan_id)
    if number == seen:
        return seen, ""
    values = {"root": root, **_live_values(_readable(view, user), user)}
    return number, "".join(_event(name, render(part, **values)) for name, part in PARTS.items())


def _event(name: str, data: str) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}\n"


def _live_values(view: PlanView, user: UserDep) -> dict[str, Any]:
    return {
        "view": view,
        "controls": possible(view) if access.may_control(user) else (),
        "asking": approvals.asking_task(view.record),
        "poll_s": installation.settings().poll_interval_s,
        "now": time.time(),
    }


@router.get("/plans/{plan_id}/throughput")
def throughput(user: UserDep, plan_id: str) -> Response:
    """Columns of the chart, and each change of the throttle with its cause."""
    view = _view(plan_id, user)
    follower = plans.follower(view.record.plan_id)

    def made() -> str:
        columns = follower.throughput()
        found = {item.name: getattr(columns, item.name) for item in fields(columns)}
        changes = [
            {"at": change.at.timestamp(), "reason": change.reason, "cause": change.cause}
            for change in view.rates
        ]
        return json.dumps({**found, "changes": changes})

    content = plans.once(view.record.plan_id, "throughput", made)
    return Response(content, media_type="application/json")


@router.get("/plans/{plan_id}/partitions.csv")
def partitions_csv(request: Request, user: UserDep, plan_id: str) -> StreamingResponse:
    """The table of partitions as it is filtered and sorted, whole."""
    view = _view(plan_id, user)
    headers = {"Content-Disposition": f'attachment; filename="{view.record.plan_id}.csv"'}
    return StreamingResponse(
        _csv(view.record.plan_id, _move_filter(request)), media_type="text/csv", headers=headers
    )


def _csv(plan_id: str, wanted: MoveFilter) -> Iterator[str]:
    head = ["topic", "partition", "current", "target", "bytes", "reason", "state", "detail"]
    yield _csv_row([*head, "bytes_behind", "messages_behind"])
    offset, together = 0, 5000
    while lines := plans.ledger.move_page(plan_id, wanted, offset, together).lines:
        for line in lines:
            move = line.move
            yield _csv_row(
                [
                    *move.partition,
                    " ".join(map(str, move.current)),
                    " ".join(map(str, move.target)),
                    move.bytes_to_copy,
                    move.reason,
                    line.state,
                    line.detail,
                    line.bytes_behind,
                    line.messages_behind,
                ]
            )
        offset += together


def _csv_row(values: list[Any]) -> str:
    """One line. A text that a spreadsheet would take for a formula is quoted by a leading quote."""
    text = io.StringIO()
    csv.writer(text).writerow(
        [f"'{v}" if isinstance(v, str) and v[:1] in ("=", "+", "-", "@") else v for v in values]
    )
    return text.getvalue()


def _move_filter(request: Request) -> MoveFilter:
    """What the address asks for; what it cannot mean is left out."""
    asked = request.query_params
    broker = asked.get("broker", "")
    order = asked.get("sort", "")
    return MoveFilter(
        frozenset(MoveState(name) for name in asked.getlist("state") if name in set(MoveState)),
        asked.get("q", "").strip(),
        int(broker) if broker.isdecimal() else None,
        MoveOrder(order) if order in set(MoveOrder) else MoveOrder.STATE,
        reverse=asked.get("dir") == "reverse",
    )


def _page_number(request: Request) -> int:
    asked = request.query_params.get("page", "1")
    return max(1, int(asked)) if asked.isdecimal() else 1


def _partitions(request: Request, view: PlanView) -> str:
    wanted, page = _move_filter(request), _page_number(request)
    everything = not (wanted.states or wanted.topic or wanted.broker is not None)
    counts = {state: each.moves for state, each in view.sums.items()} if everything else None
    found = plans.ledger.move_page(
        view.record.plan_id, wanted, (page - 1) * MOVES_SHOWN, MOVES_SHOWN, counts
    )

    def address(**changes: Any) -> str:
        """The query of another page, order or filter of this table."""
        asked: dict[str, Any] = {
            "q": wanted.topic,
            "broker": "" if wanted.broker is None else wanted.broker,
            "state": sorted(wanted.states),
            "sort": wanted.order,
            "dir": "reverse" if wanted.reverse else "",
            "page": 1,
        }
        asked |= changes
        return urlencode({key: value for key, value in asked.items() if value}, doseq=True)

    return render(
        "tab_partitions.html",
        root=_root(request),
        view=view,
        lines=found.lines,
        total=found.total,
        wanted=wanted,
        page=page,
        pages=max(1, -(-found.total // MOVES_SHOWN)),
        address=address,
    )


def _events(request: Request, view: PlanView) -> str:
    page = _page_number(request)
    found = plans.ledger.event_page(view.record.plan_id, (page - 1) * EVENTS_SHOWN, EVENTS_SHOWN)
    return render(
        "tab_events.html",
        root=_root(request),
        view=view,
        events=found.lines,
        total=found.total,
        page=page,
        pages=max(1, -(-found.total // EVENTS_SHOWN)),
    )


def _checks(request: Request, view: PlanView) -> str:
    files = plans.follower(view.record.plan_id).files
    return render(
        "tab_checks.html",
        root=_root(request),
        view=view,
        gates=files.json("gates.json") or (),
        dry_run=files.dry_run,
        problem=files.problem,
    )


def _configuration(request: Request, view: PlanView) -> str:
    entries = plans.ledger.throttles(view.record.plan_id)
    return render(
        "tab_configuration.html",
        root=_root(request),
        view=view,
        entries=entries[:EVENTS_SHOWN],
        total=len(entries),
    )


def _files(request: Request, view: PlanView) -> str:
    files = PlanFiles(view.record.plan_dir)
    there = [(name, SERVED[name][1]) for name in files.there]
    return render(
        "tab_files.html", root=_root(request), view=view, files=there, problem=files.problem
    )


_TAB_VIEWS = {
    "partitions": _partitions,
    "events": _events,
    "checks": _checks,
    "configuration": _configuration,
    "files": _files,
}


@router.get("/plans/{plan_id}/controls/{control}", response_class=HTMLResponse)
def ask_control(request: Request, user: UserDep, plan_id: str, control: Control) -> str:
    """What a request would lead to, before it is made."""
    if not access.may_control(user):
        raise HTTPException(403, f"You have no right to edit and trigger {access.CONTROL_DAG}.")
    view = _view(plan_id, user)
    connection = view.record.planned_through
    policy = control_runs.policy_of(connection)
    return render(
        "confirm.html",
        root=_root(request),
        view=view,
        offer=offer(view, control, policy),
        connection=connection,
        problem="",
    )


@router.post("/plans/{plan_id}/controls/{control}", response_class=HTMLResponse)
def request_control(
    request: Request,
    user: ControllerDep,
    plan_id: str,
    control: Control,
    throttle: Annotated[str, Form()] = "",
    connection: Annotated[str, Form()] = "",
) -> Response:
    """Trigger `control_reassignment` in the user's name."""
    view = _view(plan_id, user)
    through = view.record.planned_through or connection.strip() or None
    asked = None
    problem = ""
    if throttle.strip():
        asked = control_runs.rate_of(throttle)
        problem = "" if asked else f"{throttle} is no rate: write 50 MB/s, or 50000000."
    if control is Control.CHANGE_THROTTLE and not throttle.strip():
        problem = "Name the new throttle."
    found = offer(view, control, control_runs.policy_of(through), asked)
    problem = problem or found.refusal
    if not through:
        problem = "Name the connection of the plan's cluster: an earlier Rehome did not record it."
    if problem:
        html = render(
            "confirm.html",
            root=_root(request),
            view=view,
            offer=found,
            connection=through,
            problem=problem,
        )
        return HTMLResponse(html, 422)
    assert through is not None
    run_id = control_runs.trigger(view.record.plan_id, control, through, asked, user.get_name())
    html = render("asked.html", root=_root(request), view=view, offer=found, run_id=run_id)
    return HTMLResponse(html)


@router.get("/plans/{plan_id}/requests/{run_id:path}", response_class=HTMLResponse)
def request_outcome(request: Request, user: UserDep, plan_id: str, run_id: str) -> Response:
    """What has become of a run of `control_reassignment`; asked for until it has ended."""
    _view(plan_id, user)
    outcome = control_runs.outcome(run_id)
    html = render("outcome.html", root=_root(request), run_id=run_id, outcome=outcome)
    return HTMLResponse(html, STOP_POLLING if outcome.ended else 200)


@router.get("/files/{plan_id}/{name}")
def file(request: Request, user: UserDep, plan_id: str, name: str) -> Response:
    """One of a plan's files, wherever the warehouse is."""
    from rehome.ui.app import REPORT_POLICY

    view = _view(plan_id, user)
    if name not in SERVED:
        raise HTTPException(404, f"There is no file {name!r} of a plan to be fetched")
    files = PlanFiles(view.record.plan_dir)
    text = files.text(name)
    if text is None:
        raise HTTPException(404, files.problem or f"{files.uri}/{name} does not exist (yet).")
    media, _ = SERVED[name]
    headers = {"Content-Security-Policy": REPORT_POLICY} if media == "text/html" else {}
    return Response(text, media_type=f"{media}; charset=utf-8", headers=headers)


@router.get("/static/{name:path}")
def static(name: str) -> FileResponse:
    """Style sheets and scripts."""
    path = (STATIC / name).resolve()
    if not path.is_relative_to(STATIC) or not path.is_file():
        raise HTTPException(404, f"There is no file {name!r}")
    media = mimetypes.guess_type(path.name)[0] or "text/plain"
    return FileResponse(path, media_type=media, headers={"Cache-Control": "private, max-age=3600"})
