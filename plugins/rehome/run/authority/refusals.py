"""What the audit keeps of a run that was refused: in whose name it was, and why, by a code."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rehome.domain.run.askers import NotAskedForError
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door

if TYPE_CHECKING:
    from rehome.clusters.binding import Misled
    from rehome.run.context import RunContext


@contextmanager
def told_of_refusal(context: RunContext) -> Iterator[None]:
    """Have the audit know of a run that nobody who may ask stands behind."""
    try:
        yield
    except NotAskedForError as error:
        tell(context, error.why)
        raise


def tell_misled(context: RunContext, misled: Misled) -> None:
    """Have the audit know that a run may not act through a connection, for it leads elsewhere than
    it is bound to.
    """
    tell(
        context,
        misled.why,
        misled.cluster_id,
        connection=misled.connection,
        leads_to=misled.cluster_id,
        bound_to=misled.bound_id,
        entries=list(misled.entries) or [misled.entry],
    )


def tell(
    context: RunContext,
    why: enum.StrEnum,
    cluster_id: str | None = None,
    **detail: Any,
) -> None:
    """Have the audit know of a refusal.

    :param detail: more than the code.
    """
    run, who = context.dag_run, context.asker
    context.ledger.add_audit(
        AuditEntry(
            Decided.REFUSED,
            Door.TASK if who.person else Door.SCHEDULE,
            user_name=who.person,
            dag_id=run.dag_id,
            run_id=run.run_id,
            task_id=getattr(context.task, "task_id", None),
            cluster_id=cluster_id,
            detail={"why": why.value, **detail},
        )
    )
