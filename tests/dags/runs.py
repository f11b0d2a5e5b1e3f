"""DAG runs in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.dags.quick_airflow import parsed_quickly, quick_airflow
from world.airflow.shape import dag_from_file

if TYPE_CHECKING:
    from airflow.sdk import DAG


@dataclass(frozen=True)
class Run:
    """How a run ended, and what its note says."""

    run_id: str
    state: str
    tasks: Mapping[str, str | None]
    log: str
    note: str = ""


def fresh_dag(dag_id: str) -> DAG:
    """A DAG of the project as its file makes it, of the test's own."""
    with parsed_quickly():
        return dag_from_file(dag_id)


def register(dag: DAG) -> DAG:
    """Stores a DAG that is in no file in Airflow's database."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(os.devnull)
    bag.bag_dag(dag)
    sync_bag_to_db(bag, "dags-folder", None)
    return dag


def run_dag(
    dag: DAG,
    conf: Mapping[str, Any],
    output: pytest.CaptureFixture[str],
    callbacks: pytest.LogCaptureFixture,
) -> Run:
    """Run a DAG to its end, each task once.

    Tasks log to the process's output, the DAG's callbacks by Python's own logging.
    """
    for task in dag.tasks:
        task.retries = 0
        task.operator_extra_links = ()  # for pages: a request for each task
    output.readouterr()
    with quick_airflow():
        run = dag.test(run_conf=dict(conf))
    states = {ti.task_id: ti.state and str(ti.state) for ti in run.get_task_instances()}
    said = output.readouterr()
    log = said.out + said.err + callbacks.text
    return Run(run.run_id, str(run.state), states, log, _note(dag.dag_id, run.run_id))


def started_by_a_task(patched: pytest.MonkeyPatch, run_id: str) -> None:
    """Have `dag.test()` make runs of this id, as if a task had started them."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.types import DagRunType

    patched.setattr(DagRun, "generate_run_id", staticmethod(lambda **_: run_id))
    _made_with(patched, run_type=DagRunType.OPERATOR_TRIGGERED)


def started_by_the_schedule(patched: pytest.MonkeyPatch) -> None:
    """Have `dag.test()` make runs as the scheduler does: nobody has triggered them."""
    from airflow.utils.types import DagRunType

    _made_with(patched, run_type=DagRunType.SCHEDULED, triggering_user_name=None)


def _made_with(patched: pytest.MonkeyPatch, **values: Any) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.serialization.definitions.dag import SerializedDAG

    create = SerializedDAG.create_dagrun

    def created(dag: SerializedDAG, **given: Any) -> DagRun:
        return create(dag, **{**given, **values})

    patched.setattr(SerializedDAG, "create_dagrun", created)


def _note(dag_id: str, run_id: str) -> str:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalar(
            select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        )
        return (found.note if found else None) or ""


def plan_without_gates(patched: pytest.MonkeyPatch) -> None:
    """Plan in this process, without Spark: its start takes longer than the rest of a run. Nor are
    there Data Docs then: Great Expectations would start a Spark of its own for what it has not
    judged, and take a sixth of a run.
    """
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk.exceptions import AirflowException

    from rehome import spark_job
    from rehome.quality.engine.results import GateResult
    from spark_jobs import gated_plan, plan

    def submit(hook: SparkSubmitHook, application: str = "", **options: Any) -> None:
        code = plan.main([str(item) for item in hook._application_args])
        if code:
            raise AirflowException(f"plan.py ended with {code}")

    patched.setattr(spark_job, "build_job_zip", lambda target: target)
    patched.setattr(plan, "spark_session", lambda *_, **__: nullcontext())
    patched.setattr(plan, "fit_to", lambda *_: None)
    patched.setattr(gated_plan, "check_snapshot", lambda *a, **k: GateResult("snapshot", ()))
    patched.setattr(gated_plan, "check_history", lambda *a, **k: GateResult("history", ()))
    patched.setattr(gated_plan, "check_evidence", lambda *a, **k: GateResult("plan", ()))
    patched.setattr(gated_plan.Proof, "publish", lambda _: None)
    patched.setattr(SparkSubmitHook, "submit", submit)


def plan_fleet_without_gates(patched: pytest.MonkeyPatch) -> list[list[str]]:
    """The same of a fleet; returns the arguments of each job that was submitted.

    Of the job, all but Spark and the gates is what runs in production.
    """
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk.exceptions import AirflowException

    from rehome import spark_job
    from rehome.quality.engine.results import GateResult
    from spark_jobs import fleet, gated_plan
    from spark_jobs.fleet_tasks import Answer

    submitted: list[list[str]] = []

    def submit(hook: SparkSubmitHook, application: str = "", **options: Any) -> None:
        submitted.append([str(item) for item in hook._application_args])
        code = fleet.main(submitted[-1])
        if code:
            raise AirflowException(f"fleet.py ended with {code}")

    def planned(_spark: Any, tasks: Any) -> list[Answer]:
        return [task.run() for task in tasks]

    def passed(gate: str) -> Any:
        return lambda _spark, some, *_, **__: dict.fromkeys(some, GateResult(gate, ()))

    patched.setattr(spark_job, "build_job_zip", lambda target: target)
    patched.setattr(fleet, "spark_session", lambda *_, **__: nullcontext())
    patched.setattr(fleet, "check_snapshots", passed("snapshot"))
    patched.setattr(fleet, "check_evidences", passed("plan"))
    patched.setattr(fleet, "run_all", planned)
    patched.setattr(gated_plan.Proof, "publish", lambda _: None)
    patched.setattr(SparkSubmitHook, "submit", submit)
    return submitted
