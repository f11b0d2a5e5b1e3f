"""What the routes share: the plans that are followed, and who may see which."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from fastapi import HTTPException, Request

from rehome import installation
from rehome.api import decisions
from rehome.api.identity import address_of
from rehome.domain.request.param_types import checked_plan_id
from rehome.errors import InvalidRequestError
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.page.plan_json import ForReader
from rehome.page.plan_view import PlanView
from rehome.ui import access, approvals
from rehome.ui.access import UserDep
from rehome.ui.plans import Plans

plans = Plans()


MOST_PAGES = 1_000_000
"""Pages of a list; more than a database counts would be an error of its."""


def number_in(text: str, most: int) -> int | None:
    """A whole number in an address, from 0 to ``most``; None = it is none."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return None
    found = int(text)
    return found if found <= most else None


def root_of(request: Request) -> str:
    """What every address of the page begins with."""
    return str(request.scope.get("root_path", ""))


def values_for(request: Request, user: UserDep) -> dict[str, Any]:
    """What every whole page needs."""
    return {"root": root_of(request), "token": access.token_for(user)}


def to_audit(
    request: Request,
    user: UserDep,
    decided: Decided,
    dag_id: str,
    run_id: str,
    plan_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Have it in the audit that a user has had a DAG run by the page; see :mod:`decisions`."""
    entry = AuditEntry(
        decided,
        Door.PAGE,
        user_id=str(user.get_id()),
        user_name=user.get_name(),
        address=address_of(request.scope),
        plan_id=plan_id,
        dag_id=dag_id,
        run_id=run_id,
        detail=detail or {},
    )
    decisions.RECORDER.put(entry)


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
    return {
        "view": view,
        "controls": view.account.controls if access.may_control(user) else (),
        "asking": approvals.asking_task(view.record),
        "poll_s": installation.settings(view.record.planned_through).poll_interval_s,
        "now": time.time(),
    }


def for_reader(view: PlanView, user: UserDep) -> ForReader:
    """The same for a program."""
    values = live_values(view, user)
    return ForReader(
        controls=values["controls"],
        asking=values["asking"],
        poll_s=values["poll_s"],
    )
