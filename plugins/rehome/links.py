"""Where the page is, for task logs, approvals and the buttons of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import attrs
from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseOperatorLink

from rehome.ui.flow_pictures import flow_text

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import TaskInstanceKey
    from airflow.sdk import BaseOperator

URL_PREFIX = "/rehome"
"""Where the page is mounted."""
VIEW = "reassignments"
"""The page's name in the addresses of Airflow's UI."""


def airflow_url() -> str:
    """What addresses of this Airflow begin with; "" where its configuration does not say."""
    return str(conf.get("api", "base_url", fallback="") or "").rstrip("/")


def page_mount() -> str:
    """Where browsers find the page: behind the path prefix, if this Airflow has one."""
    return f"{urlsplit(airflow_url()).path}{URL_PREFIX}"


def page_of_plan(plan_id: str) -> str:
    """A plan's page within Airflow's UI, navigation around it."""
    return f"{airflow_url()}/plugin/{VIEW}{page_mount()}/plans/{quote(plan_id)}"


def report_of_plan(plan_id: str) -> str:
    """A plan's report as the page serves it."""
    return f"{airflow_url()}{URL_PREFIX}/files/{quote(plan_id)}/report.html"


def page_of_cluster(cluster_id: str) -> str:
    """A cluster's page within Airflow's UI."""
    return f"{airflow_url()}/plugin/{VIEW}{page_mount()}/clusters/{quote(cluster_id)}"


def flow_picture(dag_id: str) -> str:
    """Markdown that shows the picture of a DAG's steps, wherever Airflow is mounted."""
    return f"![{flow_text(dag_id)}]({page_mount()}/flows/{dag_id}.svg)"


@attrs.define()
class PlanPageLink(BaseOperatorLink):
    """A task's button that opens the page of its run's plan."""

    name = "Reassignment"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page finds the plan by the run."""
        run_id = quote(ti_key.run_id, safe="")
        return f"{airflow_url()}{URL_PREFIX}/runs/{quote(ti_key.dag_id)}/{run_id}"


@attrs.define()
class ReportLink(BaseOperatorLink):
    """A task's button that opens the report of its run's plan."""

    name = "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page finds the plan by the run."""
        run_id = quote(ti_key.run_id, safe="")
        return f"{airflow_url()}{URL_PREFIX}/reports/{quote(ti_key.dag_id)}/{run_id}"


@attrs.define()
class DataDocsLink(BaseOperatorLink):
    """A task's button that opens what Great Expectations found: also where it let no plan pass."""

    name = "Data Docs"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The page finds them by the run."""
        run_id = quote(ti_key.run_id, safe="")
        return f"{airflow_url()}{URL_PREFIX}/data-docs/{quote(ti_key.dag_id)}/{run_id}/index.html"
