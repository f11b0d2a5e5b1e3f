"""Every DAG parses without heavy imports, and its run's state follows from its verdict task."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest

from tests.session.airflow_home import HOME, ROOT

# isort: split
from airflow.sdk.exceptions import ParamValidationError

from rehome.domain.actions import ACTION_FACTS, Action
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.params import (
    control_params,
    foreign_params,
    keep_params_once,
    partition_params,
    reassignment_params,
    window_params,
)
from rehome.trigger_check import POOL

HEAVY = (
    "pyspark",
    "great_expectations",
    "pandas",
    "kafka",
    "confluent_kafka",
    "numpy",
    "pyarrow",
)

NEEDED_FILE = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}

DAGS = [
    "reassign_partitions",
    "rebalance_in_window",
    "control_reassignment",
    "collect_snapshots",
    "sweep_throttles",
    "watch_clusters",
    "add_partitions",
    "plan_fleet",
    "foreign_reassignments",
    "remove_old_data",
]


@pytest.mark.slow
def test_dags_parse_without_heavy_imports() -> None:
    code = f"""
import sys
from importlib import import_module
print([import_module("dags." + name).dag.dag_id for name in {DAGS!r}])
print(sorted(set(sys.modules) & set({HEAVY!r})))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}", "AIRFLOW_HOME": str(HOME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-2:] == [str(DAGS), "[]"], done.stdout + done.stderr


@pytest.mark.parametrize("name", DAGS)
def test_the_params_of_a_dag_are_stored_once(name: str) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    stored = DagSerialization.to_dict(import_module(f"dags.{name}").dag)["dag"]
    assert [
        task["__var"]["task_id"] for task in stored["tasks"] if task["__var"].get("params")
    ] == []
    assert len(json.dumps(stored)) < 60_000


def test_a_task_is_given_the_params_of_its_dag_and_its_own() -> None:
    from airflow.sdk import DAG, BaseOperator
    from airflow.sdk.definitions.param import process_params

    with DAG("params", schedule=None, params={"of_the_dag": 1, "given": 1, "of_both": 1}) as dag:
        task = BaseOperator(task_id="task", params={"of_both": 2, "own": 2})
    keep_params_once(dag)
    assert task.params.dump() == {"of_both": 2, "own": 2}
    given = process_params(dag, task, {"given": 3}, suppress_exception=False)
    assert given == {"of_the_dag": 1, "given": 3, "of_both": 2, "own": 2}


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
    assert effective_leaves == {"follow_up.drained", "verdict"}


@pytest.mark.parametrize("group", ["", "follow_up."])
def test_clearing_comes_before_report_and_verdict_whatever_happened(group: str) -> None:
    from dags.reassign_partitions import dag

    assert f"{group}clear_throttle" in dag.get_task("report").upstream_task_ids
    assert f"{group}clear_throttle" in dag.get_task(f"{group}report").upstream_task_ids
    assert f"{group}report" in dag.get_task("verdict").upstream_task_ids
    cleared = dag.get_task(f"{group}clear_throttle")
    assert {f"{group}snapshot", f"{group}throttle"} <= cleared.upstream_task_ids
    assert not any(dag.get_task(t).is_setup for t in dag.get_task("verdict").upstream_task_ids)


@pytest.mark.parametrize("name", ["reassign_partitions", "rebalance_in_window"])
def test_teardowns_do_not_wait_in_the_pool_that_deferred_runs_hold(name: str) -> None:
    tasks = import_module(f"dags.{name}").dag.tasks
    cleaning = {task.task_id for task in tasks if task.is_teardown}
    first, second = {"clear_throttle", "report"}, {"follow_up.clear_throttle", "follow_up.report"}
    assert cleaning == {*first, *second, "verdict"}
    assert {task.task_id for task in tasks if task.pool != POOL} == cleaning


def test_the_sweep_of_what_is_owed_is_not_paused_after_installation() -> None:
    from dags.sweep_throttles import dag

    assert dag.is_paused_upon_creation is False


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


