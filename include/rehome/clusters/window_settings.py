"""The windows of an installation without a clusters file: its settings make one entry."""

from __future__ import annotations

from functools import lru_cache

from rehome.clusters.clusters_file import ClusterEntry, ClustersFileError, maintenance_window
from rehome.setting_problems import env_name
from rehome.settings import Settings


class WindowSettingsError(ClustersFileError):
    """No window opens by the settings; says why."""

    def __init__(self, problem: str) -> None:
        super().__init__([f"The window of the settings {problem}."])
        self.what = self.problems[0]
        self.next_step = (
            f"Correct {env_name('window_cron')}, {env_name('window_duration_s')} and "
            f"{env_name('window_timezone')} in the environment of every Airflow component."
        )
        self.args = (self.what,)


def entry_of_settings(settings: Settings, connection: str) -> ClusterEntry:
    """What an entry of the clusters file would say of a cluster, by the settings of windows.

    :param connection: that the entry is for.
    :raises WindowSettingsError: no window opens by them.
    """
    hours = settings.window_duration_s / 3600
    at = (settings.window_cron, hours, settings.window_timezone)
    return _entry(connection, *at, settings.window_own_plan)


@lru_cache(maxsize=64)
def _entry(
    connection: str, cron: str, hours: float, timezone: str, own_plan: bool | None
) -> ClusterEntry:
    window = {"cron": cron, "hours": hours, "timezone": timezone}
    try:
        maintenance_window(window)
    except ValueError as error:
        raise WindowSettingsError(str(error)) from None
    return ClusterEntry.model_validate(
        {"connection": connection, "windows": [window], "own_plan": own_plan}
    )
