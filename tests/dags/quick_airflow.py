"""What Airflow does again and again while a DAG runs in this process, done once or left out.

No run depends on it, and most of a run's time would go there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest import mock

import jsonschema

TASK_RUNNER = "airflow.sdk.execution_time.task_runner"


@contextmanager
def quick_airflow() -> Iterator[None]:
    """While `dag.test()` runs."""
    with (
        mock.patch("time.sleep", _sleep),
        mock.patch("jsonschema.validate", _validate),
        # Rendered fields, which only Airflow's own pages show: a request for each task.
        mock.patch(f"{TASK_RUNNER}._serialize_rendered_fields", return_value={}),
        _files_read_once(),
    ):
        yield


def parsed_quickly() -> AbstractContextManager[Any]:
    """While a DAG's file is read: each task gets a deep copy of all params of its DAG.

    Tasks do not need it: they are given the DAG's params, and then their own.
    """
    return mock.patch("airflow.sdk.bases.operator._get_parent_defaults", _defaults_of_the_dag)


def _defaults_of_the_dag(dag: Any, task_group: Any) -> tuple[dict[str, Any], Any]:
    from airflow.sdk.definitions.param import ParamsDict

    groups_own = task_group.default_args if task_group else {}
    return ({**dag.default_args, **groups_own} if dag else {}), ParamsDict()


_really_sleep = time.sleep


def _sleep(seconds: float) -> None:
    """`dag.test()` rests for a second between two checks of a run in which nothing can start."""
    caller = sys._getframe(1).f_globals["__name__"]
    _really_sleep(min(seconds, 0.02) if caller == "airflow.sdk.definitions.dag" else seconds)


_really_validate = jsonschema.validate
_valid: set[str] = set()


def _validate(instance: Any, schema: Any, **options: Any) -> None:
    """Airflow checks each param's value, and its schema, thousands of times in a run."""
    judged = repr((instance, schema))
    if judged not in _valid:
        _really_validate(instance, schema, **options)
        _valid.add(judged)


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
