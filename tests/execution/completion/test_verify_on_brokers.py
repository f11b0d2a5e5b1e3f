"""Verification against the cluster as it is, compared with what Kafka's own tool reports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import ANY_LOG_DIR, ReplicaId, TopicPartition
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.plan.plan import Plan
from rehome.execution.completion.preferred_leaders import restore_preferred_leaders
from rehome.execution.completion.verify import Elsewhere, ElsewhereKind, GoneKind, verify
from rehome.execution.completion.words.proof_words import proof_json
from rehome.execution.throttle.keys import FOLLOWER_REPLICAS, LEADER_REPLICAS
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.small_plans import make_plan, move
from tests.versions.since import copies_end, honours_default

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@pytest.fixture
def tool(cluster: LocalCluster, tmp_path: Path) -> Callable[..., str]:
    """Runs kafka-reassign-partitions, with a plan's JSON where given; returns what it says."""

    def run(*args: str, content: dict[str, Any] | None = None) -> str:
        if content is not None:
            file = tmp_path / f"{time.monotonic_ns()}.json"
            file.write_text(json.dumps(content))
            args = ("--reassignment-json-file", str(file), *args)
        done = cluster.run_tool(TOOL, *args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def carry_out(plan: Plan, gateway: OwnGateway) -> None:
    targets = {item.partition: item.target for item in plan.moves}
    assert not any(gateway.alter_reassignments(targets).values())
    wait_until(lambda: verify(plan, gateway).ok, "the moves")


def test_kafkas_own_tool_agrees_before_and_after_and_takes_our_files(
    gateway: OwnGateway, topics: Topics, tool: Callable[..., str]
) -> None:
    topic = topics.create([[1, 2], [2, 3]])
    topics.fill(topic, 300)
    plan = make_plan(
        "p", move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (2, 3), (4, 1)), cluster_id="c"
    )
    target, back = reassignment_json(plan.moves), rollback_json(plan.moves)

    before = verify(plan, gateway)
    assert {tp.partition for tp in before.problems} == {0, 1}
    reported = tool("--verify", "--preserve-throttles", content=target)
    assert f"Reassignment of partition {topic}-0 is completed." not in reported

    reported = tool("--execute", content=target)
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in reported
    wait_until(lambda: verify(plan, gateway).ok, "our verify")
    reported = tool("--verify", "--preserve-throttles", content=target)
    for number in (0, 1):
        assert f"Reassignment of partition {topic}-{number} is completed." in reported
    assert "No partition reassignments found." in tool("--list")

    tool("--execute", content=back)
    way_back = make_plan("b", move(topic, 0, (3, 2), (1, 2)), move(topic, 1, (4, 1), (2, 3)))
    wait_until(lambda: verify(way_back, gateway).ok, "the way back")
    assert not verify(plan, gateway).ok


