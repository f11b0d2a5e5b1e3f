"""What another client has started without a throttle is taken over on real brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.clock import utc_now
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.errors import PlanConflictError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.control.resume import check_continuable
from rehome.execution.foreign.adopt import adopt, adopted_plan, still_in_flight
from rehome.execution.foreign.cancel_foreign import SetMeanwhileError
from rehome.execution.foreign.in_flight import Chosen
from rehome.execution.foreign.named import NamedReassignments, name_reassignments
from rehome.execution.foreign.read_flights import describe_reassignments
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    split,
)
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.dags.clusters import state_of, throttles_of, to
from tests.execution.conftest import Configure
from tests.execution.driven import replicas_of, run
from tests.ledger.small_plans import move

MB = 1_000_000
Adopted = Callable[[str, int], tuple[Plan, NamedReassignments]]


@pytest.fixture
def adopted(gateway: ClusterGateway, ledger: Ledger) -> Iterator[Adopted]:
    """Takes over what is in flight of a topic; whatever is left of it is taken back."""
    plans: list[Plan] = []

    def take(topic: str, rate: int) -> tuple[Plan, NamedReassignments]:
        found = describe_reassignments(gateway, ledger, utc_now(), Chosen(topics=(topic,)))
        chosen = name_reassignments(found.reassignments, {})
        asked = NamedReassignments(found.cluster_id, ForeignAction.ADOPT, chosen)
        own = OwnCluster.itself(gateway)
        moves = still_in_flight(asked, ledger, own)
        plan = adopted_plan(f"adopt-{topic}", found.cluster_id, moves, rate, ledger.ledger_id)
        ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "ann")
        ledger.approve(plan.plan_id, plan.plan_hash, "ann")
        plans.append(plan)
        adopt(plan, asked, ledger, own, rate, "ann")
        return plan, asked

    yield take
    for plan in plans:
        abort(plan.plan_id, ledger, OwnCluster.itself(gateway), "the test is over")
        clear_throttle(plan.plan_id, ledger, OwnCluster.itself(gateway))


def started(gateway: ClusterGateway, topic: str, partitions: int) -> dict[TopicPartition, Any]:
    """Another client moves each partition from broker 1 to broker 3 or 4."""
    wanted = {TopicPartition(topic, n): [3 + n % 2, 2] for n in range(partitions)}
    gateway.alter_reassignments(wanted)
    return wanted


def is_throttled(gateway: ClusterGateway, topic: str) -> None:
    """Each replica that a copy may be read from, and each new one, is on a list."""
    flying = gateway.list_reassignments()
    assert flying, "all of it had ended before it could be throttled"
    configs = throttles_of(gateway, [topic])[f"topic {topic}"]
    for partition, entry in flying.items():
        number, followers = partition.partition, {*split(configs[FOLLOWER_REPLICAS])}
        assert followers & {"*", f"{number}:{entry.adding[0]}"}
        assert {f"{number}:1", f"{number}:2"} <= {*split(configs[LEADER_REPLICAS])}


def test_it_is_throttled_and_finished_as_a_plan(
    gateway: ClusterGateway, ledger: Ledger, topics: Any, adopted: Adopted, configure: Configure
) -> None:
    topic = topics.create([[1, 2]] * 4, config={FOLLOWER_REPLICAS: "*"})
    topics.fill(topic, 3000)
    before = state_of(gateway, [topic])["throttles"]
    slow = [ConfigResource.broker(broker) for broker in (3, 4)]
    for broker in slow:
        configure(broker, FOLLOWER_RATE, "1000")
    wanted = started(gateway, topic, 4)
    plan, asked = adopted(topic, 2 * MB)
    is_throttled(gateway, topic)
    record = ledger.plan(plan.plan_id)
    assert (record.state, record.rate_bytes_per_s is not None) == (PlanState.RUNNING, True)
    starts = {start.partition: start for start in ledger.reassignments(plan.plan_id)}
    assert starts.keys() == wanted.keys()
    assert all(start.sent_at for start in starts.values())
    assert {start.replicas_before for start in starts.values()} == {(2, 1)}

    own = OwnCluster.itself(gateway)
    adopt(plan, asked, ledger, own, 2 * MB, "ann")  # as a retry would
    assert len(ledger.reassignments(plan.plan_id)) == len(starts)
    assert not any(
        gateway.alter_configs(
            [ConfigChange(broker, FOLLOWER_RATE, ConfigOperation.DELETE) for broker in slow]
        ).values()
    )
    done = run(plan, ledger, own, Policy(2 * MB, metadata_grace_s=1))
    assert done.finished is PlanState.DONE
    assert {move.state for move in ledger.moves(plan.plan_id).values()} == {MoveState.DONE}
    clear_throttle(plan.plan_id, ledger, own)
    wait_until(lambda: state_of(gateway, [topic])["throttles"] == before, "throttles as before")
    moved = [replicas_of(gateway, topic, partition.partition) for partition in sorted(wanted)]
    assert moved == [tuple(wanted[partition]) for partition in sorted(wanted)]


def test_a_window_that_ends_takes_it_back_and_a_resumed_run_finishes_it(
    gateway: ClusterGateway, ledger: Ledger, topics: Any, adopted: Adopted, configure: Configure
) -> None:
    topic = topics.create([[1, 2]], config={FOLLOWER_REPLICAS: "*"})
    topics.fill(topic, 3000)
    configure(ConfigResource.broker(3), FOLLOWER_RATE, "1000")
    wanted = started(gateway, topic, 1)
    plan, _ = adopted(topic, 2 * MB)
    own, policy = OwnCluster.itself(gateway), Policy(2 * MB, metadata_grace_s=1)
    ledger.request_pause(plan.plan_id, "ann")
    assert advance(plan, ledger, own, policy).finished is None, "a pause lets it go on"
    ledger.withdraw_pause(plan.plan_id, "ann")
    closed = replace(policy, window_end=utc_now())
    assert run(plan, ledger, own, closed).finished is PlanState.PAUSED
    assert gateway.list_reassignments(wanted) == {}
    (start,) = ledger.reassignments(plan.plan_id)
    assert replicas_of(gateway, topic) == start.replicas_before, "those that it was adopted from"
    clear_throttle(plan.plan_id, ledger, own)

    check_continuable(plan, ledger, own, "run-2")
    ledger.claim(plan.plan_id)
    set_up_throttle(plan, ledger, own, 20 * MB)
    gateway.alter_configs(
        [ConfigChange(ConfigResource.broker(3), FOLLOWER_RATE, ConfigOperation.DELETE)]
    )
    assert run(plan, ledger, own, Policy(20 * MB, metadata_grace_s=1)).finished is PlanState.DONE
    clear_throttle(plan.plan_id, ledger, own)
    assert replicas_of(gateway, topic) == (3, 2)
    assert [each.outcome for each in ledger.reassignments(plan.plan_id)] == [
        MoveState.CANCELLED,
        MoveState.DONE,
    ]


@pytest.mark.long
def test_fifty_moves_of_kafkas_own_tool_are_throttled_within_one_poll_and_finished(
    gateway: ClusterGateway,
    ledger: Ledger,
    topics: Any,
    adopted: Adopted,
    tmp_path: Path,
) -> None:
    topic = topics.create([[1, 2]] * 50)
    topics.fill(topic, 1500, size_bytes=10_000)
    before = state_of(gateway, [topic])["throttles"]
    file = tmp_path / "reassignment.json"
    file.write_text(json.dumps(to(topic, {n: [3 + n % 2, 2] for n in range(50)})))
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    said = topics.cluster.run_tool(tool, "--execute", "--reassignment-json-file", str(file))
    assert "Successfully started" in said.stdout, said.stdout + said.stderr
    plan, _ = adopted(topic, 50 * MB)
    is_throttled(gateway, topic)
    own = OwnCluster.itself(gateway)
    done = run(plan, ledger, own, Policy(50 * MB, metadata_grace_s=1))
    assert done.finished is PlanState.DONE
    clear_throttle(plan.plan_id, ledger, own)
    wait_until(lambda: state_of(gateway, [topic])["throttles"] == before, "throttles as before")


def test_nothing_is_adopted_where_something_else_was_set_or_another_plan_runs(
    gateway: ClusterGateway,
    ledger: Ledger,
    topics: Any,
    adopted: Adopted,
    approved: Callable[..., Plan],
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    one = TopicPartition(topic, 0)
    throttled(approved(move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (3, 2))), 1_000)
    gateway.alter_reassignments({one: [3, 2]})
    with pytest.raises(PlanConflictError, match="cluster"):
        adopted(topic, MB)
    assert not ledger.reassignments(f"adopt-{topic}")
    found = describe_reassignments(gateway, ledger, utc_now())
    chosen = name_reassignments(found.reassignments, {})
    asked = NamedReassignments(found.cluster_id, ForeignAction.ADOPT, chosen)
    gateway.alter_reassignments({one: [4, 2]})
    with pytest.raises(SetMeanwhileError):
        still_in_flight(asked, ledger, OwnCluster.itself(gateway))
    gateway.alter_reassignments({one: None})
