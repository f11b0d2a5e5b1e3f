"""Removes plans, and rows of the ledger, that are older than they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rehome.domain.clock import utc_now
from rehome.run.causes.errors import EndedError
from rehome.run.causes.operator import RecordedOperator
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.words.removal_words import removed_lines

if TYPE_CHECKING:
    from rehome.run.context import RunContext


class RemoveOldDataOperator(RecordedOperator):
    """Removes what is older than ``plan_retention_days``; with ``dry_run`` it says what it would
    remove. It opens no connection to a cluster.
    """

    template_fields: Sequence[str] = ()
    ui_color = "#e8eef5"

    def step(self, context: RunContext) -> dict[str, int]:
        """Remove, or say what would be; returns how many plans, folders and rows.

        :raises EndedError: some files cannot be removed: these stay, others are gone.
        """
        from rehome.old_data import remove_old, to_be_removed

        days, warehouse = context.settings.plan_retention_days, context.warehouse
        shown_only = bool(context.given.get("dry_run", False))
        work = to_be_removed if shown_only else remove_old
        removed = work(context.ledger, warehouse, utc_now(), days)
        for line in removed_lines(removed, days, shown_only=shown_only):
            self.log.info(line)
        if removed.problems:
            raise EndedError(TaskEnd(TaskReason.OLD_DATA_LEFT, names=tuple(removed.problems)))
        rows = sum(removed.rows.values())
        return {"plans": len(removed.plans), "folders": len(removed.folders), "rows": rows}
