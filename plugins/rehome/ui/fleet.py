"""The fleet as the page lists it: from the clusters file, the ledger, the warehouse and Airflow."""

from __future__ import annotations

from collections.abc import Mapping

from include.clusters.clusters_file import ClustersFileError
from include.ledger.store import Ledger
from include.page.fleet import FleetLine, fleet_lines, members
from rehome.fleet.clusters import file
from rehome.ui import clusters, dag_runs


def lines(ledger: Ledger) -> tuple[list[FleetLine], str]:
    """A line for each cluster; and what is wrong with the clusters file, "" = nothing."""
    problem, named = "", {}
    try:
        named = {name: entry.connection for name, entry in file().clusters.items()}
    except ClustersFileError as error:
        problem = str(error)
    views = {view.cluster_id: view for view in clusters.every(ledger)}
    found = members(named, ledger.connections(), views)
    active = {plan.cluster_id: plan for plan in ledger.active_plans()}
    through = {member.connection for member in found}
    windows = dag_runs.windows_ahead(through)
    return fleet_lines(found, views, active, open_findings(ledger), windows), problem


def open_findings(ledger: Ledger) -> Mapping[str, int]:
    """How many findings are open on each cluster that is watched, by the cluster's id."""
    return ledger.count_open_findings()