@honours_default
def test_moves_in_flight_are_reported_by_verify_and_by_kafkas_own_tool(
    gateway: OwnGateway, topics: Topics, tool: Callable[..., str]
) -> None:
    topic = topics.create([[1, 2]], config={LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"})
    topics.fill(topic, 1000, size_bytes=10_000)
    default = ConfigResource.cluster_default()
    rates = [
        ConfigChange(default, f"{side}.replication.throttled.rate", ConfigOperation.SET, "1000")
        for side in ("leader", "follower")
    ]
    undo = [ConfigChange(c.resource, c.key, ConfigOperation.DELETE) for c in rates]
    partition = TopicPartition(topic, 0)
    plan = make_plan("p", move(topic, 0, (1, 2), (3, 2)))
    assert gateway.alter_configs(rates) == {default: None}
    try:
        assert gateway.alter_reassignments({partition: [3, 2]}) == {partition: None}
        wait_until(lambda: partition in gateway.list_reassignments(), "it to be in flight")
        reported = verify(plan, gateway)
        assert reported.problems == {partition: Elsewhere(ElsewhereKind.IN_FLIGHT, target=(3, 2))}
        assert f"{topic}-0: replicas: 3,2,1. adding: 3. removing: 1." in tool("--list")
        said = tool("--verify", "--preserve-throttles", content=reassignment_json(plan.moves))
        assert f"Reassignment of partition {topic}-0 is still in progress." in said
    finally:
        gateway.alter_reassignments({partition: None})
        gateway.alter_configs(undo)

    wait_until(lambda: partition not in gateway.list_reassignments(), "the cancel")
    # It leaves the old replicas, in the order in which the controller had stored them in flight.
    assert verify(plan, gateway).problems == {
        partition: Elsewhere(ElsewhereKind.REPLICAS, target=(3, 2), replicas=(2, 1))
    }
    reordered = make_plan("p", move(topic, 0, (2, 1), (1, 2)))
    assert verify(reordered, gateway).problems == {
        partition: Elsewhere(ElsewhereKind.REPLICAS, target=(1, 2), replicas=(2, 1))
    }


def test_throttles_that_are_still_set_are_reported_whoever_set_them(
    gateway: OwnGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]], config={LEADER_REPLICAS: "0:1,0:2"})
    plan = make_plan("p", move(topic, 0, (2, 1), (1, 2)))
    reported = verify(plan, gateway)
    assert reported.ok
    assert reported.throttles == (f"topic {topic} {LEADER_REPLICAS}=0:1,0:2",)
    assert json.loads(json.dumps(proof_json(reported)))["throttles"] == list(reported.throttles)


def test_throttles_of_a_topic_that_cannot_be_read_are_not_known(gateway: OwnGateway) -> None:
    reported = verify(make_plan("p", move("never-created", 0, (2, 1), (1, 2))), gateway)
    assert reported.throttles == ()
    (why,) = reported.unread
    assert why.startswith("topic never-created cannot be read: ")
    assert proof_json(reported)["unread"] == [why]


def test_a_topic_or_partition_that_is_gone_is_named_and_is_no_problem(
    gateway: OwnGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    plan = make_plan("p", move(topic, 5, (1, 2), (3, 2)), move("no-such-topic", 0, (1, 2), (3, 2)))
    reported = verify(plan, gateway)
    assert reported.ok
    assert reported.gone == {
        TopicPartition(topic, 5): GoneKind.NO_PARTITION,
        TopicPartition("no-such-topic", 0): GoneKind.DELETED,
    }


@copies_end
def test_a_replica_in_another_log_dir_than_asked_for_is_a_problem(
    gateway: OwnGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    replica = ReplicaId(topic, 0, 1)

    def holding() -> str | None:
        dirs = gateway.describe_log_dirs([1]).value
        return next((d.path for d in dirs if replica.topic_partition in d.replicas), None)

    here = wait_until(holding, "the replica on its broker's disk")
    there = next(d.path for d in gateway.describe_log_dirs([1]).value if d.path != here)
    plan = make_plan("p", move(topic, 0, (2, 1), (1, 2), target_log_dirs=(there, ANY_LOG_DIR)))
    reported = verify(plan, gateway).problems[replica.topic_partition]
    assert reported == Elsewhere(ElsewhereKind.LOG_DIR, broker=1, wanted_dir=there, found_dir=here)
    assert gateway.alter_replica_log_dirs({replica: there}) == {replica: None}
    wait_until(lambda: verify(plan, gateway).ok, "the move between log dirs")


def test_preferred_leaders_are_restored_where_they_do_not_lead(
    gateway: OwnGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [2, 1]])
    plan = make_plan("p", move(topic, 0, (1, 2), (2, 1)), move(topic, 1, (1, 2), (2, 1)))
    carry_out(plan, gateway)  # leadership stays where it was when only the order changes

    def leader() -> int | None:
        return gateway.describe_topics([topic])[topic].partitions[0].leader

    assert leader() == 1
    restored = restore_preferred_leaders(plan, gateway)
    assert (restored.already, restored.elected) == (1, (TopicPartition(topic, 0),))
    assert restored.refused == {}
    wait_until(lambda: leader() == 2, "broker 2 to lead")
    again = restore_preferred_leaders(plan, gateway)
    assert (again.already, again.elected, again.waiting) == (2, (), ())
