"""Approvals that no person has given, or of something else than the person has read.

On a real Airflow, by its public API, by users who have no other rights than to trigger runs. In
`make test` the walk through all tasks (``test_xcom_walk``) and the tests of what is asked
(``tests/plugins/operators/approval``) show in this process that no forged answer approves anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rehome.domain.request.partition_counts import AddedPartitions
from tests.attacks.conftest import RATE, Stack
from tests.attacks.in_process import GUARDED, LAX, moving
from tests.attacks.people import RETURNED, TRIED, Run

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

ADDS, MOVES, CONTROLS = "add_partitions", "reassign_partitions", "control_reassignment"
FORGED = 45_000_000


@dataclass(frozen=True)
class Adding:
    """A run of ann's that is to add a partition to a topic."""

    topic: str
    run: Run


@pytest.fixture(scope="module")
def adding(stack: Stack) -> Callable[[], Adding]:
    """Triggers one."""

    def begin() -> Adding:
        topic = stack.topic([1, 2])
        conf = {"partitions": {topic: 2}, "kafka_config_id": GUARDED}
        return Adding(topic, stack["ann"].triggers(ADDS, conf))

    return begin


@pytest.fixture(scope="module")
def waiting(adding: Callable[[], Adding]) -> Adding:
    """One that an attacker finds, when it asks for an approval."""
    return adding()


@pytest.fixture(scope="module")
def added(stack: Stack, waiting: Adding, adding: Callable[[], Adding]) -> Adding:
    """Another one, which another person has approved: it has added the partition."""
    honest = adding()
    stack["ann"].waits_for_question(honest.run)
    stack["ops"].insists(honest.run, lambda: len(stack.witness.replicas(honest.topic)) == 2)
    assert stack["ann"].wait_for_end(honest.run) == "success"
    assert len(stack.witness.replicas(honest.topic)) == 2
    return honest


def forge_the_approval(stack: Stack, run: Run) -> None:
    """As a *user*, write what a given approval leaves behind, and set the task to success."""
    bob = stack["bob"]
    placed = bob.xcom(run, "place").removeprefix("file://")
    placement = AddedPartitions.from_json(json.loads(Path(placed).read_text())).plan_hash
    for key, value in {
        **dict.fromkeys(("approver", "approved_by", "by"), "ops"),
        **dict.fromkeys((RETURNED, "plan_hash"), placement),
    }.items():
        bob.forges(run, "approve", value, key)
    bob.marks(run, "approve", "success")


def test_partitions_are_not_created_by_an_approval_that_was_written_by_hand(
    stack: Stack, waiting: Adding, added: Adding
) -> None:
    """(1) While the same run, approved by another person, has created them."""
    bob = stack["bob"]
    bob.waits_for_question(waiting.run)
    forge_the_approval(stack, waiting.run)
    bob.wait(waiting.run, "create", TRIED)
    assert len(stack.witness.replicas(waiting.topic)) == 1, "nobody was asked"
    assert len(stack.witness.replicas(added.topic)) == 2


def test_a_run_in_another_persons_name_is_not_theirs(stack: Stack) -> None:
    """(3) A failed request of ann's is given a forged result and cleared; its forger answers."""
    ann, bob = stack["ann"], stack["bob"]
    failed = ann.triggers(
        CONTROLS, {"plan_id": "none", "action": "run", "kafka_config_id": GUARDED}
    )
    topic, plan_id = stack.planned()
    assert ann.wait_for_end(failed) == "failed"
    forged = moving(topic, (3, 2), throttle=RATE, plan_id=plan_id, approval=False)
    bob.forges(failed, "request", forged)
    bob.marks(failed, "request", "success")
    bob.clears(failed, "start")
    bob.wait(failed, "start", TRIED)
    started = Run(MOVES, f"control__{failed.run_id}")
    moved = lambda: stack.witness.replicas(topic) != {0: (1, 2)}  # noqa: E731
    if bob.ask("GET", started.path).is_success:
        bob.insists(started, moved)
    assert not moved(), "bob alone"

    # The plan is as good as before: ann has it run, and another person approves.
    honest = ann.triggers(
        CONTROLS, {"plan_id": plan_id, "action": "run", "kafka_config_id": GUARDED}
    )
    assert ann.wait_for_end(honest) == "success", ann.log(honest, "request")
    run = Run(MOVES, f"control__{honest.run_id}")
    ann.waits_for_question(run)
    stack["ops"].insists(run, moved)
    assert ann.wait_for_end(run) == "success"
    assert stack.witness.replicas(topic) == {0: (3, 2)}


def test_what_a_person_has_read_is_what_runs(stack: Stack) -> None:
    """(2) Another throttle is asked for while the question is open, and the kept terms forged."""
    ann, bob, ops = stack["ann"], stack["bob"], stack["ops"]
    topic, plan_id = stack.planned()
    conf = {"plan_id": plan_id, "action": "run", "kafka_config_id": GUARDED}
    honest = ann.triggers(CONTROLS, conf)
    assert ann.wait_for_end(honest) == "success", ann.log(honest, "request")
    run = Run(MOVES, f"control__{honest.run_id}")
    shown = ann.waits_for_question(run)["body"]
    assert str(RATE) in shown
    faster = bob.triggers(CONTROLS, conf | {"action": "change_throttle", "throttle": FORGED})
    assert bob.wait_for_end(faster) in ("success", "failed")
    for key in bob.xcoms(run, "approve"):
        kept = bob.xcom(run, "approve", key)
        if isinstance(kept, dict) and "rate_bytes_per_s" in kept:
            bob.forges(run, "approve", kept | {"rate_bytes_per_s": FORGED}, key)
    ops.insists(run, times=1)
    again = ops.question(run)
    if again is None:  # it went on: then by what was read
        ann.wait_for_end(run)
        approved = stack.rates_set(plan_id)
        assert approved, "it has run"
        assert max(approved) <= 1.2 * RATE, f"read: {RATE}; ran at {approved}"
    else:
        assert str(FORGED) in again["body"]
        assert not stack.rates_set(plan_id)
        assert stack.witness.replicas(topic) == {0: (1, 2)}


def test_a_plan_under_four_eyes_is_so_through_every_connection(stack: Stack) -> None:
    """(10) Its asker has it run through another connection, which asks no second person."""
    ann = stack["ann"]
    topic, plan_id = stack.planned()
    conf = moving(topic, (3, 2), throttle=RATE, plan_id=plan_id, approval=False)
    run = ann.triggers(MOVES, conf | {"kafka_config_id": LAX})
    ann.insists(run, lambda: stack.witness.replicas(topic) != {0: (1, 2)})
    assert stack.witness.replicas(topic) == {0: (1, 2)}


def test_a_cordon_for_good_is_asked_about_though_nothing_moves(stack: Stack) -> None:
    """(4) The asker says that nobody is to be asked; neither do they approve it themselves."""
    ann, broker = stack["ann"], 4
    conf = {
        "action": "drain",
        "brokers": [broker],
        "topics": [stack.topic([1, 2])],
        "cordon": "keep",
        "approval": False,
        "kafka_config_id": GUARDED,
    }
    run = ann.triggers(MOVES, conf)
    ann.wait(run, "dry_run", TRIED)
    assert "cordon" in ann.waits_for_question(run)["body"].lower()
    ann.insists(run, lambda: bool(stack.witness.cordoned(broker)), times=2, timeout_s=90)
    assert stack.witness.cordoned(broker) == ""
