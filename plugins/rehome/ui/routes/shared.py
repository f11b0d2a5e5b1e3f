"""What the routes share: the plans that are followed, and who may see which."""

from __future__ import annotations

import time
from typing import Any

from fastapi import HTTPException, Request

from include.domain.request.param_types import checked_plan_id
from include.errors import InvalidRequestError
from include.page.controls import possible
from include.page.plan_view import PlanView
from include.watching.paused_text import paused_text
from rehome import installation
from rehome.ui import access, approvals, clusters
from rehome.ui.access import UserDep
from rehome.ui.plans import Plans

plans = Plans()


def root_of(request: Request) -> str:
    """What every address of the page begins with."""
    return str(request.scope.get("root_path", ""))


def values_for(request: Request, user: UserDep) -> dict[str, Any]:
    """What every whole page needs."""
    return {"root": root_of(request), "token": access.token_for(user)}


def readable(view: PlanView, user: UserDep) -> PlanView:
    """A view that the user may see.

    :raises HTTPException: 404, as for a plan that there is none of.
    """
    if not access.may_read(user, view.record.dag_id):
        raise HTTPException(404, f"The ledger knows no plan {view.record.plan_id!r}")
    return view


def view_for(plan_id: str, user: UserDep) -> PlanView:
    """The newest view of a plan that the user may see.

    :raises HTTPException: 404: there is no such plan, or it is not for this user.
    """
    try:
        view, _ = plans.view(checked_plan_id(plan_id))
    except InvalidRequestError as error:
        raise HTTPException(404, str(error)) from None
    return readable(view, user)


def live_values(view: PlanView, user: UserDep) -> dict[str, Any]:
    """What the first screen is made of."""
    outlook = clusters.outlook_of(view.record, plans.ledger)
    return {
        "waits": None if outlook is None else paused_text(outlook, view.refused),
        "view": view,
        "controls": possible(view) if access.may_control(user) else (),
        "asking": approvals.asking_task(view.record),
        "poll_s": installation.settings(view.record.planned_through).poll_interval_s,
        "now": time.time(),
    }
