"""States of tasks, what starts runs, and which tasks a trigger rule lets run."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from airflow.sdk import TriggerRule


class TaskState(enum.StrEnum):
    """States of a task."""

    NONE = "none"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    DEFERRED = "deferred"
    AWAITING_INPUT = "awaiting_input"
    UP_FOR_RETRY = "up_for_retry"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"

    @property
    def finished(self) -> bool:
        """Whether nothing more becomes of it by itself."""
        return self in FINISHED


FINISHED = (TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED)
BAD = (TaskState.FAILED, TaskState.UPSTREAM_FAILED)


class RunType(enum.StrEnum):
    """Airflow's names of what has started a run."""

    MANUAL = "manual"
    SCHEDULED = "scheduled"
    BY_TASK = "operator_triggered"
    BY_ASSET = "asset_triggered"


def not_run(
    rule: TriggerRule, before: Iterable[TaskState], setups: list[TaskState]
) -> TaskState | None:
    """What becomes of a task that its trigger rule does not let run; None = it runs."""
    states = list(before)
    if rule is TriggerRule.ALL_SUCCESS:
        if any(state in BAD for state in states):
            return TaskState.UPSTREAM_FAILED
        return TaskState.SKIPPED if TaskState.SKIPPED in states else None
    if rule is TriggerRule.ALL_DONE:
        return None
    assert rule is TriggerRule.ALL_DONE_SETUP_SUCCESS, f"{rule} is not known here"
    if setups and all(state is TaskState.SKIPPED for state in setups):
        return TaskState.SKIPPED
    if setups and TaskState.SUCCESS not in setups:
        return TaskState.UPSTREAM_FAILED
    return None
