"""What the routes share: the plans that are followed, and who may see which."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from fastapi import HTTPException, Request
from sqlalchemy import select

from rehome import installation
from rehome.airflow_versions import asking_states
from rehome.api import decisions
from rehome.api.identity import address_of
from rehome.api.process_ledger import LEDGER
from rehome.domain.request.param_types import checked_plan_id
from rehome.domain.run.states import PlanState
from rehome.errors import InvalidRequestError
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.paging import Mark
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.page.plan_json import ForReader
from rehome.page.plan_view import PlanFollower, PlanView
from rehome.ui import access, clusters
from rehome.ui.access import UserDep
from rehome.ui.dag_runs import paused_dags

_FOLLOWED = 64
"""Plans that are kept; the one that was asked for the longest time ago goes first."""
FRESH_S = 0.8
"""What was read no longer ago is new enough for the next viewer, too."""
_MADE_KEPT = 100
"""Pages and filters of one view's table, say."""
_AGES_S = 15.0
"""However little happens, a view is made anew: alerts depend on the time, too."""


@dataclass
class _FollowedPlan:
    """A plan, and the view of it that was made last."""

    follower: PlanFollower
    lock: Lock = field(default_factory=Lock)
    view: PlanView | None = None
    mark: Mark | None = None
    checked: float = 0.0
    made: float = 0.0
    number: int = 0
    made_of_view: dict[str, str] = field(default_factory=dict)


class Plans:
    """The ledger, and what was read of plans. Threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ledger: Ledger | None = None
        self._followed: OrderedDict[str, _FollowedPlan] = OrderedDict()

    @property
    def ledger(self) -> Ledger:
        """The ledger that the settings name now.

        :raises RehomeError: it cannot be opened.
        """
        with self._lock:
            return self._open_ledger()

    def view(self, plan_id: str) -> tuple[PlanView, int]:
        """A plan as it is now, with a number that grows with every new view.

        :raises PlanConflictError: there is no such plan.
        :raises RehomeError: the ledger cannot be read.
        """
        with self._lock:
            followed = self._follow(plan_id)
        with followed.lock:
            now = time.monotonic()
            if followed.view is not None and now - followed.checked < FRESH_S:
                return followed.view, followed.number
            mark = followed.follower.mark()
            followed.checked = now
            if followed.view is None or mark != followed.mark or now - followed.made > _AGES_S:
                followed.view = followed.follower.view(datetime.now(UTC))
                followed.mark, followed.made = mark, now
                followed.number += 1
                followed.made_of_view.clear()
            return followed.view, followed.number

    def once(self, view: PlanView, what: str, make: Callable[[], str]) -> str:
        """What is the same for every viewer of one view of a plan: made once.

        :param what: names it, with everything that it depends on apart from the view.
        """
        with self._lock:
            followed = self._follow(view.record.plan_id)
        with followed.lock:
            if followed.view is not view:
                return make()  # a newer view was made since: this one's is for this viewer alone
            if what not in followed.made_of_view:
                if len(followed.made_of_view) >= _MADE_KEPT:
                    followed.made_of_view.clear()
                followed.made_of_view[what] = make()
            return followed.made_of_view[what]

    def follower(self, plan_id: str) -> PlanFollower:
        """What follows a plan."""
        with self._lock:
            return self._follow(plan_id).follower

    def _follow(self, plan_id: str) -> _FollowedPlan:
        ledger = self._open_ledger()
        if plan_id not in self._followed:
            settings = installation.settings(ledger.plan(plan_id).planned_through)
            follower = PlanFollower(
                *(ledger, plan_id, settings.stall_alert_s, settings.stall_timeout_s),
                dag_paused=lambda dag_id: bool(paused_dags([dag_id])),
                outlook=lambda plan: clusters.outlook_of(plan, ledger),
            )
            self._followed[plan_id] = _FollowedPlan(follower)
        self._followed.move_to_end(plan_id)
        while len(self._followed) > _FOLLOWED:
            self._followed.popitem(last=False)
        return self._followed[plan_id]

    def _open_ledger(self) -> Ledger:
        ledger = LEDGER.open()
        if ledger is not self._ledger:
            self._ledger = ledger
            self._followed.clear()
        return ledger


plans = Plans()


MOST_PAGES = 1_000_000
"""Pages of a list; more than a database counts would be an error of its."""


def number_in(text: str, most: int) -> int | None:
    """A whole number in an address, from 0 to ``most``; None = it is none."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)):
        return None
    number = int(text)
    return number if number <= most else None


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
        "asking": asking_task(view.record),
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


def asking_task(record: PlanRecord) -> str | None:
    """The task of the plan's run that waits for a person; None = none does."""
    if record.dag_id is None or record.state not in (PlanState.PLANNED, PlanState.PAUSED):
        return None
    query = (
        select(TaskInstance.task_id)
        .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
        .where(
            TaskInstance.dag_id == record.dag_id,
            TaskInstance.run_id == record.run_id,
            TaskInstance.state.in_(asking_states()),
            HITLDetail.responded_at.is_(None),
        )
        .limit(1)
    )
    with create_session() as session:
        task_id: str | None = session.scalar(query)
    return task_id
