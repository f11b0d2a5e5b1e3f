"""A real cluster with a dead broker and a failed log dir: what a request is about is planned, once
by the plan job with its gates, and carried out to its end. tests/quality asks the gates about plans
of every action on such clusters.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.snapshot.model import Snapshot
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.kafka import PartitionState, TopicPartition
from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.states import PlanState
from rehome.execution.dry_run.dry_run import describe, dry_run
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.settings import Settings
from rehome.warehouse import PlanDirectory, Warehouse
from spark_jobs import plan as job
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import FAST, run
from tests.session.needs import Need, needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

DEAD, FAILED = 4, 3
"""Broker 4 is killed; broker 3 loses the first of its two log dirs."""
SETTINGS = Settings(min_free_disk_fraction=0.0)
ONE_AT_A_TIME = replace(FAST, max_partitions_in_flight=1)


@dataclass(frozen=True)
class Unwell:
    """The cluster, and topics that were made while it was well.

    :param homes: two replicas each, one on the dead broker or the one with the failed log dir.
    :param safer: three replicas, one on the dead broker; its name comes first, and it is larger.
    :param lost: its only replica is on the dead broker.
    :param drained: two replicas each, one on the broker with the failed log dir.
    :param uneven: both replicas in one rack.
    """

    gateway: OwnGateway
    directory: Path
    homes: str
    safer: str
    lost: str
    drained: str
    uneven: str

    def states(self, topic: str) -> dict[int, PartitionState]:
        return dict(self.gateway.describe_topics([topic])[topic].partitions)

    def planned(self, name: str, **params: Any) -> Plan:
        """What the planner makes of a request on a fresh snapshot, once the dry run agrees."""
        snapshot = take_snapshot(self.gateway, datetime.now(UTC))
        request = parse_request(params)
        options = PlanOptions(plan_id=name, min_free_disk_fraction=0.0)
        return self._tried(make_plan(snapshot, request, options), request, snapshot)

    def planned_by_the_job(self, name: str, **params: Any) -> Plan:
        """The same by the plan job, gates included."""
        warehouse = Warehouse((self.directory / "warehouse").as_uri())
        snapshot = take_snapshot(self.gateway, datetime.now(UTC))
        request = self.directory / f"{name}.json"
        request.write_text(json.dumps(params))
        out = PlanDirectory(f"{warehouse.uri}/plans/{name}")
        arguments = ["--snapshot", warehouse.write_snapshot(snapshot), "--request", str(request)]
        code = job.main([*arguments, "--out", out.uri, "--min-free-disk-fraction", "0"])
        assert code == 0, out.read_json("failure.json")
        return self._tried(out.load(), parse_request(params), snapshot)

    def _tried(self, plan: Plan, request: ReassignmentRequest, snapshot: Snapshot) -> Plan:
        tried = dry_run(plan, request, snapshot, self.gateway, SETTINGS, rate_bytes_per_s=10**9)
        assert tried.ok, describe(tried)
        return plan

    def carried_out(self, plan: Plan) -> list[TopicPartition]:
        """Drive a plan to its end; its partitions in the order of their start."""
        with Ledger.open(f"sqlite:///{self.directory}/{plan.plan_id}.db") as ledger:
            ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "test")
            ledger.approve(plan.plan_id, plan.plan_hash, "test")
            set_up_throttle(plan, ledger, self.gateway, 10**8)
            ended = run(plan, ledger, self.gateway, ONE_AT_A_TIME)
            assert ended.finished is PlanState.DONE, ended.cause
            assert clear_throttle(plan.plan_id, ledger, self.gateway).owed == ()
            started = sorted(ledger.reassignments(plan.plan_id), key=lambda item: item.started_at)
            return [item.partition for item in started]


@pytest.fixture(scope="module")
@needs(Need.BROKERS)
def unwell() -> Iterator[Unwell]:
    directory = Path(tempfile.mkdtemp(prefix="rehome-test-"))
    try:
        racks = ["/a", "/a", "/b", "/b"]
        with LocalCluster(directory / "cluster", racks=racks) as cluster:
            topics = Topics(cluster)
            homes = topics.create([[1, DEAD], *[[FAILED, 1]] * 4], "homes")
            safer = topics.create([[DEAD, 1, 2]], "a-safer")
            lost, drained = topics.create([[DEAD]]), topics.create([[FAILED, 2]] * 4)
            uneven = topics.create([[1, 2]])
            for topic, messages in ((homes, 100), (safer, 3000), (drained, 100), (uneven, 100)):
                topics.fill(topic, messages)
            with impatient_gateway(cluster) as gateway:
                made = Unwell(gateway, directory, homes, safer, lost, drained, uneven)
                fall_ill(cluster, made)
                yield made
    finally:
        shutil.rmtree(directory)


def fall_ill(cluster: LocalCluster, unwell: Unwell) -> None:
    path = cluster.log_dirs(FAILED)[0]
    in_it = {entry.name for entry in path.iterdir() if entry.is_dir()}
    path.rename(path.with_name("gone"))
    cluster.kill(DEAD)

    def offline(topic: str, number: int) -> set[int]:
        return {DEAD, FAILED} if f"{topic}-{number}" in in_it else {DEAD}

    def noticed() -> bool:
        """By the broker whose log dir it is, and by the controller."""
        failed = {d.path for d in unwell.gateway.describe_log_dirs([FAILED]).value if d.error}
        return (
            failed == {str(path)}
            and DEAD not in unwell.gateway.describe_cluster().brokers
            and all(
                state.isr.isdisjoint(offline(topic, number)) and state.leader is not None
                for topic in (unwell.homes, unwell.safer, unwell.drained)
                for number, state in unwell.states(topic).items()
            )
        )

    wait_until(noticed, "the dead broker and the failed log dir to be noticed", 120)
    assert any(FAILED in offline(unwell.homes, number) for number in range(1, 5))
    assert any(FAILED in offline(unwell.drained, number) for number in range(4))


@pytest.mark.usefixtures("spark")
def test_offline_replicas_get_new_homes_and_the_most_endangered_go_first(unwell: Unwell) -> None:
    def states() -> dict[TopicPartition, PartitionState]:
        found = {topic: unwell.states(topic) for topic in (unwell.homes, unwell.safer)}
        return {TopicPartition(t, n): s for t, some in found.items() for n, s in some.items()}

    before = states()
    topics = [unwell.homes, unwell.safer, unwell.lost]
    plan = unwell.planned_by_the_job("homes", action="fix_offline_replicas", topics=topics)
    (note,) = plan.summary.infeasible
    assert (subject_text(note.subject), "no live leader" in obstacle_text(note)) == (
        f"{unwell.lost}-0",
        True,
    )
    harmed = {p for p, state in before.items() if state.isr != set(state.replicas)}
    assert {move.partition for move in plan.moves} == harmed
    assert next(iter(plan.moves)).partition.topic == unwell.safer
    order = unwell.carried_out(plan)
    danger = [len(before[partition].isr) for partition in order]
    assert danger == [1] * (len(order) - 1) + [2]
    for partition, state in states().items():
        assert len(state.replicas) == len(before[partition].replicas)
        assert before[partition].isr <= state.isr == set(state.replicas)


def test_a_broker_with_a_failed_log_dir_can_be_drained(unwell: Unwell) -> None:
    plan = unwell.planned(
        "drained", action="drain", brokers=[FAILED], topics=[unwell.drained, unwell.lost]
    )
    assert len(unwell.carried_out(plan)) == 4
    for state in unwell.states(unwell.drained).values():
        assert set(state.replicas) == state.isr == {1, 2}


def test_racks_are_repaired_despite_a_dead_broker_and_a_partition_without_a_leader(
    unwell: Unwell,
) -> None:
    plan = unwell.planned("repaired", action="repair_racks", topics=[unwell.uneven, unwell.lost])
    assert [subject_text(note.subject) for note in plan.summary.infeasible] == [f"{unwell.lost}-0"]
    assert len(unwell.carried_out(plan)) == 1
    (state,) = unwell.states(unwell.uneven).values()
    assert FAILED in state.replicas
    assert state.isr == set(state.replicas)
