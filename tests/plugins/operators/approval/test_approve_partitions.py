"""New partitions that a person has rejected are not asked about again; no broker is asked."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

from rehome import installation
from rehome.domain.kafka import TopicPartition
from rehome.domain.request.partition_counts import AddedPartitions
from rehome.domain.run.approval.questions import AnswerKind
from rehome.ledger.store import Ledger
from rehome.operators.add_partitions import (
    NEW_PARTITIONS_FILE,
    ApprovePartitionsOperator,
    CreatePartitionsOperator,
)
from rehome.run import evidence
from rehome.run.asking import hitl
from rehome.run.context import RunContext
from rehome.run.evidence import REPORT_FILE
from tests.dags.approval.answers import Given
from tests.ledger.people import answers_of
from tests.plugins.run.asked import BEGUN, run_of, task_of
from tests.spark.fleets import snapshot


@pytest.fixture
def placed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Ann's run has placed a partition, and tried it out."""
    policy = {"approval": True, "own_approval": False}
    extra = {"bootstrap.servers": "127.0.0.1:1", "rehome.policy": policy}
    kafka = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", kafka)
    monkeypatch.setattr(
        hitl, "show_question", lambda asking, ti_id: (asking.body, list(asking.options))
    )
    monkeypatch.setattr(ApprovalOperator, "execute", lambda self, context: "waits")
    params = {"partitions": {"t": 2}, "kafka_config_id": "kafka_default"}
    context = task_of(run_of("r1", dag_id="add_partitions", conf=params), "approve", **params)
    plan_id = RunContext(context).plan_id
    new = {TopicPartition("t", 1): (1, 2)}
    plan = AddedPartitions(plan_id, "c1", BEGUN, {"t": 1}, new)
    directory = RunContext(context).directory
    evidence.keep(ledger, directory, plan_id, NEW_PARTITIONS_FILE, plan.to_json())
    evidence.record_tried(RunContext(context), directory, plan_id, {"ok": True, "findings": []})
    directory.write_text(REPORT_FILE, "a report")
    return attempt(context, 1)


def attempt(context: dict[str, Any], number: int) -> dict[str, Any]:
    return {**context, "ti": SimpleNamespace(try_number=number, id=f"ti-{number}")}


def test_what_one_person_has_rejected_no_other_approves(
    placed: dict[str, Any], ledger: Ledger
) -> None:
    """Who clears the task would have it asked again, in ann's name."""
    task = ApprovePartitionsOperator(task_id="approve")
    assert task.execute(placed) == "waits"
    plan_id, options = RunContext(placed).plan_id, list(task.options)
    rejects = Given("Reject", by="ops", user_id="7").event(options)
    task.execute_complete(RunContext(placed), rejects)
    assert answers_of(ledger, plan_id) == [AnswerKind.REJECTED]

    again = attempt(placed, 2)
    with pytest.raises(AirflowFailException, match="has rejected the new partitions"):
        ApprovePartitionsOperator(task_id="approve").execute(again)
    assert answers_of(ledger, plan_id) == [AnswerKind.REJECTED], "nobody is asked"
    with pytest.raises(AirflowFailException, match="has rejected the new partitions"):
        CreatePartitionsOperator(task_id="create", kafka_config_id="kafka_default").execute(again)


def test_a_snapshot_that_no_task_has_taken_says_nothing_of_caps(placed: dict[str, Any]) -> None:
    """Who may write to the warehouse would put one there in which every broker has room."""
    task = ApprovePartitionsOperator(task_id="approve")
    task.execute(placed)
    approves = Given(task.options[0], by="ops", user_id="7").event(list(task.options))
    task.execute_complete(RunContext(placed), approves)
    installation.warehouse().write_snapshot(snapshot("c1"))
    with pytest.raises(AirflowFailException, match="ledger has no snapshot of cluster c1"):
        CreatePartitionsOperator(task_id="create", kafka_config_id="kafka_default").execute(placed)
