"""What every operator of Rehome's is: what ends it is recorded, whatever that is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import BaseOperator

from rehome.airflow_versions import TaskDeferralError
from rehome.run.causes.errors import EndedError
from rehome.run.causes.recorded import record_cause
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import RunContext
from rehome.run.ports import extras

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class RecordedOperator(BaseOperator):
    """A task. Subclasses write :meth:`step`, and what goes on after a deferral; both may raise
    Rehome's errors. First among the bases of an operator.
    """

    def execute(self, context: Context) -> Any:
        """Run the step; what it raises on purpose becomes one clear line."""
        with _attempt(context) as run:
            return self.step(run)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Go on after a deferral, also where that has failed. The method gets the task's
        :class:`RunContext`, as :meth:`step` does.
        """
        with _attempt(context) as run:
            try:
                return super().resume_execution(next_method, next_kwargs, cast("Context", run))
            except TaskDeferralError as error:
                raise trigger_failed(self.task_id, error, next_kwargs or {}) from error

    @abstractmethod
    def step(self, context: RunContext) -> Any:
        """The operator's own work."""


@contextmanager
def _attempt(context: Mapping[str, Any]) -> Iterator[RunContext]:
    with extras().channels.one_task(), RunContext(context) as run, record_cause(run):
        yield run


def trigger_failed(task_id: str, error: Exception, kwargs: Mapping[str, Any]) -> EndedError:
    """The error of a task whose trigger has failed.

    :param kwargs: what Airflow hands over in the place of an event: the lines of a traceback.
    """
    lines = "\n".join(kwargs.get("traceback") or ()).strip().splitlines()
    said = lines[-1] if lines else str(error)
    return EndedError(TaskEnd(TaskReason.TRIGGER_FAILED, task=task_id, said=said))
