"""The fleet as the page lists it: from the clusters file, the ledger, the warehouse and Airflow."""

from __future__ import annotations

from rehome.clusters.clusters_file import ClustersFileError
from rehome.clusters.overlaps import overlap_notes
from rehome.clusters.refused_targets import refused_target_notes
from rehome.domain.clock import utc_now
from rehome.fleet import bound
from rehome.fleet.clusters import DEFAULT_CONNECTION, file, window_entry
from rehome.ledger.store import Ledger
from rehome.page.fleet import FleetLine, members
from rehome.ui import clusters, dag_runs


def lines(ledger: Ledger) -> tuple[list[FleetLine], str, list[str]]:
    """A line for each cluster; what is wrong with the clusters file, or with the settings that
    stand for it, "" = nothing; and what there is to know of it.
    """
    problem, named, notes = "", {}, []
    try:
        found = file()
        named = {name: entry.connection for name, entry in found.clusters.items()}
        notes = [*refused_target_notes(found), *overlap_notes(found, utc_now())]
        window_entry(DEFAULT_CONNECTION)
    except ClustersFileError as error:
        problem = str(error)
    views = {view.cluster_id: view for view in clusters.every(ledger)}
    known = members(named, ledger.connections(), views)
    windows = dag_runs.windows_ahead({member.connection for member in known})
    misled = bound.all_known_misled(ledger)
    found_lines = [
        FleetLine(
            member,
            clusters.account(
                *(member.cluster_id, ledger, views.get(member.cluster_id), misled),
                windows.get(member.connection),
            ),
        )
        for member in known
    ]
    return found_lines, problem, notes
