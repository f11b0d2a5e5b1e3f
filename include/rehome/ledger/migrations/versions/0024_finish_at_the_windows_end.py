"""What ``on_window_end`` called drain, the name of an action, is called finish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_NAMES = ("on_window_end", "targets.on_window_end")  # the second: in the settings of an approval


def upgrade() -> None:
    """Rename it in what plans were asked for, and in what was approved."""
    _rename("drain", "finish")


def downgrade() -> None:
    """The other way round."""
    _rename("finish", "drain")


def _rename(before: str, after: str) -> None:
    connection = op.get_bind()
    holding = ("request", "approval")
    plans = sa.table("plans", sa.column("plan_id"), *(sa.column(n, sa.JSON) for n in holding))
    for plan_id, *contents in connection.execute(sa.select(plans)).all():
        kept = {n: c for n, c in zip(holding, contents, strict=True) if c is not None}
        renamed = {name: _renamed(content, before, after) for name, content in kept.items()}
        if renamed != kept:
            connection.execute(plans.update().where(plans.c.plan_id == plan_id).values(renamed))


def _renamed(content: Mapping[str, Any], before: str, after: str) -> dict[str, Any]:
    found = {n: after if n in _NAMES and v == before else v for n, v in content.items()}
    if isinstance(settings := found.get("settings"), dict):
        found["settings"] = _renamed(settings, before, after)
    return found
