"""Words that have to be true in all hands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.alerts.alert_text import dag_paused, held_text, orphaned_text, owed_text, stalled_text
from rehome.domain.run.states import PlanState
from tests.reporting.reported_plans import moves, plan_of, record


@pytest.mark.parametrize(
    ("connection", "reported"),
    [
        ("kafka_default", "Its schedule includes this cluster."),
        (
            "kafka_berlin",
            "each cluster of the clusters file. For a cluster that is neither, trigger ",
        ),
        ("", "with kafka_config_id of the connection that leads there."),
    ],
)
def test_a_report_of_owed_throttles_says_whether_the_sweep_runs_by_itself(
    connection: str, reported: str
) -> None:
    assert reported in owed_text((), (), connection)[1]


@pytest.mark.parametrize("words", [orphaned_text, dag_paused])
def test_what_is_said_to_go_on_is_in_flight(words: Callable[..., tuple[str, str]]) -> None:
    running = record(plan_of(*moves()), PlanState.RUNNING)
    text, _ = words(running, 0)
    assert "By the ledger no move of the plan is in flight" in text
    assert "throttled" not in text
    text, _ = words(running, 2)
    assert "By the ledger 2 moves in flight go on, throttled" in text


def test_a_paused_dag_is_named_with_what_to_do() -> None:
    running = replace(record(plan_of(*moves()), PlanState.RUNNING), dag_id="reassign_partitions")
    text, next_step = dag_paused(running, 1)
    assert "its DAG reassign_partitions is paused in Airflow: no task of run" in text
    assert next_step.startswith(
        "Unpause the DAG reassign_partitions: the run then goes on by itself"
    )


def test_a_wait_for_what_cannot_end_names_the_command_that_ends_it() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    words: dict[str, Any] = {"only_waits": True, "gives_up_s": 600.0, "unthrottled": False}
    _, next_step = stalled_text(now, now, "another client's reassignment runs", hangs=True, **words)
    assert "kafka-reassign-partitions.sh --cancel --preserve-throttles" in next_step
    _, next_step = stalled_text(
        now, now, "another client's reassignment runs", hangs=False, **words
    )
    assert (
        next_step
        == "No step is needed: the plan goes on when the other client's reassignment has ended."
    )
    assert "--cancel" in held_text()[1]
