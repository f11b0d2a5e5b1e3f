"""What must come before a task: which tasks of the chain, and how to add one that is not there.

Operators may be used in DAGs of people's own, in any order. Each finds what it needs in the ledger,
by its run; where that is missing, the error says which task writes it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason

if TYPE_CHECKING:
    from rehome.run.context import RunContext


class ChainStep(enum.StrEnum):
    """Tasks that others go by, by their ids."""

    SNAPSHOT = "snapshot"
    PLAN = "plan"
    DRY_RUN = "dry_run"
    APPROVE = "approve"
    THROTTLE = "throttle"
    PROGRESS = "progress"


OPERATORS: Mapping[ChainStep, str] = {
    ChainStep.SNAPSHOT: 'SnapshotClusterOperator(task_id="snapshot", for_request=True)',
    ChainStep.PLAN: 'PlanReassignmentOperator(task_id="plan")',
    ChainStep.DRY_RUN: 'DryRunOperator(task_id="dry_run")',
    ChainStep.APPROVE: 'ApprovePlanOperator(task_id="approve")',
    ChainStep.THROTTLE: 'SetThrottleOperator(task_id="throttle")',
    ChainStep.PROGRESS: 'ReassignmentSensor(task_id="progress")',
}
"""How a DAG gets each of them."""


class StepMissingError(TaskConflictError):
    """A task runs without the one that must come before it.

    :ivar step: that task; ``in_dag``: whether the DAG has it, in another place.
    """

    def __init__(self, step: ChainStep, task_id: str, dag_id: str, *, in_dag: bool) -> None:
        self.step, self.in_dag = step, in_dag
        super().__init__(
            TaskEnd(
                TaskReason.STEP_MISSING,
                names=(step,),
                task=task_id,
                other_id=dag_id,
                said=OPERATORS[step],
                count=int(in_dag),
            )
        )


def not_before(context: RunContext, step: ChainStep) -> StepMissingError | None:
    """The error for a task that a step does not come before; None = it does, so it is not done.

    Tasks of the follow-up are not of people's own making.
    """
    task, dag = context.task, context.dag
    upstream = getattr(task, "get_flat_relative_ids", None)
    if task is None or dag is None or upstream is None:
        return None
    if context.in_follow_up or step in upstream(upstream=True):
        return None
    return StepMissingError(step, task.task_id, dag.dag_id, in_dag=step in dag.task_ids)
