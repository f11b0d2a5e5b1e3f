"""The hook on the model of Kafka: whose reassignments it cancels and replaces, what it reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rehome import installation
from rehome.domain.kafka import BrokerError, PartitionState, TopicPartition
from rehome.domain.run.observation import Observation
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.direct.own_reassignments import NotOwnReassignmentError
from rehome.hooks.cluster import KafkaClusterHook
from rehome.hooks.reassignment import KafkaReassignmentHook
from tests.ledger.audit_rows import audit_of
from tests.ledger.small_plans import make_plan, move
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.kafka.port import ModelPort

MINE, THEIRS, PLANS, IDLE = (TopicPartition("t", number) for number in range(4))
TARGET = (4, 2)
"""Broker 4 is dead: what leads there stays in flight."""
Hook = Callable[..., KafkaReassignmentHook]


@pytest.fixture
def port() -> ModelPort:
    model = KafkaModel(SetClock(), Random(1), 4, cluster_id="c1")
    model.actions.create_topic("t", [[1, 2]] * 4)
    model.advance_to(1)
    port = model.port()
    model.actions.kill(4)
    model.advance_to(60)
    port.alter_reassignments(dict.fromkeys((THEIRS, PLANS), TARGET))
    return port


@pytest.fixture
def hook(port: ModelPort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    """Makes a hook on the model, with this policy; a plan has one partition in flight."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setattr(KafkaClusterHook, "gateway", lambda *_: nullcontext(port))
    plan = make_plan("p1", move("t", PLANS.partition, (1, 2), TARGET))
    state = {PLANS: PartitionState(1, (1, 2), frozenset({1, 2}))}
    seen = Observation(datetime.now(UTC), state, {}, frozenset({1, 2, 3}))
    with installation.open_ledger() as ledger:
        ledger.create_plan(plan, {}, "file:///x", "run-1", "ann")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.claim("p1")
        ledger.admit("p1", plan.moves, seen, 1000)
        ledger.mark_sent("p1", [PLANS])

    def make(**policy: Any) -> KafkaReassignmentHook:
        kept = {"unthrottled": True} | policy
        extra = {"bootstrap.servers": "127.0.0.1:1", "rehome.policy": kept}
        connection = {"conn_type": "kafka", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_ONE", json.dumps(connection))
        return KafkaReassignmentHook("kafka_one")

    return make


def test_what_another_client_has_started_is_not_cancelled_without_leave(
    hook: Hook, port: ModelPort
) -> None:
    with pytest.raises(NotOwnReassignmentError) as refused:
        hook().alter_partition_reassignments({THEIRS: None, IDLE: None})
    (found,) = refused.value.reassignments
    assert (found.partition, found.plan_id, found.own_target) == (THEIRS, None, None)
    text = str(refused.value)
    assert "t-1 (adds broker 4, removes broker 1, leads to [4, 2])" in text
    assert "no plan of the ledger has started it, and Kafka does not say which client has" in text
    assert "This step has changed nothing." in text
    assert "own_targets={(topic, partition): replicas}" in text
    assert "foreign_reassignments" in text
    assert "allow_reassignments_of_others=True" in text
    assert {*port.list_reassignments()} == {THEIRS, PLANS}


def test_a_plans_reassignment_is_the_plans_even_where_the_caller_says_that_it_is_its_own(
    hook: Hook, port: ModelPort
) -> None:
    with pytest.raises(NotOwnReassignmentError, match="plan p1 has started it") as refused:
        hook().alter_partition_reassignments({PLANS: None}, own_targets={PLANS: TARGET})
    assert [each.plan_id for each in refused.value.reassignments] == ["p1"]
    assert "Cancel the plan" in str(refused.value)
    assert "own_targets=" not in str(refused.value)
    assert {*port.list_reassignments()} == {THEIRS, PLANS}


@pytest.mark.parametrize("target", [(3, 2), None], ids=["replaced", "cancelled"])
def test_what_the_caller_states_that_it_has_started_is_its_own(
    hook: Hook, port: ModelPort, target: tuple[int, ...] | None
) -> None:
    kafka = hook()
    assert kafka.alter_partition_reassignments({MINE: TARGET}) == {MINE: None}
    assert kafka.alter_partition_reassignments({MINE: TARGET}) == {MINE: None}, "sent again"
    with pytest.raises(NotOwnReassignmentError):
        kafka.alter_partition_reassignments({MINE: target})
    assert port.list_reassignments()[MINE].target == TARGET
    verdicts = kafka.alter_partition_reassignments({MINE: target}, own_targets={MINE: TARGET})
    assert verdicts == {MINE: None}
    left = port.list_reassignments().get(MINE)
    assert (left and left.target) == target


def test_what_another_client_has_set_in_its_place_since_is_not_the_callers(
    hook: Hook, port: ModelPort
) -> None:
    kafka = hook()
    kafka.alter_partition_reassignments({MINE: TARGET})
    port.alter_reassignments({MINE: [2, 4]})
    with pytest.raises(NotOwnReassignmentError, match=r"not to \[4, 2\], as is stated") as refused:
        kafka.alter_partition_reassignments({MINE: None}, own_targets={MINE: TARGET})
    assert [each.own_target for each in refused.value.reassignments] == [TARGET]
    assert port.list_reassignments()[MINE].target == (2, 4)


def test_with_leave_everything_is_cancelled_and_the_audit_says_so(
    hook: Hook, port: ModelPort
) -> None:
    verdicts = hook().alter_partition_reassignments(
        dict.fromkeys((THEIRS, PLANS)), allow_reassignments_of_others=True
    )
    assert verdicts == {THEIRS: None, PLANS: None}
    assert port.list_reassignments() == {}
    with installation.open_ledger() as ledger:
        row = audit_of(ledger)[-1]
    assert (row.detail["cancels"], row.detail["of_others"]) == (2, 2)


@pytest.mark.parametrize(
    "policy", [{"approval": True}, {"actions": ["reassign"]}], ids=["approval", "actions"]
)
def test_a_policy_holds_for_what_others_have_and_not_for_the_callers_own(
    hook: Hook, port: ModelPort, policy: Any
) -> None:
    hook().alter_partition_reassignments({MINE: TARGET})
    kafka = hook(**policy)
    with pytest.raises(PolicyError):
        kafka.alter_partition_reassignments({THEIRS: None}, allow_reassignments_of_others=True)
    assert THEIRS in port.list_reassignments()
    own = kafka.alter_partition_reassignments({MINE: None}, own_targets={MINE: TARGET})
    assert own == {MINE: None}


def test_where_the_ledger_is_away_the_callers_own_is_still_cancelled(
    hook: Hook, port: ModelPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = hook()
    kafka.alter_partition_reassignments({MINE: TARGET})
    monkeypatch.setenv("REHOME_LEDGER_URL", "sqlite:////proc/none/ledger.db")
    with pytest.raises(NotOwnReassignmentError, match="the ledger could not be read"):
        kafka.alter_partition_reassignments({THEIRS: None})
    with pytest.raises(Exception, match="ledger") as failed:
        kafka.alter_partition_reassignments({MINE: None}, own_targets={MINE: TARGET})
    assert not isinstance(failed.value, NotOwnReassignmentError), "its row could not be written"
    assert {*port.list_reassignments()} == {THEIRS, PLANS}


@pytest.mark.parametrize("target", [(3, 2), (1, 2, 3), None], ids=["moved", "grown", "cancelled"])
def test_a_call_reads_topics_and_reassignments_once(
    hook: Hook, port: ModelPort, monkeypatch: pytest.MonkeyPatch, target: tuple[int, ...] | None
) -> None:
    kafka, reads = hook(), Counter[str]()
    kafka.alter_partition_reassignments({MINE: TARGET})
    for name in ("describe_topics", "list_reassignments"):
        call = getattr(port, name)
        counting = partial(_counted, reads, name, call)
        monkeypatch.setattr(port, name, counting)
    kafka.alter_partition_reassignments({MINE: target}, own_targets={MINE: TARGET})
    topics = 0 if target is None else 1
    assert (reads["describe_topics"], reads["list_reassignments"]) == (topics, 1)


def _counted(reads: Counter[str], name: str, call: Callable[..., object], *given: object) -> object:
    reads[name] += 1
    return call(*given)


def test_where_nothing_is_in_flight_the_controller_says_so(hook: Hook) -> None:
    verdict = hook().alter_partition_reassignments({IDLE: None})[IDLE]
    assert isinstance(verdict, BrokerError)
    assert verdict.code == 85
