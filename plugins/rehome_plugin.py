"""Tells Airflow what of Rehome's must be registered: timetables, to read serialized DAGs back."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from rehome.timetables.maintenance_window import MaintenanceWindowTimetable


class RehomePlugin(AirflowPlugin):
    """Rehome's own timetables."""

    name = "rehome"
    timetables = [MaintenanceWindowTimetable]  # noqa: RUF012 (Airflow's own way to register)
