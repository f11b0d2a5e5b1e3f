"""DAG runs in this process."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from airflow.sdk import DAG


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    run_id: str
    state: str
    tasks: Mapping[str, str | None]
    log: str


def fresh_dag(dag_id: str) -> DAG:
    """A DAG of the project as its file makes it. A run leaves its params in it: take a new one."""
    sys.modules.pop(f"dags.{dag_id}", None)
    return importlib.import_module(f"dags.{dag_id}").dag


def register(dag: DAG) -> DAG:
    """Tells Airflow of a DAG that is in none of its files."""
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
    output.readouterr()
    with mock.patch("time.sleep", _sleep), _schemas_checked_once(), _files_read_once():
        run = dag.test(run_conf=dict(conf))
    states = {ti.task_id: ti.state and str(ti.state) for ti in run.get_task_instances()}
    said = output.readouterr()
    return Run(run.run_id, str(run.state), states, said.out + said.err + callbacks.text)


_really_sleep = time.sleep


def _sleep(seconds: float) -> None:
    """`dag.test()` rests for a second between two looks at a run in which nothing can start."""
    caller = sys._getframe(1).f_globals["__name__"]
    _really_sleep(min(seconds, 0.02) if caller == "airflow.sdk.definitions.dag" else seconds)


@contextmanager
def _schemas_checked_once() -> Iterator[None]:
    """Airflow checks each param's schema hundreds of times in a run, which is most of its time."""
    check = Draft202012Validator.check_schema

    @cache
    def once(schema: str) -> None:
        check(json.loads(schema))

    checked = staticmethod(lambda schema, **_: once(json.dumps(schema)))
    with mock.patch.object(Draft202012Validator, "check_schema", checked):
        yield


_files_were_read = False


@contextmanager
def _files_read_once() -> Iterator[None]:
    """`dag.test()` reads all DAG files, and stores what they hold, before each run."""
    global _files_were_read
    module = "airflow.dag_processing.dagbag"
    with ExitStack() as stack:
        if _files_were_read:
            for name in ("BundleDagBag", "sync_bag_to_db"):
                stack.enter_context(mock.patch(f"{module}.{name}"))
        yield
    _files_were_read = True


def plan_without_gates(patched: pytest.MonkeyPatch) -> None:
    """Plan in this process, without Spark: its start takes longer than the rest of a run."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk.exceptions import AirflowException

    from include.quality.engine.results import GateResult
    from spark_jobs import gated_plan, plan

    def submit(hook: SparkSubmitHook, application: str = "", **options: Any) -> None:
        code = plan.main([str(item) for item in hook._application_args])
        if code:
            raise AirflowException(f"plan.py ended with {code}")

    patched.setattr(plan, "spark_session", lambda *_, **__: nullcontext())
    patched.setattr(gated_plan, "check_snapshot", lambda *a, **k: GateResult("snapshot", ()))
    patched.setattr(gated_plan, "check_history", lambda *a, **k: GateResult("history", ()))
    patched.setattr(gated_plan, "check_evidence", lambda *a, **k: GateResult("plan", ()))
    patched.setattr(SparkSubmitHook, "submit", submit)
