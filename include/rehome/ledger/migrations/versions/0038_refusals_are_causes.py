"""What has refused a run that watching started is a cause as of any other run."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_KINDS = {
    "invalid_request": ("planner", "plan"),
    "gate_refused": ("gate", "plan"),
    "expectation_crashed": ("gate_crashed", "plan"),
    "broker_away": ("not_healed", "snapshot"),
}
_DRY_RUN = ("dry_run", "dry_run")  # of a new plan, or of what was left of a paused one


def upgrade() -> None:
    """Give each refused run a cause, unless its tasks have recorded one; drop the column."""
    connection = op.get_bind()
    refused = connection.execute(
        sa.text(
            "SELECT dag_id, run_id, refusal, plan_id, COALESCE(ended_at, started_at) AS at "
            "FROM watch_starts s WHERE refusal IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "
            "run_causes c WHERE c.dag_id = s.dag_id AND c.run_id = s.run_id)"
        )
    )
    insert = sa.text(
        "INSERT INTO run_causes (dag_id, run_id, task_id, attempt, cleared, kind, text, "
        "state_left, remedy, at, plan_id) VALUES (:dag_id, :run_id, :task_id, 1, 0, :kind, :text, "
        "'', '', :at, :plan_id)"
    )
    for row in refused.mappings().all():
        content = row["refusal"]
        refusal = json.loads(content) if isinstance(content, str) else content
        kind, task_id = _KINDS.get(refusal["by"], _DRY_RUN)
        text = "".join(f"{reason}. " for reason in refusal["reasons"]).rstrip()
        of_run = {name: row[name] for name in ("dag_id", "run_id", "plan_id", "at")}
        connection.execute(insert, {**of_run, "task_id": task_id, "kind": kind, "text": text})
    op.drop_column("watch_starts", "refusal")


def downgrade() -> None:
    """Add the column; a refused plan is a failure like any other."""
    op.add_column("watch_starts", sa.Column("refusal", sa.JSON(none_as_null=True)))
