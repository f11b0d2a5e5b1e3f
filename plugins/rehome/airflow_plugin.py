"""Registers with Airflow: timetables, to read serialized DAGs back, the page, the guard of its
DAGs in Airflow's API, the notes of runs, and that a new question to a person shows its own text.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from rehome.api.guard import ApiGuard
from rehome.links import URL_PREFIX, VIEW, DataDocsLink, PlanPageLink, ReportLink, page_mount
from rehome.run.asking.hitl import forget_earlier_questions
from rehome.run.run_note import NoteListener
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable
from rehome.ui.lazy_app import LazyPage

MOUNTED = page_mount()
"""Airflow's UI takes these addresses as they are: it adds no path prefix."""

forget_earlier_questions()


class RehomePlugin(AirflowPlugin):
    """Rehome's own timetables, and the page "Reassignments"."""

    name = "rehome"
    timetables = [MaintenanceWindowTimetable]  # noqa: RUF012 (Airflow's own way to register)
    fastapi_apps = [  # noqa: RUF012
        {"name": "rehome", "app": LazyPage(), "url_prefix": URL_PREFIX}
    ]
    fastapi_root_middlewares = [  # noqa: RUF012
        {"name": "rehome", "middleware": ApiGuard}
    ]
    listeners = [NoteListener()]  # noqa: RUF012
    operator_extra_links = [PlanPageLink(), DataDocsLink(), ReportLink()]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Reassignments",
            "href": f"{MOUNTED}/",
            "url_route": VIEW,
            "destination": "nav",
            "icon": f"{MOUNTED}/static/icon.svg",
            "icon_dark_mode": f"{MOUNTED}/static/icon-dark.svg",
        },
        {
            "name": "Reassignment",
            "href": f"{MOUNTED}/runs/{{DAG_ID}}/{{RUN_ID}}",
            "url_route": "reassignment",
            "destination": "dag_run",
        },
    ]
