"""The errors by which tasks end their runs for reasons that have a kind, or ask again."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import AirflowException

from rehome.domain.run.askers import NotAsked, NotAskedForError
from rehome.errors import ClusterBusyError, PlanConflictError, RehomeError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.words.worded import ended_text


class TypedError(RehomeError):
    """An error of a task that has its reason as a type."""

    def __init__(self, end: TaskEnd) -> None:
        self.end = end
        what, left, next_step = ended_text(end)
        super().__init__(what, state_left=left, next_step=next_step)


class EndedError(TypedError):
    """A task ends its run; its reason says whether another attempt may go through."""


class TaskConflictError(TypedError, PlanConflictError):
    """A plan, or what the ledger has of a run, does not allow the task to begin."""


class ClusterHeldError(TypedError, ClusterBusyError):
    """Another plan holds the cluster."""


def unasked_error(why: NotAsked, reason: TaskReason, **values: Any) -> NotAskedForError:
    """The error of a run that nobody who may ask stands behind.

    :param why: as the audit has it; ``reason``: with its values.
    """
    what, _, next_step = ended_text(TaskEnd(reason, **values))
    return NotAskedForError(why, what, next_step=next_step)


class AskedAgainError(AirflowException):
    """Airflow tries the task again, which asks anew: a request for input has one answer only."""
