"""A recorded cluster that is watched, snapshot by snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from rehome import installation
from rehome.domain.run.askers import RunDoor
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.store import Ledger
from rehome.operators import assets
from rehome.operators.send_alerts import SendAlertsOperator
from rehome.operators.watch import WatchClustersOperator
from rehome.warehouse import taken_at_of
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.run.taken import taken
from tests.quality.snapshots import Rows

DEAD = 3
WATCH_RUN = SimpleNamespace(
    dag_id="watch_clusters",
    run_id="asset_triggered__1",
    run_type="asset_triggered",
    triggering_user_name=None,
)
CONNECTION = "kafka_default"
Rules = Callable[..., None]


def without_broker(rows: Rows) -> None:
    for row in rows.brokers:
        if row["broker"] == DEAD:
            row["live"] = False


def known(uri: str, connection: str = CONNECTION) -> str:
    """A snapshot that a task has taken."""
    with installation.open_ledger() as ledger:
        return taken(ledger, uri, connection)


def event(uri: str, cluster_id: str = CLUSTER, connection: str = CONNECTION) -> SimpleNamespace:
    """Of a snapshot that a task has taken."""
    known(uri, connection)
    taken_at = taken_at_of(uri).isoformat()
    about = {"cluster_id": cluster_id, "connection": connection, "uri": uri, "taken_at": taken_at}
    return SimpleNamespace(extra=about)


def watch(*uris: str, connection: str = CONNECTION) -> list[dict[str, Any]]:
    """One run of the task on these snapshots."""
    events = [event(uri, connection=connection) for uri in uris]
    return execute({"triggering_asset_events": {assets.SNAPSHOTS_ASSET: events}})


def execute(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The task, and the one that sends alerts.

    :returns: the runs that are to be started, as the ledger knows them.
    """
    task = WatchClustersOperator(task_id="watch")
    run_ids = task.execute({"dag_run": WATCH_RUN, **context, "task": task})
    SendAlertsOperator(task_id="send_alerts").execute({})
    with installation.open_ledger() as ledger:
        return [requested(ledger, run_id) for run_id in run_ids]


def requested(ledger: Ledger, run_id: str) -> dict[str, Any]:
    """The run that watching has asked for, as ``TriggerDagRunOperator`` takes it."""
    found = ledger.requested_through(RunDoor.WATCH, run_id)
    assert found is not None
    return {"trigger_run_id": run_id, "trigger_dag_id": found.dag_id, "conf": dict(found.conf)}


def dead_for_half_an_hour(recorded: Cluster) -> list[str]:
    """Snapshots of which the third opens the finding."""
    return [recorded.snapshot(minutes, without_broker) for minutes in (0, 10, 20)]


def open_kinds(ledger: Ledger) -> list[FindingKind]:
    return [each.kind for each in ledger.open_findings(CLUSTER)]
