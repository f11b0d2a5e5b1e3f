"""What is wrong with a run's parameters, by the DAG that is triggered."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from rehome.fleet.clusters import SEPARATOR, base_of
from rehome.trigger_check import OURS, is_ours, problems_of
from tests.plugins.processor_time import in_megabytes_of_json


def _set(number: int) -> dict[str, Any]:
    return {"name": f"s{number}", "brokers": [number], "topics": ["t"]}


def _reassignment(replicas: list[int]) -> dict[str, Any]:
    return {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": replicas}]}


@pytest.mark.parametrize(
    ("dag_id", "conf", "problem"),
    [
        ("reassign_partitions", {"preset": "drain_gently"}, "Action drain needs brokers."),
        ("rebalance_in_window", {"actoin": "drain"}, "Unknown parameter 'actoin'"),
        ("add_partitions", {"partitions": {}}, "at least one topic"),
        ("control_reassignment", {"plan_id": "p", "action": "change_throttle"}, "needs throttle"),
    ],
)
def test_each_dag_has_its_own_check(dag_id: str, conf: dict[str, Any], problem: str) -> None:
    assert problem in " ".join(problems_of(dag_id, conf))


@pytest.mark.slow
def test_every_dag_of_the_project_is_ours_and_no_other_is() -> None:
    from handbook.sources import dags

    assert {base_of(dag.dag_id) for dag in dags()} == OURS
    for dag_id in OURS:
        assert is_ours(f"{dag_id}{SEPARATOR}berlin")
    assert not any(map(is_ours, ("", "theirs", "reassign_partitions_too", "~")))


MANY = 60_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "conf",
    [
        {f"unknown_{n}": 1 for n in range(MANY)},
        {"action": "drain", "brokers": list(range(MANY))},
        {"action": "drain", "brokers": ",".join(map(str, range(MANY)))},
        {"action": "rebalance", "throttle": "1" * 400_000 + " " * 400_000 + "x"},
        {"action": "rebalance", "topics": ["t*?"] * MANY},
        {"action": "rebalance", "broker_sets": [_set(n) for n in range(MANY // 4)]},
        {"action": "reassign", "reassignment": "[" * 900_000},
        {"action": "reassign", "reassignment": _reassignment(list(range(MANY)))},
    ],
    ids=lambda conf: max(conf, key=lambda name: len(str(conf[name])))[:12],
)
def test_a_megabyte_of_anything_is_checked_in_time_that_grows_with_its_size(
    conf: dict[str, Any],
) -> None:
    problems_of("reassign_partitions", {})  # what is imported is loaded
    problems: list[str] = []

    def check() -> None:
        with suppress(RecursionError):  # the guard says that it could not be checked
            problems.extend(problems_of("reassign_partitions", conf))

    assert in_megabytes_of_json(check) < 100
    assert sum(map(len, problems)) < 10_000
