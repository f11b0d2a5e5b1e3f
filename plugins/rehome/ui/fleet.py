"""The fleet as the page lists it: from the clusters file, the ledger, the warehouse and Airflow."""

from __future__ import annotations

from collections.abc import Mapping

from rehome.clusters.clusters_file import ClustersFileError
from rehome.clusters.overlaps import overlap_notes
from rehome.domain.clock import utc_now
from rehome.fleet.clusters import DEFAULT_CONNECTION, file, windowed
from rehome.ledger.store import Ledger
from rehome.page.fleet import FleetLine, fleet_lines, members
from rehome.ui import clusters, dag_runs


def lines(ledger: Ledger) -> tuple[list[FleetLine], str, list[str]]:
    """A line for each cluster; what is wrong with the clusters file, or with the settings that
    stand for it, "" = nothing; and what there is to know of it.
    """
    problem, named, notes = "", {}, []
    try:
        found = file()
        named = {name: entry.connection for name, entry in found.clusters.items()}
        notes = overlap_notes(found, utc_now())
        windowed(DEFAULT_CONNECTION)
    except ClustersFileError as error:
        problem = str(error)
    views = {view.cluster_id: view for view in clusters.every(ledger)}
    known = members(named, ledger.connections(), views)
    active = {plan.cluster_id: plan for plan in ledger.active_plans()}
    through = {member.connection for member in known}
    windows = dag_runs.windows_ahead(through)
    return fleet_lines(known, views, active, open_findings(ledger), windows), problem, notes


def open_findings(ledger: Ledger) -> Mapping[str, int]:
    """How many findings are open on each cluster that is watched, by the cluster's id."""
    return ledger.count_open_findings()
