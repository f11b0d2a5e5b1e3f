"""What the clusters file says of a cluster, by the connection that leads to it: Airflow's side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rehome.clusters.clusters_file import (
    ClusterEntry,
    ClustersFile,
    ClustersFileError,
    clusters_of,
    connections_named,
)
from rehome.clusters.window_settings import entry_of_settings
from rehome.domain.request.presets import Filled, fill_in
from rehome.domain.request.request import upgraded_params
from rehome.domain.request.targets import only_exported, with_targets
from rehome.execution.access.open_windows import CronWindows
from rehome.params import FORM_DEFAULTS
from rehome.settings import Settings
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable

DEFAULT_CONNECTION = "kafka_default"
WINDOW_DAG = "rebalance_in_window"
SEPARATOR = "__"
"""Between the id of a DAG and the name of the cluster that it is for."""


@dataclass(frozen=True, slots=True)
class ScheduledCluster:
    """A cluster that DAGs are made for.

    :param name: in the file; "" = the cluster of the DAGs without a name in their ids.
    :param scheduled: whether its snapshots and sweeps come by themselves.
    :param windows: when `rebalance_in_window` runs by itself; None = only when it is triggered.
    :param only_waiting: it is known that this DAG carries out nothing but plans that wait for it.
    """

    name: str
    connection: str
    scheduled: bool
    windows: MaintenanceWindowTimetable | None = None
    only_waiting: bool = False

    @classmethod
    def of(cls, name: str, entry: ClusterEntry) -> ScheduledCluster:
        """As its entry says."""
        windows = MaintenanceWindowTimetable(*entry.windows) if entry.windows else None
        alone = windows is None or entry.own_plan is False
        return cls(name, entry.connection, True, windows, only_waiting=alone)

    def dag_id(self, base: str) -> str:
        """The id of this cluster's DAG."""
        return f"{base}{SEPARATOR}{self.name}" if self.name else base


def file() -> ClustersFile:
    """The clusters file as it is now.

    :raises ClustersFileError: names every problem.
    """
    return clusters_of(Settings.load())


def through(connection: str | None) -> ClusterEntry | None:
    """What the file says of the cluster behind a connection; None = nothing.

    :raises ClustersFileError: names every problem.
    """
    return file().through(connection)


def default_cluster() -> ScheduledCluster:
    """The cluster of the DAGs that are always there: the one behind ``kafka_default``.

    Where a file leaves that one out, and where the file cannot be used, they run only when they are
    triggered; the sweep runs all the same, for throttles may be owed. ``dags/clusters_file.py``
    shows what is wrong with the file.
    """
    try:
        file()
    except ClustersFileError:
        return ScheduledCluster("", DEFAULT_CONNECTION, scheduled=False)
    try:
        entry = window_entry(DEFAULT_CONNECTION)
    except ClustersFileError:
        return ScheduledCluster("", DEFAULT_CONNECTION, scheduled=True)
    if entry is None:
        return ScheduledCluster("", DEFAULT_CONNECTION, scheduled=False, only_waiting=True)
    return ScheduledCluster.of("", entry)


def named_clusters() -> list[ScheduledCluster]:
    """The file's other clusters, which have DAGs of their own.

    :raises ClustersFileError: names every problem.
    """
    return [
        ScheduledCluster.of(name, entry)
        for name, entry in file().clusters.items()
        if entry.connection != DEFAULT_CONNECTION
    ]


def clusters_with_dags() -> list[ScheduledCluster]:
    """The clusters that have DAGs of their own. While the file cannot be used, those that it names
    keep theirs, without a schedule: runs that have begun need them to end well.
    """
    try:
        return named_clusters()
    except ClustersFileError:
        return [
            ScheduledCluster(name, connection, scheduled=False)
            for name, connection in connections_named(Settings.load()).items()
            if connection != DEFAULT_CONNECTION
        ]


