"""The snapshot that a run has taken, as the ledger knows it: XComs that name one are for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome import installation
from rehome.run import steps
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import FOLLOW_UP

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot
    from rehome.run.context import RunContext

TASK = "snapshot"


class SnapshotChangedError(TaskConflictError):
    """The run has no snapshot that the ledger knows, or its files are others by now."""


def keep(context: RunContext, snapshot: Snapshot, connection: str) -> str:
    """Write a snapshot that the task has taken to the warehouse, and who has taken it to the
    ledger; returns its URI.
    """
    from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot

    warehouse, run = context.warehouse, context.dag_run
    uri = warehouse.write_snapshot(snapshot)
    context.ledger.record_snapshot(
        TakenSnapshot(
            snapshot.name,
            snapshot.cluster_id,
            connection,
            snapshot.taken_at,
            warehouse.snapshot_digest(snapshot.name),
            run.dag_id,
            run.run_id,
            context.task.task_id,
        )
    )
    return uri


def uri_of(context: RunContext) -> str:
    """URI of the snapshot that the task's run has taken: within the follow-up, of its own.

    :raises SnapshotChangedError: it has taken none, or its files are others by now.
    :raises StepMissingError: in its DAG, no task comes before it that takes one.
    """
    run, task_id = context.dag_run, TASK
    if context.in_follow_up:
        task_id = f"{FOLLOW_UP}.{TASK}"
    taken = context.ledger.snapshot_taken_by(run.dag_id, run.run_id, task_id)
    if taken is None:
        none = TaskEnd(TaskReason.NO_SNAPSHOT, task=task_id, run_id=run.run_id)
        missing = steps.not_before(context, steps.ChainStep.SNAPSHOT)
        raise missing or SnapshotChangedError(none)
    return require_unchanged(taken)


def require_unchanged(taken: TakenSnapshot) -> str:
    """URI of a snapshot that the ledger knows.

    :raises SnapshotChangedError: its files are not those that were written.
    :raises RehomeError: they are not there.
    """
    warehouse = installation.warehouse()
    if warehouse.snapshot_digest(taken.name) != taken.digest:
        raise SnapshotChangedError(TaskEnd(TaskReason.SNAPSHOT_CHANGED, names=(taken.name,)))
    return warehouse.snapshot_uri(taken.name)
