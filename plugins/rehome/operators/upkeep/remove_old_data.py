"""Removes plans, and rows of the ledger, that are older than they are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rehome import installation
from rehome.domain.clock import utc_now
from rehome.errors import RehomeError
from rehome.run.causes.operator import RecordedOperator

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.old_data import Removed

PLANS_NAMED = 20
"""Plans that the log names; the others are counted."""


class RemoveOldDataOperator(RecordedOperator):
    """Removes what is older than ``plan_retention_days``; with ``dry_run`` it says what it would
    remove. It opens no connection to a cluster.
    """

    template_fields: Sequence[str] = ()
    ui_color = "#e8eef5"

    def step(self, context: Context) -> dict[str, int]:
        """Remove, or say what would be; returns how many plans, folders and rows.

        :raises RehomeError: some files cannot be removed: these stay, others are gone.
        """
        from rehome.old_data import remove_old, to_be_removed

        days, warehouse = installation.settings().plan_retention_days, installation.warehouse()
        shown_only = bool(context["params"].get("dry_run", False))
        with installation.open_ledger() as ledger:
            work = to_be_removed if shown_only else remove_old
            removed = work(ledger, warehouse, utc_now(), days)
        done = "would be removed" if shown_only else "removed"
        for line in _lines(removed, days, done):
            self.log.info(line)
        if removed.problems:
            raise RehomeError(
                " ".join(removed.problems),
                state_left="The ledger keeps what is named here; all other old data was removed.",
                next_step="See that Airflow's workers may write to the warehouse; the next run "
                "tries again.",
            )
        rows = sum(removed.rows.values())
        return {"plans": len(removed.plans), "folders": len(removed.folders), "rows": rows}


def _lines(removed: Removed, days: int, done: str) -> Iterator[str]:
    yield (
        f"Plans that ended more than {days} days ago, or were made before and never begun: "
        f"{len(removed.plans)} {done}."
    )
    for plan_id in removed.plans[:PLANS_NAMED]:
        yield f"  {plan_id}"
    if len(removed.plans) > PLANS_NAMED:
        yield f"  and {len(removed.plans) - PLANS_NAMED} more"
    if removed.folders:
        yield f"Folders of runs that made no plan: {len(removed.folders)} {done}."
    for table, count in removed.rows.items():
        yield f"Rows of {table}: {count} {done}."
    if removed.more:
        yield "There are more: the next run goes on with them."
