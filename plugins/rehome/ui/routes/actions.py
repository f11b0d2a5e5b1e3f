"""What people ask of a plan: shown in numbers first, then run as a DAG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.clock import utc_now
from rehome.domain.run.control_parameters import parse_control
from rehome.domain.run.states import Control
from rehome.domain.text import rate_in
from rehome.errors import InvalidRequestError, first_problems
from rehome.execution.access.connection_policy import ConnectionPolicy
from rehome.fleet import paused_plan
from rehome.ledger.base.audit_entry import Decided
from rehome.page.controls import Offer, offer
from rehome.page.plan_json import offer_json
from rehome.page.plan_view import PlanView
from rehome.ui import access, clusters, dag_runs
from rehome.ui.access import ControllerDep, MayControlDep, UserDep
from rehome.ui.page_bounds import wants_json
from rehome.ui.rendering import render
from rehome.ui.routes.programs import run_json
from rehome.ui.routes.shared import plans, root_of, to_audit, view_for

router = APIRouter()
STOP_POLLING = 286
"""The status by which htmx asks no more."""
NOTHING_ENTERED = dict.fromkeys(
    ("throttle", "throttle_by_broker", "max_moves_per_broker", "connection"), ""
)
"""The fields of the dialog, as it opens; after a refusal they hold what was entered."""
DECIDED_BY = {
    Control.RUN: Decided.RUN,
    Control.NEXT_WINDOW: Decided.HAND_OVER,
    Control.PAUSE: Decided.PAUSE,
    Control.RESUME: Decided.RESUME,
    Control.CHANGE_THROTTLE: Decided.THROTTLE,
    Control.CHANGE_MOVES: Decided.MOVES_AT_ONCE,
    Control.CANCEL: Decided.CANCEL,
    Control.ROLL_BACK: Decided.ROLL_BACK,
}
"""What a request is in the audit, as it comes in; the run that passes it on records it, too."""


@router.get("/plans/{plan_id}/controls/{control}")
def ask_control(request: Request, user: MayControlDep, plan_id: str, control: Control) -> Response:
    """What a request would lead to, before it is made; as JSON, too."""
    view = view_for(plan_id, user)
    connection = view.record.planned_through
    policy = dag_runs.policy_of(plans.ledger, view.record, connection)
    control_offer = _offer(view, control, policy)
    if wants_json(request.scope):
        return JSONResponse(offer_json(control_offer))
    html = render(
        "confirm.html",
        root=root_of(request),
        view=view,
        offer=control_offer,
        connection=connection,
        problem="",
        entered=NOTHING_ENTERED,
    )
    return HTMLResponse(html)


@router.post("/plans/{plan_id}/controls/{control}", response_class=HTMLResponse)
def request_control(
    request: Request,
    user: ControllerDep,
    plan_id: str,
    control: Control,
    throttle: Annotated[str, Form()] = "",
    connection: Annotated[str, Form()] = "",
    throttle_by_broker: Annotated[str, Form()] = "",
    max_moves_per_broker: Annotated[str, Form()] = "",
) -> Response:
    """Trigger `control_reassignment` in the user's name."""
    view = view_for(plan_id, user)
    through = view.record.planned_through or connection.strip() or None
    form = {"throttle_by_broker": throttle_by_broker, "max_moves_per_broker": max_moves_per_broker}
    params, problem = _request_params(plan_id, control, throttle, form)
    by_broker = None
    if not problem and "throttle_by_broker" in params:
        by_broker = BrokerRates.from_json(params["throttle_by_broker"])
    policy = dag_runs.policy_of(plans.ledger, view.record, through)
    control_offer = _offer(view, control, policy, params["throttle"], by_broker)
    problem = problem or control_offer.refusal
    if not through:
        problem = "Name the connection of the plan's cluster: an earlier Rehome did not record it."
    if problem and wants_json(request.scope):
        raise HTTPException(422, problem)
    if problem:
        html = render(
            "confirm.html",
            root=root_of(request),
            view=view,
            offer=control_offer,
            connection=view.record.planned_through,
            problem=problem,
            entered={**form, "throttle": throttle, "connection": connection},
        )
        return HTMLResponse(html, 422)
    assert through is not None
    run_id = dag_runs.trigger_control(
        view.record.plan_id, control, through, params, user.get_name()
    )
    detail = {name: value for name, value in params.items() if value is not None}
    to_audit(
        request, user, DECIDED_BY[control], access.CONTROL_DAG, run_id, view.record.plan_id, detail
    )
    if wants_json(request.scope):
        return JSONResponse(
            {**offer_json(control_offer), "dag_id": access.CONTROL_DAG, "run_id": run_id}
        )
    html = render(
        "asked.html", root=root_of(request), view=view, offer=control_offer, run_id=run_id
    )
    return HTMLResponse(html)


def _request_params(
    plan_id: str, control: Control, throttle: str, form: Mapping[str, str]
) -> tuple[dict[str, Any], str]:
    """What goes with a request, as parameters of its run; and why that would be refused, "" = it
    would not.
    """
    params: dict[str, Any] = {"throttle": rate_in(throttle) if throttle.strip() else None}
    if throttle.strip() and params["throttle"] is None:
        return params, f"{throttle} is no rate: write 50 MB/s, or 50000000."
    params |= {name: value for name, value in form.items() if value.strip()}
    if control is Control.CHANGE_THROTTLE and not any(params.values()):
        return params, "Name the new throttle."
    try:
        read = parse_control({"plan_id": plan_id, "action": control, **params})
    except InvalidRequestError as error:
        return params, first_problems(error.problems)
    if read.rates_by_broker is not None:
        params["throttle_by_broker"] = read.rates_by_broker.to_json()
    if read.moves_per_broker is not None:
        params["max_moves_per_broker"] = read.moves_per_broker
    return params, ""


def _offer(
    view: PlanView,
    control: Control,
    policy: ConnectionPolicy,
    rate: int | None = None,
    by_broker: BrokerRates | None = None,
) -> Offer:
    if control is not Control.NEXT_WINDOW:
        return offer(view, control, policy, rate, by_broker=by_broker)
    cluster_id, ledger = view.record.cluster_id, plans.ledger
    active = ledger.active_plan(cluster_id)
    first = [active] if active is not None else []
    before = [plan.plan_id for plan in (*first, *ledger.handed_over(cluster_id))]
    airflow_answer = clusters.asked_of_airflow(view.record, ledger)
    ahead = paused_plan.next_window(ledger, view.record, utc_now(), airflow_answer, rate=rate)
    return offer(view, control, policy, rate, ahead, before)


@router.get("/plans/{plan_id}/requests/{run_id:path}", response_class=HTMLResponse)
def request_outcome(request: Request, user: UserDep, plan_id: str, run_id: str) -> Response:
    """What has become of a run of `control_reassignment`; asked for until it has ended."""
    view_for(plan_id, user)
    outcome = dag_runs.outcome(access.CONTROL_DAG, run_id)
    if wants_json(request.scope):
        return JSONResponse(run_json(outcome, plans.ledger.cause_of(access.CONTROL_DAG, run_id)))
    html = render("outcome.html", root=root_of(request), run_id=run_id, outcome=outcome)
    return HTMLResponse(html, STOP_POLLING if outcome.ended else 200)
