"""The ledger as the page reads it: one follower for each plan, however many viewers it has."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

from rehome import installation
from rehome.api.process_ledger import LEDGER
from rehome.ledger.base.paging import Mark
from rehome.ledger.store import Ledger
from rehome.page.plan_view import PlanFollower, PlanView
from rehome.ui import clusters
from rehome.ui.dag_runs import paused_dags

FOLLOWED = 64
"""Plans that are kept; the one that was asked for the longest time ago goes first."""
FRESH_S = 0.8
"""What was read no longer ago is new enough for the next viewer, too."""
MADE_KEPT = 100
"""Pages and filters of one view's table, say."""
AGES_S = 15.0
"""However little happens, a view is made anew: alerts depend on the time, too."""


@dataclass
class FollowedPlan:
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
        self._followed: OrderedDict[str, FollowedPlan] = OrderedDict()

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
            if followed.view is None or mark != followed.mark or now - followed.made > AGES_S:
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
                if len(followed.made_of_view) >= MADE_KEPT:
                    followed.made_of_view.clear()
                followed.made_of_view[what] = make()
            return followed.made_of_view[what]

    def follower(self, plan_id: str) -> PlanFollower:
        """What follows a plan."""
        with self._lock:
            return self._follow(plan_id).follower

    def _follow(self, plan_id: str) -> FollowedPlan:
        ledger = self._open_ledger()
        if plan_id not in self._followed:
            settings = installation.settings(ledger.plan(plan_id).planned_through)
            follower = PlanFollower(
                *(ledger, plan_id, settings.stall_alert_s, settings.stall_timeout_s),
                dag_paused=lambda dag_id: bool(paused_dags([dag_id])),
                outlook=lambda plan: clusters.outlook_of(plan, ledger),
            )
            self._followed[plan_id] = FollowedPlan(follower)
        self._followed.move_to_end(plan_id)
        while len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)
        return self._followed[plan_id]

    def _open_ledger(self) -> Ledger:
        ledger = LEDGER.open()
        if ledger is not self._ledger:
            self._ledger = ledger
            self._followed.clear()
        return ledger
