"""What tasks leave for one another, replaced by users: nowhere is asked, and nothing changes.

By Airflow's public API, on the DAG whose tasks need no Spark. The walk (``test_xcom_walk``), which
`make test` has, tries such values in this process, on every DAG.
"""

from __future__ import annotations

import pytest

from tests.attacks.conftest import Stack
from tests.attacks.in_process import GUARDED
from tests.attacks.listener import Trap
from tests.attacks.people import RETURNED

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

ADDS = "add_partitions"


def test_a_task_fetches_nothing_that_an_xcom_names(stack: Stack, trap: Trap) -> None:
    """(5) By http, through a cache of it, or by ftp."""
    bob = stack["bob"]
    topic = stack.topic([1, 2])
    run = stack["ann"].triggers(
        ADDS, {"partitions": {topic: 2}, "kafka_config_id": GUARDED, "dry_run": True}
    )
    assert bob.wait_for_end(run) == "success"
    for value in trap.hostile:
        bob.forges(run, "snapshot", value)
        assert bob.has_done_again(run, "place") == "success", "by the snapshot that the run took"
    assert trap.heard == []


def test_every_xcom_of_a_run_is_rubbish_and_its_approval_forged(stack: Stack, trap: Trap) -> None:
    """All tasks of a run that waits for its approval, at once, by each kind of value."""
    ann, bob = stack["ann"], stack["bob"]
    topic, other = stack.topic([1, 2]), stack.topic([2, 3])
    theirs = ann.triggers(ADDS, {"partitions": {other: 4}, "kafka_config_id": GUARDED})
    run = ann.triggers(ADDS, {"partitions": {topic: 2}, "kafka_config_id": GUARDED})
    for each in (theirs, run):
        ann.waits_for_question(each)
    before = stack.witness.seen()
    tasks = bob.states(run)
    kinds = {
        "rubbish": "rubbish",
        "another run's": None,
        "an address": trap.hostile[0],
        "a wrong type": {"a": [1, None, {"b": "c"}]},
        "large": "x" * 500_000,
        "deep": _deep(50),
    }
    done = 0
    for kind, value in kinds.items():
        for task in tasks:
            for key in {RETURNED, *bob.xcoms(run, task), *bob.xcoms(theirs, task)}:
                if kind == "another run's":
                    there = key in bob.xcoms(theirs, task)
                    value = bob.xcom(theirs, task, key) if there else "nothing"
                bob.forges(run, task, value, key)
                done += 1
        if bob.states(run)["approve"] != "success":
            bob.marks(run, "approve", "success")
        bob.has_done_again(run, "create")
        assert stack.witness.seen() == before, kind
    assert trap.heard == []
    print(f"{done} XComs of {len(tasks)} tasks were replaced, in {len(kinds)} ways")


def _deep(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value
