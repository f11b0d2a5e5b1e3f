"""Planning a move: a form, a dry run of what is written in it, and the plan that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response

from rehome.account.clusters.cluster_facts import ClusterView
from rehome.domain.actions import Action
from rehome.domain.request.topic_filters import filters_cover
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError
from rehome.fleet import bound
from rehome.fleet.clusters import DEFAULT_CONNECTION
from rehome.ledger.base.audit_entry import Decided
from rehome.page.alternatives import Instead, params_instead
from rehome.page.plan_form import ACTION_WORDS, CHOICES, PlanForm
from rehome.trigger_check import refusal_without_pool
from rehome.ui import access, clusters, dag_runs
from rehome.ui.access import MayPlanDep, PlannerDep, UserDep
from rehome.ui.rendering import render
from rehome.ui.routes.shared import plans, root_of, to_audit, values_for, view_for

router = APIRouter()
TOPICS_NAMED = 8
TOPICS_COUNTED = 100
"""Names and patterns that are looked for, among all topics of the cluster, while they are typed."""


def read_form(
    action: Annotated[str, Form()],
    brokers: Annotated[list[str] | None, Form()] = None,
    topics: Annotated[str, Form()] = "",
    replication_factor: Annotated[str, Form()] = "",
    throttle: Annotated[str, Form()] = "",
    tolerance: Annotated[str, Form()] = "",
    budget: Annotated[str, Form()] = "",
    approval: Annotated[bool, Form()] = False,
    replacements: Annotated[str, Form()] = "",
    log_dirs: Annotated[str, Form()] = "",
) -> PlanForm:
    """The form as it was sent."""
    return PlanForm(
        action,
        tuple(brokers or ()),
        topics,
        replication_factor,
        throttle,
        tolerance,
        budget,
        approval,
        replacements,
        log_dirs,
    )


@router.get("/clusters/{cluster_id}/new", response_class=HTMLResponse)
def plan_a_move(
    request: Request,
    user: MayPlanDep,
    cluster_id: str,
    action: str = "",
    broker: Annotated[list[str] | None, Query()] = None,
) -> str:
    """The form, with an action and brokers chosen where the address names them."""
    view = _newest_view(cluster_id)
    form = PlanForm(action or Action.DRAIN.value, tuple(broker or ()))
    return render("plan_form.html", **values_for(request, user), **_form_values(view, form))


@router.get("/clusters/{cluster_id}/topics", response_class=HTMLResponse)
def count_topics(user: UserDep, cluster_id: str, topics: str = "") -> str:
    """How many topics, and partitions of them, names and patterns mean; or why one means none."""
    names = PlanForm(topics=topics).topic_names
    if len(names) > TOPICS_COUNTED:
        raise HTTPException(422, f"More than {TOPICS_COUNTED} names and patterns are not counted.")
    every = clusters.topics(cluster_id)
    try:
        covers = filters_cover(names, [name for name, _, _ in every])
    except ValueError as error:
        return render("topics_named.html", problem=str(error))
    chosen = [
        (name, sum(covers(name, number, internal) for number in range(partitions)))
        for name, partitions, internal in every
        if covers(name, None, internal) and (names or not internal)
    ]
    names_shown = [name for name, _ in chosen[:TOPICS_NAMED]] if names else []
    return render(
        "topics_named.html",
        topics=count_text(len(chosen), "topic"),
        partitions=count_text(sum(partitions for _, partitions in chosen), "partition"),
        every=not names,
        named=names_shown,
        more=len(chosen) - len(names_shown),
        problem="",
    )


@router.post("/clusters/{cluster_id}/new", response_class=HTMLResponse)
def have_it_planned(
    request: Request,
    user: PlannerDep,
    cluster_id: str,
    form: Annotated[PlanForm, Depends(read_form)],
    connection: Annotated[str, Form()] = "",
) -> Response:
    """Trigger a dry run in the user's name, and go where its plan will be."""
    view = _newest_view(cluster_id)
    through = connection.strip() or connection_offered(cluster_id)
    try:
        params = form.params()
    except InvalidRequestError as error:
        values = _form_values(view, form) | {"connection": through, "problems": error.problems}
        html = render("plan_fields.html", root=root_of(request), **values)
        return HTMLResponse(html, 422)
    run_id = _trigger({**params, "kafka_config_id": through, "cluster_id": cluster_id}, user)
    to_audit(request, user, Decided.TRIGGERED, access.VIEWED_DAG, run_id)
    return _go_to_run(request, run_id)


@router.post("/plans/{plan_id}/instead", response_class=HTMLResponse)
def have_another_planned(
    request: Request,
    user: PlannerDep,
    plan_id: str,
    kind: Annotated[Instead, Form()],
    value: Annotated[str, Form()],
) -> Response:
    """Trigger a dry run of what a plan's page offers: a smaller budget, or a target less."""
    record = view_for(plan_id, user).record
    summary = plans.follower(record.plan_id).files.summary
    params = summary and params_instead(record, summary, kind, value, datetime.now(UTC))
    if not params:
        raise HTTPException(409, "The plan does not offer this. Reload the page.")
    through = record.planned_through or connection_offered(record.cluster_id)
    run_id = _trigger({**params, "kafka_config_id": through, "cluster_id": record.cluster_id}, user)
    instead = {"instead_of": plan_id, "kind": kind.value, "value": value}
    to_audit(request, user, Decided.TRIGGERED, access.VIEWED_DAG, run_id, detail=instead)
    return _go_to_run(request, run_id)


def _trigger(conf: Mapping[str, Any], user: PlannerDep) -> str:
    if without_pool := refusal_without_pool(access.VIEWED_DAG):
        raise HTTPException(409, without_pool)
    return dag_runs.trigger(access.VIEWED_DAG, conf, user.get_name())


def _go_to_run(request: Request, run_id: str) -> Response:
    there = f"{root_of(request)}/runs/{access.VIEWED_DAG}/{quote(run_id)}"
    return Response(headers={"HX-Redirect": there})


def _newest_view(cluster_id: str) -> ClusterView:
    return clusters.newest(cluster_id, plans.ledger, load=False)


def _form_values(view: ClusterView, form: PlanForm) -> dict[str, Any]:
    return {
        "view": view,
        "form": form,
        "choices": CHOICES,
        "words": ACTION_WORDS,
        "connection": connection_offered(view.cluster_id),
        "problems": (),
    }


def connection_offered(cluster_id: str) -> str:
    """The one that its newest plan was made through, or that was seen to lead there."""
    newest = plans.ledger.plans_on(cluster_id, 1)
    through = newest[0].planned_through if newest else None
    if through in {each.connection for each in bound.all_known_misled(plans.ledger)}:
        through = None
    return through or clusters.connection_to(cluster_id, plans.ledger) or DEFAULT_CONNECTION
