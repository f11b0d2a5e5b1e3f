"""Every DAG parses without what is heavy, and is wired so that its run's state is true."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.airflow_home import HOME, ROOT

# isort: split
from airflow.sdk.exceptions import ParamValidationError

from include.planning.request import parse_request
from rehome.params import reassignment_params

HEAVY = ("pyspark", "great_expectations", "pandas", "kafka", "matplotlib")


DAGS = [
    "reassign_partitions",
    "rebalance_in_window",
    "control_reassignment",
    "collect_snapshots",
    "sweep_throttles",
]


@pytest.mark.parametrize("name", DAGS)
def test_a_dag_parses_without_heavy_imports(name: str) -> None:
    code = f"import sys, dags.{name} as m; print(m.dag.dag_id, *set(sys.modules) & set({HEAVY!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}", "AIRFLOW_HOME": str(HOME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[-2] == name, done.stdout + done.stderr


def test_the_runs_state_follows_from_the_verdict() -> None:
    from dags.reassign_partitions import dag

    effective_leaves = {
        task.task_id
        for task in dag.tasks
        if (not task.is_teardown or task.on_failure_fail_dagrun)
        and not any(
            not dag.get_task(below).is_teardown or dag.get_task(below).on_failure_fail_dagrun
            for below in task.downstream_task_ids
        )
    }
    assert effective_leaves == {"restore_leaders", "verdict"}


def test_clearing_comes_before_report_and_verdict_whatever_happened() -> None:
    from dags.reassign_partitions import dag

    assert "clear_throttle" in dag.get_task("report").upstream_task_ids
    assert "report" in dag.get_task("verdict").upstream_task_ids
    assert {"snapshot", "throttle"} <= dag.get_task("clear_throttle").upstream_task_ids
    assert not any(dag.get_task(t).is_setup for t in dag.get_task("verdict").upstream_task_ids)


@pytest.mark.parametrize(
    ("name", "text", "number"), [("brokers", "3, 4", [3, 4]), ("throttle", "10000000", 10000000)]
)
def test_the_form_takes_as_text_what_the_api_takes_as_numbers(
    name: str, text: str, number: object
) -> None:
    """Without a type, and with text for a default, Airflow's form has a line of text for them."""
    params = reassignment_params()
    assert isinstance(params[name].value, str)
    assert "type" not in params[name].schema
    action = {"action": "drain", "brokers": [3, 4]}
    typed, sent = (
        parse_request(action | {name: params[name].resolve(value)}) for value in (text, number)
    )
    assert typed == sent
    with pytest.raises(ParamValidationError):
        params[name].resolve("a lot")