@pytest.mark.parametrize("dag_id", ["reassign_partitions", "rebalance_in_window"])
def test_a_former_word_is_accepted_wherever_airflow_checks_it_and_is_not_offered(
    dag_id: str,
) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = import_module(f"dags.{dag_id}").dag
    stored = DagSerialization.from_dict(DagSerialization.to_dict(dag)).params
    of_task = dag.params.get_param("on_window_end")
    assert of_task.value == "finish"
    assert of_task.schema["enum"] == ["finish", "cancel"], "what the form offers"
    for word in ("drain", "finish", "cancel"):
        assert of_task.resolve(word) == word
        assert stored.deep_merge({"on_window_end": word}).validate()["on_window_end"] == word
    with pytest.raises(ParamValidationError):
        of_task.resolve("stop")
    with pytest.raises(ParamValidationError):
        stored.deep_merge({"on_window_end": "stop"}).validate()


def test_the_form_has_every_parameter_of_a_request() -> None:
    no_field = {"throttle_bytes_per_s", "throttle_max_by_broker"}  # the second one is a policy's
    known = {item.name for item in fields(ReassignmentRequest)} - no_field
    assert reassignment_params().keys() == known | {"throttle", "kafka_config_id", "cluster_id"}
    once = {"preset", "window_end", "plan_id", "reassignment", "allow_replication_factor_change"}
    assert window_params().keys() == reassignment_params().keys() - once


@pytest.mark.parametrize(
    "params", [reassignment_params, partition_params, control_params, foreign_params]
)
def test_the_form_says_of_every_field_what_it_is_for(params: Callable[[], Any]) -> None:
    for name, param in params().items():
        schema = param.schema
        assert schema["title"], name
        assert schema["section"], name
        assert param.description.split(" For example: ")[0].endswith("."), name
        for value in schema.get("examples", ()):
            param.resolve(value)
        if "enum" in schema:
            shown = {"null" if value is None else value for value in schema["enum"]}
            assert schema["values_display"].keys() == shown, name
        elif schema.get("type") != "boolean":
            assert "For example: " in param.description, name


@pytest.mark.parametrize("params", [reassignment_params(), window_params()])
def test_limits_of_the_form_reach_the_request(params: dict[str, Any]) -> None:
    given = {
        "tolerance": 0.1,
        "tolerances": {"replicas": 0.2, "bytes_in": None},
        "move_overhead_bytes": 5,
        "exclude_topics": ["logs*"],
        "exclude_brokers": "2, 1",
        "destinations": "4, 3",
        "weights": {"3": 1.5},
        "budget_bytes": 1000,
        "budget_moves": 7,
        "ignore_racks": True,
        "seed": 4,
    }
    given["action"] = "rebalance"
    sent = {name: param.resolve(given.get(name, param.value)) for name, param in params.items()}
    request = parse_request(sent)
    assert (request.exclude_brokers, request.destinations) == ((1, 2), (3, 4))
    assert request.exclude_topics == ("logs*",)
    assert request.weights == {3: 1.5}
    plain = given.keys() - {"exclude_brokers", "destinations", "exclude_topics", "weights"}
    assert {name: getattr(request, name) for name in plain} == {n: given[n] for n in plain}


@pytest.mark.parametrize("action", list(Action), ids=str)
def test_a_form_whose_limits_were_not_edited_is_refused_by_no_action(action: Action) -> None:
    needed = {"brokers": [1], "replication_factor": 2, "plan_id": "p", "reassignment": NEEDED_FILE}
    needed |= {"replacements": {"1": 2}}
    name = ACTION_FACTS[action].needs
    given = {"action": action.value} | ({name: needed[name]} if name else {})
    params = reassignment_params()
    sent = {name: param.resolve(given.get(name, param.value)) for name, param in params.items()}
    assert parse_request(sent).action is action


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tolerance", 1),
        ("tolerances", {"disk": 0.1}),
        ("tolerances", {"leaders": -0.1}),
        ("weights", {"one": 2}),
        ("weights", {"1": 0}),
        ("budget_moves", 0),
        ("exclude_brokers", "all"),
    ],
)
def test_limits_that_make_no_sense_are_refused_by_the_form(name: str, value: object) -> None:
    with pytest.raises(ParamValidationError):
        reassignment_params()[name].resolve(value)
