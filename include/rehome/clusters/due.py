"""Which clusters are due to be planned for their next maintenance window. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rehome.execution.access.open_windows import CronWindow, CronWindows

AHEAD = timedelta(hours=12)
"""A cluster that nobody has named is due when its next window opens within this time."""


class NotDue(enum.StrEnum):
    """Why a cluster is not planned now."""

    NO_WINDOW = "no_window"
    WINDOW_OPEN = "window_open"  # its run has taken up a plan, or made one
    WINDOW_FAR = "window_far"
    PLAN_ACTIVE = "plan_active"  # running or paused: the window resumes it
    HANDED_OVER = "handed_over"  # a plan waits for the window
    PLANNED = "planned"  # for this window, by an earlier run
    NO_SNAPSHOT = "no_snapshot"
    OLD_SNAPSHOT = "old_snapshot"


NOT_DUE_WORDS: Mapping[NotDue, str] = {
    NotDue.NO_WINDOW: "it has no window in the clusters file",
    NotDue.WINDOW_OPEN: "its window is open: plans are made before it opens",
    NotDue.WINDOW_FAR: "its next window is too far ahead",
    NotDue.PLAN_ACTIVE: "a plan runs on it, or has paused",
    NotDue.HANDED_OVER: "a plan that was handed over waits for its window",
    NotDue.PLANNED: "a run of plan_fleet has planned it for this window already",
    NotDue.NO_SNAPSHOT: "no snapshot of it was taken through its connection by now",
    NotDue.OLD_SNAPSHOT: "its newest snapshot is too old: see collect_snapshots",
}
"""For people; after the cluster's name and a colon."""


@dataclass(frozen=True, slots=True)
class DueFacts:
    """What is known of a cluster. Aware UTC times.

    :param active: a plan runs or has paused.
    :param handed_over: a plan waits for the next window.
    :param planned_at: when earlier runs of the fleet have planned it.
    :param snapshot_taken_at: of its newest snapshot; None = there is none.
    :param max_snapshot_age: an older one is no ground for a plan.
    """

    windows: Collection[CronWindow]
    active: bool = False
    handed_over: bool = False
    planned_at: Collection[datetime] = ()
    snapshot_taken_at: datetime | None = None
    max_snapshot_age: timedelta = timedelta(hours=1)


def why_not_due(state: DueFacts, now: datetime, *, is_named: bool = False) -> NotDue | None:
    """Why a cluster is not to be planned now; None = it is due.

    :param is_named: a person has named it: its window may be far ahead.
    """
    windows = CronWindows(tuple(state.windows))
    if windows.open_at(now) is not None:
        return NotDue.WINDOW_OPEN
    window = windows.next_after(now)
    if window is None:
        return NotDue.NO_WINDOW
    if window.begins - now > AHEAD and not is_named:
        return NotDue.WINDOW_FAR
    if state.active:
        return NotDue.PLAN_ACTIVE
    if state.handed_over:
        return NotDue.HANDED_OVER
    newest = max(state.planned_at, default=None)
    planned_for = None if newest is None else windows.next_after(newest)
    if planned_for is not None and planned_for.begins == window.begins:
        return NotDue.PLANNED
    if state.snapshot_taken_at is None:
        return NotDue.NO_SNAPSHOT
    old = now - state.snapshot_taken_at > state.max_snapshot_age
    return NotDue.OLD_SNAPSHOT if old else None
