"""Runs that no person has asked for: what they must not do to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.ports import extras

if TYPE_CHECKING:
    from rehome.domain.plan.plan import Plan
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext


class LowersReplicationError(TaskConflictError):
    """A plan takes replicas away, and no person has asked for it.

    :param plan_id: of the plan; ``what``: the partitions, as a sentence without a full stop.
    """

    def __init__(self, plan_id: str, what: str) -> None:
        self.plan_id = plan_id
        super().__init__(TaskEnd(TaskReason.LOWERS_REPLICATION, plan_id, said=what))


def refuse_lowering(
    context: RunContext,
    plan: Plan,
    record: PlanRecord | None = None,
    *,
    asks: bool = False,
) -> None:
    """See that a plan that takes replicas away is a person's: asked for, approved, or handed over
    to a window by one. There is no other way in which a plan deletes anything.

    :param record: of the plan, before it changes the cluster; None = it is being made.
    :param asks: whether a person will be asked to approve it.
    :raises LowersReplicationError: it is nobody's.
    """
    from rehome.domain.plan.failure_domains import weaknesses_of

    lost = weaknesses_of(plan.moves, {})
    if lost and not asks and not _of_a_person(context, record):
        raise LowersReplicationError(plan.plan_id, "; ".join(map(str, lost)))


def _of_a_person(context: RunContext, record: PlanRecord | None) -> bool:
    """Whether a person stands behind a plan. Who has watch_clusters judge asks for no plan."""
    if record is not None:
        if record.approver is not None:
            return True
        if record.for_window_at is not None or record.state.active:
            # It was a person's when it was handed over, or begun; or it is a heal.
            return extras().heals.heal_of(record, context.ledger) is None
    is_by_person = context.asker.person is not None
    return is_by_person and not extras().heals.by_watching(context.dag_run, context.ledger)
