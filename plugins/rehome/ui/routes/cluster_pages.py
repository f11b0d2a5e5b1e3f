"""The fleet, and the page of a cluster."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from rehome.account.known import Known, Unknown
from rehome.account.words import trouble_words
from rehome.account.words.figure_words import WHY_UNKNOWN
from rehome.clusters.clusters_file import ClustersFileError
from rehome.clusters.overlaps import overlap_notes
from rehome.clusters.refused_targets import refused_target_notes
from rehome.domain.clock import utc_now
from rehome.domain.run.paused.paused_text import paused_text
from rehome.execution.foreign import flight_words
from rehome.fleet import attempts, bound
from rehome.fleet.clusters import DEFAULT_CONNECTION, file, window_entry
from rehome.ledger.store import Ledger
from rehome.page.files import files_of
from rehome.page.findings import finding_lines
from rehome.page.fleet import FleetLine, members
from rehome.ui import access, clusters, dag_runs
from rehome.ui.access import UserDep
from rehome.ui.page_bounds import wants_json
from rehome.ui.rendering import render
from rehome.ui.routes.shared import plans, values_for, view_for

router = APIRouter()
PLANS_OF_CLUSTER = 20
"""Newest plans of a cluster among which one is chosen."""


@router.get("/clusters")
def list_clusters(request: Request, user: UserDep) -> Response:
    """The fleet: clusters that have a snapshot, or stand in the clusters file; as JSON, too."""
    fleet_lines, problem, notes = lines(plans.ledger)
    active = [line.account.plan for line in fleet_lines if line.account.plan is not None]
    shown = {plan.plan_id for plan in active if access.may_read(user, plan.dag_id)}
    if wants_json(request.scope):
        return JSONResponse(fleet_json(fleet_lines, shown, problem, notes))
    html = render(
        "clusters.html",
        **values_for(request, user),
        lines=fleet_lines,
        shown=shown,
        problem=problem,
        notes=notes,
        unsent_since=plans.ledger.unsent_since(),
        misled=bound.all_known_misled(plans.ledger),
        may_bind=access.may_control(user),
        now=time.time(),
    )
    return HTMLResponse(html)


@router.get("/clusters/{cluster_id}", response_class=HTMLResponse)
def cluster(request: Request, user: UserDep, cluster_id: str, plan: str = "") -> str:
    """One cluster: its brokers by rack, and what is not well.

    :param plan: id of a plan for it, whose brokers are shown before and after.
    """
    ledger = plans.ledger
    view = clusters.newest(cluster_id, ledger, load=True)
    account = clusters.account(cluster_id, ledger, view, bound.all_known_misled(ledger))
    active = account.plan
    outlook = None if active is None else clusters.outlook_of(active, ledger)
    starts = ledger.watch_starts(cluster_id)
    tried = attempts.last_attempts(ledger, starts, utc_now())
    newest = ledger.plans_on(cluster_id, PLANS_OF_CLUSTER)
    recent = [record for record in newest if access.may_read(user, record.dag_id)]
    chosen = view_for(plan, user).record if plan else None
    if chosen is not None and chosen.cluster_id != cluster_id:
        raise HTTPException(404, f"Plan {plan} is not for cluster {cluster_id}")
    planned = files_of(ledger, chosen).summary if chosen is not None else None
    return render(
        "cluster.html",
        **values_for(request, user),
        view=view,
        flights=clusters.in_flight(cluster_id, ledger),
        flight_words=flight_words,
        may_plan=access.may_plan(user),
        now=time.time(),
        active=active if active and access.may_read(user, active.dag_id) else None,
        account=account,
        waits=None if outlook is None else paused_text(outlook),
        findings=account.findings.as_(lambda findings: finding_lines(findings, starts, tried))
        if isinstance(account.findings, Known)
        else account.findings,
        recent=recent,
        chosen=chosen,
        loads={load.broker: load for load in planned.brokers} if planned is not None else {},
        judged=recent[0] if recent else None,
        gates=files_of(ledger, recent[0]).gates if recent else (),
    )


def fleet_json(
    lines: Iterable[FleetLine], shown: Collection[str], problem: str, notes: Iterable[str]
) -> dict[str, Any]:
    """Every cluster of the fleet.

    :param shown: ids of plans that the reader may see.
    :param problem: what is wrong with the clusters file; "" = nothing.
    """
    return {
        "clusters": [_line(line, shown) for line in lines],
        "problem": problem or None,
        "notes": list(notes),
    }


def _line(line: FleetLine, shown: Collection[str]) -> dict[str, Any]:
    account = line.account
    view = account.view.value if isinstance(account.view, Known) else None
    why = WHY_UNKNOWN[account.view.why] if isinstance(account.view, Unknown) else None
    plan, window = account.plan, account.window
    findings, imbalance = account.findings, account.imbalance
    share = imbalance.value if isinstance(imbalance, Known) else None
    return {
        "title": line.member.title,
        "name": line.member.name or None,
        "connection": line.member.connection or None,
        "cluster_id": line.member.cluster_id or None,
        "snapshot_at": None if view is None else view.taken_at.isoformat(),
        "not_known": why,
        "brokers": None if view is None else len(view.brokers),
        "brokers_away": [each.broker for each in view.brokers if each.problem] if view else [],
        "topics": None if view is None else view.topics,
        "partitions": None if view is None else view.partitions,
        "above_its_share": share,
        "not_well": trouble_words.troubles_in_short(account.troubles) or None,
        "findings": len(findings.value) if isinstance(findings, Known) else None,
        "owed": account.owed,
        "plan_id": plan.plan_id if plan is not None and plan.plan_id in shown else None,
        "plan_state": None if plan is None else plan.state.value,
        "window_opens_at": None if window is None else window.opens_at.isoformat(),
        "window_closes_at": None if window is None else window.closes_at.isoformat(),
        "window_paused": None if window is None else window.paused,
    }


def lines(ledger: Ledger) -> tuple[list[FleetLine], str, list[str]]:
    """A line for each cluster; what is wrong with the clusters file, or with the settings that
    stand for it, "" = nothing; and what there is to know of it.
    """
    problem, connections, notes = "", {}, []
    try:
        clusters_file = file()
        connections = {name: entry.connection for name, entry in clusters_file.clusters.items()}
        notes = [*refused_target_notes(clusters_file), *overlap_notes(clusters_file, utc_now())]
        window_entry(DEFAULT_CONNECTION)
    except ClustersFileError as error:
        problem = str(error)
    views = {view.cluster_id: view for view in clusters.every(ledger)}
    fleet_members = members(connections, ledger.connections(), views)
    windows = dag_runs.windows_ahead({member.connection for member in fleet_members})
    misled = bound.all_known_misled(ledger)
    found_lines = [
        FleetLine(
            member,
            clusters.account(
                *(member.cluster_id, ledger, views.get(member.cluster_id), misled),
                windows.get(member.connection),
            ),
        )
        for member in fleet_members
    ]
    return found_lines, problem, notes
