"""What a cluster's plan waits for that is paused, or was handed over: by the ledger, its windows,
and Airflow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import TYPE_CHECKING

from rehome.domain.request.request import OnWindowEnd
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.paused import paused_plan
from rehome.domain.run.paused.paused_plan import DagState
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.execution.access.open_windows import HEAD_START
from rehome.fleet import clusters

if TYPE_CHECKING:
    from rehome.domain.run.paused.paused_plan import Outlook
    from rehome.execution.access.open_windows import FixedWindow
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger

DagPaused = Callable[[str], bool | None]
"""Whether a DAG is paused in Airflow; None = that is not known."""


def cannot_ask(_: str) -> None:
    """Airflow's callbacks cannot ask whether a DAG is paused."""


def outlook(
    ledger: Ledger, plan: PlanRecord, now: datetime, dag_paused: DagPaused = cannot_ask
) -> Outlook | None:
    """What a plan waits for; None = it is neither paused nor handed over."""
    if plan.state is PlanState.PLANNED and plan.for_window_at is not None:
        return next_window(ledger, plan, now, dag_paused)
    paused_at = ledger.last_event_at(plan.plan_id, EventKind.PAUSED)
    if plan.state is not PlanState.PAUSED or paused_at is None:
        return None
    return next_window(ledger, plan, now, dag_paused, since=paused_at)


def next_window(
    ledger: Ledger,
    plan: PlanRecord,
    now: datetime,
    dag_paused: DagPaused = cannot_ask,
    *,
    since: datetime | None = None,
    rate: int | None = None,
) -> Outlook:
    """Which window takes up a plan that is paused, or was handed over.

    :param since: a window that was open then does not; None = any does whose run begins.
    :param rate: that a plan which is handed over is to have, in bytes per second; None = what was
        asked for.
    """
    handed_over = since is None
    try:
        windows = clusters.windows_through(_through(plan))
        state = _state_of(window_dags(ledger, plan), dag_paused)
    except RehomeError as error:
        why = paused_plan.Why.NOT_KNOWN
        return paused_plan.NeedsPerson(why, error.what, handed_over)
    window = windows.takes_up(since or now - HEAD_START, now)
    return paused_plan.outlook(
        None if window is None else window.begins,
        state,
        now,
        by_person=since is not None and plan.pause_requested,
        stuck=_fits_not(ledger, plan, window, rate) if handed_over else is_stuck(ledger, plan),
        closes_at=None if window is None else window.ends,
        handed_over=handed_over,
    )


def is_stuck(ledger: Ledger, plan: PlanRecord) -> bool:
    """Whether the end of a window has paused a plan of which no move could end in that window."""
    if plan.state is not PlanState.PAUSED or plan.pause_requested:
        return False
    taken_up_at = ledger.last_event_at(plan.plan_id, EventKind.CONTINUED) or plan.started_at
    done_at = ledger.last_done_at(plan.plan_id)
    return done_at is None or (taken_up_at is not None and done_at < taken_up_at)


def _fits_not(
    ledger: Ledger, plan: PlanRecord, window: FixedWindow | None, rate: int | None
) -> bool:
    """Whether even the smallest move of a plan copies for longer than a window is open, at the
    throttle that was asked for. Copies between log dirs take none of a window's time, as for what
    starts moves. Of what is not known this is not said.
    """
    rate = rate or plan.asked_rate_bytes_per_s
    at_its_end = OnWindowEnd(plan.request.get("on_window_end", OnWindowEnd.FINISH))
    if window is None or plan.unthrottled or not rate or plan.asked_rates_by_broker:
        return False
    if at_its_end is not OnWindowEnd.FINISH:
        return False
    lets = rate * (window.ends - window.begins).total_seconds()
    smallest = ledger.smallest_move_bytes(plan.plan_id)
    if smallest is None or smallest <= lets:
        return False
    try:
        moves = ledger.planned_moves(plan.plan_id)
    except RehomeError:  # an earlier version has recorded them
        return False
    return all(move.size_bytes * len(move.adding) > lets for move in moves)


def _state_of(dag_ids: Collection[str], dag_paused: DagPaused) -> DagState:
    """One that runs is enough."""
    if not dag_ids:
        return DagState.NONE
    paused = {dag_paused(each) for each in dag_ids}
    if False in paused:
        return DagState.RUNS
    return DagState.NOT_KNOWN if None in paused else DagState.PAUSED


def _through(plan: PlanRecord) -> str:
    return plan.planned_through or clusters.DEFAULT_CONNECTION


def window_dags(ledger: Ledger, plan: PlanRecord) -> set[str]:
    """Ids of those that run in windows of the plan's cluster, through whichever connection."""
    leads = ledger.connections().items()
    alike = {through for through, cluster_id in leads if cluster_id == plan.cluster_id}
    return set(clusters.dags_for(clusters.WINDOW_DAG, {_through(plan), *alike}).values())