def dags_for(base: str, connections: Iterable[str]) -> dict[str, str]:
    """Connection → id of the DAG that works through it by its schedule, among those made like
    ``base``; without those that none is known to work through.
    """
    own = {DEFAULT_CONNECTION: base}
    with suppress(ClustersFileError):  # the page says what is wrong with it
        own |= {one.connection: one.dag_id(base) for one in named_clusters()}
    return {connection: own[connection] for connection in connections if connection in own}


def window_dag(connection: str) -> str:
    """The DAG that carries out what is to run in the windows of the cluster behind a connection.
    Where no clusters file gives it one of its own, the one that any connection may be given to.
    """
    return dags_for(WINDOW_DAG, [connection]).get(connection, WINDOW_DAG)


def connections_of_file() -> list[str]:
    """The connections that the clusters file names, in its order; [] = it cannot be used."""
    try:
        return [entry.connection for entry in file().clusters.values()]
    except ClustersFileError:  # the page says what is wrong with it
        return []


def base_of(dag_id: str) -> str:
    """The DAG that one for a cluster is made like."""
    return dag_id.split(SEPARATOR)[0]


def connection_of_dag(dag_id: str) -> str:
    """The connection that a DAG works through where its run names none.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    own = (one.connection for one in named_clusters() if one.dag_id(base_of(dag_id)) == dag_id)
    return next(own, DEFAULT_CONNECTION)


def fill_params(params: Mapping[str, Any], now: datetime, chosen: Collection[str] = ()) -> Filled:
    """The parameters of a run, with what its preset fills in, and then its cluster's targets.

    :param chosen: parameters that no target replaces.
    :raises ClustersFileError: the clusters file cannot be used.
    """
    connection = str(params.get("kafka_config_id") or "")
    entry = through(connection)
    run_params = fill_in(
        upgraded_params(params), FORM_DEFAULTS, lambda: window_closes(connection, now)
    )
    if entry is not None:
        run_params = with_targets(run_params, entry.targets, FORM_DEFAULTS, chosen)
    return only_exported(run_params)


def window_closes(connection: str, now: datetime) -> datetime:
    """When the window closes that is open, or opens next, of the cluster behind a connection; aware
    UTC. A cluster without windows has the night until the same time tomorrow.

    :raises ClustersFileError: see :func:`window_entry`.
    """
    return windows_through(connection).closes_after(now) or now + timedelta(days=1)


def window_entry(connection: str) -> ClusterEntry | None:
    """The entry by which the cluster behind a connection has windows: the file's; without a file,
    the one that the settings make. None = the file has none for it.

    :raises ClustersFileError: the clusters file, or a setting of windows, cannot be used.
    """
    clusters_file, settings = file(), Settings.load()
    if clusters_file.clusters:
        return clusters_file.through(connection)
    return entry_of_settings(settings, connection or DEFAULT_CONNECTION)


def windows_through(connection: str) -> CronWindows:
    """The maintenance windows of the cluster behind a connection.

    :raises ClustersFileError: see :func:`window_entry`.
    """
    entry = window_entry(connection)
    return CronWindows(() if entry is None else entry.windows)


def own_plan(connection: str) -> bool | None:
    """Whether a window of the cluster behind a connection makes a plan of its own where none waits;
    None = that is not said.

    :raises ClustersFileError: see :func:`window_entry`.
    """
    entry = window_entry(connection)
    return None if entry is None else entry.own_plan


def is_windowless(connection: str) -> bool:
    """Whether the cluster behind a connection is known to have no windows."""
    with suppress(ClustersFileError):
        entry = window_entry(connection)
        return entry is not None and not entry.windows
    return False


def targets_through(connection: str) -> Mapping[str, Any]:
    """The targets of the cluster behind a connection: its defaults for the parameters of runs.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    entry = through(connection)
    return {} if entry is None else entry.targets


def own_settings(connection: str | None) -> Mapping[str, Any]:
    """The settings of a cluster's own.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    entry = through(connection)
    return {} if entry is None else entry.own_settings
