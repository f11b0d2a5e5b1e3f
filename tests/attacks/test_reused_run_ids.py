"""Ids of runs that were deleted: users may trigger runs of the same id and time again."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from local.process.waiting import wait_until
from tests.attacks.conftest import Stack
from tests.attacks.in_process import GUARDED

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_a_deleted_runs_id_brings_its_approval_back_to_nobody(stack: Stack) -> None:
    """A plan's id follows from the run's id and time, which are the caller's choice."""
    ann, bob, ops = stack["ann"], stack["bob"], stack["ops"]
    topic = stack.topic([1, 2])
    name = {
        "dag_run_id": f"mine-{topic}",
        "run_after": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    conf = {"partitions": {topic: 2}, "kafka_config_id": GUARDED}
    first = ann.triggers("add_partitions", conf, **name)
    ann.waits_for_question(first)
    ops.insists(first, lambda: len(stack.witness.replicas(topic)) == 2)
    assert ann.wait_for_end(first) == "success"
    stack.topics.admin.delete_topics([topic])[topic].result(60)
    wait_until(lambda: not stack.witness.replicas(topic), "the topic to be gone")
    stack.topics.create_as(topic, [[1, 2]])
    bob.does("DELETE", first.path)
    again = bob.triggers("add_partitions", conf, **name)
    bob.insists(again)
    assert len(stack.witness.replicas(topic)) == 1, "bob has asked, and nobody has approved"
