"""Clusters of the clusters file that are due to be planned, and what is asked for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.clusters.due import DueFacts, NotDue, why_not_due
from rehome.domain.actions import Action
from rehome.domain.request.limits import with_limits
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.execution.policy_from_request import rate_for, small_bytes_for
from rehome.fleet import clusters, policies
from rehome.fleet.bound import known_misled

if TYPE_CHECKING:
    from rehome.clusters.binding import Misled
    from rehome.clusters.clusters_file import ClusterEntry
    from rehome.domain.request.fields.fleet_parameters import FleetParams
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot
    from rehome.settings import Settings

DAG_ID = "plan_fleet"


@dataclass(frozen=True, slots=True)
class Due:
    """A cluster that is to be planned now.

    :param name: in the clusters file.
    :param snapshot: the newest.
    """

    name: str
    connection: str
    cluster_id: str
    snapshot: TakenSnapshot


def find(ledger: Ledger, params: FleetParams, now: datetime) -> tuple[list[Due], dict[str, NotDue]]:
    """The clusters that are due, and why the others that were asked for are not.

    :raises ClustersFileError: the clusters file cannot be used.
    :raises InvalidRequestError: a cluster is not in it, or there is no file.
    """
    due: list[Due] = []
    waiting: dict[str, NotDue] = {}
    for name, entry in _entries(params).items():
        verdict = _state_of(ledger, name, entry, now, is_named=bool(params.clusters))
        if isinstance(verdict, Due):
            due.append(verdict)
        else:
            waiting[name] = verdict
    return due, waiting


def _entries(params: FleetParams) -> Mapping[str, ClusterEntry]:
    entries = clusters.file().clusters
    unknown = sorted(set(params.clusters) - set(entries))
    if not entries or unknown:
        missing = f"The clusters file has no cluster {', '.join(unknown)}."
        raise InvalidRequestError(
            [missing if unknown else "There is no cluster to plan: the clusters file names none."],
            next_step="Name the clusters file in the setting clusters_file, and clusters by "
            "the names in it.",
        )
    return {name: entries[name] for name in params.clusters or entries}


def _state_of(
    ledger: Ledger, name: str, entry: ClusterEntry, now: datetime, *, is_named: bool
) -> Due | NotDue:
    cluster_id = ledger.connections().get(entry.connection)
    if cluster_id is None:
        return why_not_due(DueFacts(entry.windows), now, is_named=is_named) or NotDue.NO_SNAPSHOT
    taken = ledger.newest_snapshot(cluster_id)
    age_s = installation.settings(entry.connection).max_snapshot_age_s
    plans = ledger.plans(cluster_id)
    state = DueFacts(
        entry.windows,
        active=ledger.active_plan(cluster_id) is not None,
        handed_over=bool(ledger.handed_over(cluster_id)),
        planned_at=[plan.created_at for plan in plans if plan.dag_id == DAG_ID],
        snapshot_taken_at=None if taken is None else taken.taken_at,
        max_snapshot_age=timedelta(seconds=age_s),
    )
    why = why_not_due(state, now, is_named=is_named)
    if why is not None or taken is None:
        return why or NotDue.NO_SNAPSHOT
    return Due(name, entry.connection, cluster_id, taken)


def misled_entries(ledger: Ledger, due: Sequence[Due]) -> dict[str, Misled]:
    """Entries that have no plan, by their names: their connection leads elsewhere than it is bound
    to, or several are for one cluster.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    mismatches = {one.name: known_misled(ledger, one.connection, one.cluster_id) for one in due}
    return {name: each for name, each in mismatches.items() if each is not None}


def request_for(ledger: Ledger, due: Due, now: datetime) -> ReassignmentRequest:
    """What a cluster is planned for: as its window would plan it, and as a dry run.

    :raises RehomeError: the cluster's policy or settings cannot be used.
    """
    params = {
        "kafka_config_id": due.connection,
        "action": Action.REBALANCE.value,
        "dry_run": True,
    }
    settings = installation.settings(due.connection)
    request = parse_request(clusters.fill_params(params, now).params, now=now)
    request = with_limits(request, settings.caps, settings.broker_sets)
    policy = policies.policy_of_cluster(ledger, due.cluster_id, due.connection)
    return policy.request_within(request, now)


def options_of(request: ReassignmentRequest, settings: Settings) -> dict[str, Any]:
    """A cluster's own options of the job, by its settings."""
    return {
        "rate_bytes_per_s": rate_for(request, settings),
        "throttle_efficiency": settings.throttle_efficiency,
        "reaction_s": settings.reaction_s,
        "max_partitions_in_flight": settings.max_partitions_in_flight,
        "small_bytes": small_bytes_for(request, settings),
        "min_free_disk_fraction": settings.min_free_disk_fraction,
        "max_snapshot_age_s": settings.max_snapshot_age_s,
        "history_days": settings.history_days,
        "min_history_hours": settings.min_history_hours,
        "forecast_days": settings.forecast_days,
    }
