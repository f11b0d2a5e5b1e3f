"""Airflow assets of what Rehome makes, so that other DAGs can be scheduled on them.

One asset for all clusters: which cluster, and what it is, its event's ``extra`` says. See
docs/monitoring.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.domain.run.states import MoveState
    from rehome.run.context import RunContext

SNAPSHOTS_ASSET = Asset("rehome_snapshots", group="rehome")
"""An event for each snapshot of a cluster."""
PLANS_ASSET = Asset("rehome_plans", group="rehome")
"""An event for each plan that was made, and each that a run went on with."""


def with_asset(asset: Asset, given: Iterable[Any] | None) -> list[Any]:
    """An operator's ``outlets`` or ``inlets``: what its caller gave, and Rehome's own."""
    return [*(given or ()), asset]


def tell_of_snapshot(context: RunContext, snapshot: Snapshot, uri: str, connection: str) -> None:
    """Say which snapshot the task has taken, in the event of :data:`SNAPSHOTS_ASSET`."""
    context.airflow["outlet_events"][SNAPSHOTS_ASSET].extra = {
        "cluster_id": snapshot.cluster_id,
        "connection": connection,
        "uri": uri,
        "taken_at": snapshot.taken_at.isoformat(),
        "brokers": len(snapshot.brokers),
        "topics": len(snapshot.topics),
        "replicas": len(snapshot.replicas),
        "hidden_topics": len(snapshot.hidden_topics),
    }


def tell_of_plan(context: RunContext, plan_id: str) -> None:
    """Say which plan the run has, in the event of :data:`PLANS_ASSET`.

    All of it is in the ledger: so it is known of a plan that was made earlier, too.
    """
    record, sums = context.ledger.plan(plan_id), context.ledger.move_sums(plan_id)
    states: dict[MoveState, int] = {state: each.moves for state, each in sums.items()}
    context.airflow["outlet_events"][PLANS_ASSET].extra = {
        "cluster_id": record.cluster_id,
        "connection": record.planned_through,
        "plan_id": plan_id,
        "plan_hash": record.plan_hash,
        "uri": record.plan_dir,
        "action": record.action,
        "state": record.state.value,
        "dry_run": bool(record.request.get("dry_run")),
        "moves": sum(states.values()),
        "bytes_to_copy": record.bytes_total,
        "made_at": record.created_at.isoformat(),
    }
