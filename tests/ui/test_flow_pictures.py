"""Pictures and texts of DAGs tell of the tasks that there are."""

from __future__ import annotations

from importlib import import_module
from xml.etree import ElementTree

import pytest

from rehome.links import flow_picture
from rehome.ui.flow_pictures import FLOWS, flow_svg


@pytest.mark.parametrize("dag_id", FLOWS)
def test_a_picture_shows_every_task_of_its_dag(dag_id: str) -> None:
    dag = import_module(f"dags.{dag_id}").dag
    shown = [task for step in FLOWS[dag_id] for task in step.tasks]
    assert set(shown) == {task.task_id.rpartition(".")[2] for task in dag.tasks}
    assert len(shown) == len(set(shown))
    assert flow_picture(dag_id) in dag.doc_md
    ElementTree.fromstring(flow_svg(dag_id))


@pytest.mark.parametrize("dag_id", FLOWS)
def test_every_dag_and_task_says_what_it_is(dag_id: str) -> None:
    dag = import_module(f"dags.{dag_id}").dag
    assert dag.dag_display_name != dag_id
    for task in dag.tasks:
        assert task.task_display_name != task.task_id
        assert task.doc_md.endswith(".")
