"""What is removed of old data, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rehome.old_data import Removed

PLANS_NAMED = 20
"""Plans that the log names; the others are counted."""


def removed_lines(removed: Removed, days: int, *, shown_only: bool) -> Iterator[str]:
    """What was removed, for the log.

    :param days: that plans are kept; ``shown_only``: it would be removed.
    """
    done = "would be removed" if shown_only else "removed"
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
        yield "There are more: the next run resumes them."
