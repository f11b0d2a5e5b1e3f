"""The DAGs as they are: nothing of their shape is written in the stand-in for Airflow."""

from __future__ import annotations

from importlib import import_module

from airflow.sdk import TriggerRule

from world.airflow.shape import (
    CONTROL,
    QUIET,
    REASSIGN,
    SWEEP,
    cleared_with,
    dag_from_file,
    graph_of,
)


def test_tasks_come_after_those_before_them() -> None:
    graph = graph_of(REASSIGN)
    at = {name: number for number, name in enumerate(graph.order)}
    assert all(at[before] < at[name] for name in graph.order for before in graph.before(name))
    assert graph.rule("verify") is TriggerRule.ALL_SUCCESS
    assert graph.rule("clear_throttle") is TriggerRule.ALL_DONE_SETUP_SUCCESS
    assert graph.setups("clear_throttle") == ["snapshot", "throttle"]


def test_setups_are_cleared_with_what_needs_them() -> None:
    cleared = cleared_with(REASSIGN, "progress")
    assert {"snapshot", "throttle", "progress", "clear_throttle", "verdict"} <= set(cleared)
    assert not {"plan", "dry_run", "approve", "execute"} & set(cleared)


def test_each_process_has_an_operator_of_its_own_with_its_templates_filled_in() -> None:
    params = {"kafka_config_id": "kafka_default"}
    start = graph_of(CONTROL).operator("start", "run-7", params)
    assert start.trigger_run_id == "control__run-7"
    execute = graph_of(REASSIGN).operator("execute", "run-7", params)
    assert (execute.kafka_config_id, execute.log) == ("kafka_default", QUIET)
    assert graph_of(REASSIGN).task("execute") is not execute


def test_what_a_test_does_to_an_imported_dag_stays_out_of_the_world() -> None:
    imported = import_module(f"dags.{SWEEP}").dag
    mine = dag_from_file(SWEEP)
    mine.params["kafka_config_id"] = "left_by_a_test"
    object.__setattr__(mine.get_task("sweep"), "execute", lambda context: None)
    graph_of.cache_clear()
    graph = graph_of(SWEEP)
    assert imported.params["kafka_config_id"] == graph.params["kafka_config_id"] == "kafka_default"
    for dag in (imported, graph.dag):
        assert "execute" not in vars(dag.get_task("sweep"))
