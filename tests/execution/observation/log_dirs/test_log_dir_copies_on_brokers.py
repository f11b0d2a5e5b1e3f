"""Moves between log dirs on real brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.snapshot.model import LOG_DIRS
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.actions import Action
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.progress import ReplicaState
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.execution.completion.verify import verify
from rehome.execution.control.cancel import abort
from rehome.execution.throttle.keys import LOG_DIR_RATE
from rehome.execution.throttle.set_up import clear_throttle
from rehome.ledger.store import Ledger
from rehome.planning import planner
from rehome.planning.options import PlanOptions
from tests.conftest import Topics
from tests.dags.clusters import (
    MARKS,
    Throttles,
    no_throttles,
    throttles_become,
    throttles_of,
)
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import SLOW, SLOW_RATE, replicas_of, run
from tests.execution.killed import run_until_killed
from tests.ledger.small_plans import move
from tests.versions.since import copies_end

pytestmark = copies_end

MakePlan = Callable[..., Plan]
MB = 1_000_000


@dataclass(frozen=True)
class Within:
    """A plan that moves the replica on broker 1 of a partition to the broker's other log dir."""

    gateway: OwnGateway
    plan: Plan
    replica: ReplicaId
    here: str
    there: str

    def copies(self) -> dict[str, str]:
        """Log dirs in which the replica is, and is being copied to."""
        return {
            "future" if replica.is_future else "current": log_dir.path
            for log_dir in self.gateway.describe_log_dirs([1], [self.replica.topic_partition]).value
            for replica in log_dir.replicas.values()
        }


@pytest.fixture
def within(
    cluster: LocalCluster, gateway: OwnGateway, approved: MakePlan, topics: Topics
) -> Callable[[int], Within]:
    def make(size_mb: int) -> Within:
        topic = topics.create([[1, 2]])
        topics.fill(topic, size_mb * 100, size_bytes=10_000)
        replica = ReplicaId(topic, 0, 1)
        paths = {str(path) for path in cluster.log_dirs(1)}
        found = Within(gateway, approved(move(topic, 0, (1, 2), (1, 2))), replica, "", "")
        here = found.copies()["current"]
        (there,) = paths - {here}
        log_dirs = (here, "any"), (there, "any")
        plan = approved(move(topic, 0, (1, 2), (1, 2), size_mb * MB, *log_dirs))
        return Within(gateway, plan, replica, here, there)

    return make


def test_a_copy_between_log_dirs_keeps_to_its_throttle_and_its_bytes_are_reported(
    gateway: OwnGateway,
    ledger: Ledger,
    throttled: Callable[..., None],
    within: Callable[[int], Within],
) -> None:
    """6 MB: what a quota that was idle lets pass at once is less than 11 s of the rate."""
    moving, rate = within(6), SLOW_RATE // 4
    policy = replace(SLOW, rate_bytes_per_s=rate)
    plan_id, topic = moving.plan.plan_id, moving.replica.topic
    before = no_throttles(gateway, [topic])
    throttled(moving.plan, rate)
    ours: Throttles = {
        "broker ": {LOG_DIR_RATE: str(rate)},
        MARKS: throttles_of(gateway, [])[MARKS],
    }
    throttles_become(gateway, [topic], {**before, **ours})
    assert ours[MARKS]
    assert advance(moving.plan, ledger, gateway, policy).admitted == [
        moving.replica.topic_partition
    ]
    behind: list[int] = []

    def ended() -> bool:
        step = advance(moving.plan, ledger, gateway, policy)
        status = ledger.latest(plan_id).get(moving.replica)
        if status and status.state is ReplicaState.BEHIND and status.bytes_behind is not None:
            behind.append(status.bytes_behind)
        return step.finished is PlanState.DONE

    wait_until(ended, "the copy", 240)
    samples = ledger.samples(plan_id)
    assert (samples[-1].sampled_at - samples[0].sampled_at).total_seconds() > 3
    assert any(0 < missing < 5 * MB for missing in behind), behind
    assert behind == sorted(behind, reverse=True)
    assert 0 < samples[len(samples) // 2].bytes_done < samples[-1].bytes_done
    assert samples[-1].bytes_done == samples[-1].bytes_total > 5 * MB
    assert ledger.plan(plan_id).bytes_total == 6 * MB
    assert moving.copies() == {"current": moving.there}
    assert verify(moving.plan, gateway).ok
    assert clear_throttle(plan_id, ledger, gateway).owed == ()
    throttles_become(gateway, [topic], before)


@pytest.mark.parametrize(
    ("call", "when"), [("alter_replica_log_dirs", "after"), ("alter_reassignments", "after")]
)
def test_a_worker_killed_around_its_request_is_followed_by_one_that_copies_once(
    call: str,
    when: str,
    cluster: LocalCluster,
    gateway: OwnGateway,
    ledger: Ledger,
    ledger_url: str,
    within: Callable[[int], Within],
) -> None:
    moving = within(1)
    run_until_killed("advance", call, when, moving.plan, ledger_url, cluster, SLOW_RATE)
    assert run(moving.plan, ledger, gateway).finished is PlanState.DONE
    assert moving.copies() == {"current": moving.there}
    (start,) = ledger.reassignments(moving.plan.plan_id)
    assert start.outcome is MoveState.DONE


@pytest.fixture
def moving(
    gateway: OwnGateway,
    ledger: Ledger,
    throttled: Callable[..., None],
    within: Callable[[int], Within],
) -> Within:
    """A copy that crawls from one log dir to the other."""
    begun = within(6)
    throttled(begun.plan, SLOW_RATE // 10)
    advance(begun.plan, ledger, gateway, SLOW)
    assert begun.copies() == {"current": begun.here, "future": begun.there}
    return begun


def test_a_cancelled_copy_leaves_its_replica_where_it_is(
    gateway: OwnGateway, ledger: Ledger, moving: Within
) -> None:
    abort(moving.plan.plan_id, ledger, gateway, "enough")
    assert moving.copies() == {"current": moving.here}
    (record,) = ledger.moves(moving.plan.plan_id).values()
    assert record.state is MoveState.CANCELLED


def test_a_copy_that_another_client_takes_back_is_not_begun_again(
    gateway: OwnGateway, ledger: Ledger, moving: Within
) -> None:
    assert gateway.alter_replica_log_dirs({moving.replica: moving.here}) == {moving.replica: None}
    assert run(moving.plan, ledger, gateway, SLOW).finished is PlanState.FAILED
    (record,) = ledger.moves(moving.plan.plan_id).values()
    assert record.state is MoveState.CANCELLED
    assert "another client has taken that back" in record.detail
    assert moving.copies() == {"current": moving.here}


def test_replicas_move_between_log_dirs_and_land_in_the_dirs_that_are_wanted(
    cluster: LocalCluster, gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 500)
    partitions = [TopicPartition(topic, number) for number in range(2)]

    def dirs() -> dict[ReplicaId, str]:
        return {
            ReplicaId(*partition, log_dir.broker): log_dir.path
            for log_dir in gateway.describe_log_dirs(partitions=partitions).value
            for partition, replica in log_dir.replicas.items()
            if not replica.is_future
        }

    here = dirs()[ReplicaId(topic, 0, 1)]
    (there,) = (str(path) for path in cluster.log_dirs(1) if str(path) != here)
    wanted = str(cluster.log_dirs(4)[1])
    plan = approved(
        move(topic, 0, (1, 2), (1, 2), 500_000, (here, "any"), (there, "any")),
        move(topic, 1, (1, 2), (4, 2), 500_000, ("any", "any"), (wanted, "any")),
    )
    end = run(plan, ledger, gateway)
    assert end.finished is PlanState.DONE
    assert dirs()[ReplicaId(topic, 0, 1)] == there
    assert dirs()[ReplicaId(topic, 1, 4)] == wanted
    assert end.progress is not None
    assert end.progress.sample.bytes_done == end.progress.sample.bytes_total


def test_a_plan_names_log_dirs_where_there_is_little_free_space_and_copies_go_there(
    cluster: LocalCluster, gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    """Broker 4 would put two of four copies into each log dir. The test's brokers share a disk, so
    that what is free is written into the snapshot: three copies fit here, one there.
    """
    topic = topics.create([[1]] * 4)
    topics.fill(topic, 400)
    found = take_snapshot(gateway, datetime.now(UTC))
    replicas = found.replicas.filter(pc.equal(found.replicas.column("topic"), topic))
    sizes = replicas.column("size_bytes").to_pylist()
    assert min(sizes) * 2 > max(sizes) > 0
    wide, narrow = (str(path) for path in cluster.log_dirs(4))
    usable = {(4, wide): sum(sorted(sizes)[1:]), (4, narrow): max(sizes)}
    log_dirs = [
        row
        | (
            {"total_bytes": 10 * sum(sizes), "usable_bytes": usable[place]}
            if place in usable
            else {}
        )
        for row in found.log_dirs.to_pylist()
        for place in [(row["broker"], row["log_dir"])]
    ]
    snapshot = replace(found, log_dirs=pa.Table.from_pylist(log_dirs, LOG_DIRS))
    request = ReassignmentRequest(
        Action.DRAIN, brokers=(1,), topics=(topic,), exclude_brokers=(2, 3), ignore_racks=True
    )
    made = planner.make_plan(snapshot, request, PlanOptions(plan_id="tight"))
    named = [path for move in made.moves for path in move.target_log_dirs]
    assert sorted(named) == sorted([wide] * 3 + [narrow])
    plan = approved(*made.moves)
    assert run(plan, ledger, gateway).finished is PlanState.DONE
    partitions = [TopicPartition(topic, number) for number in range(4)]
    lies_in = {
        partition: log_dir.path
        for log_dir in gateway.describe_log_dirs([4], partitions).value
        for partition in log_dir.replicas
    }
    assert lies_in == {move.partition: move.target_log_dirs[0] for move in made.moves}
    assert verify(plan, gateway).ok


def test_a_log_dir_that_does_not_exist_fails_the_move_before_anything_moves(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (4, 2), 0, ("any", "any"), ("/nowhere", "any")))
    assert run(plan, ledger, gateway).finished is PlanState.FAILED
    detail = ledger.moves(plan.plan_id)[TopicPartition(topic, 0)].detail
    assert detail == "LOG_DIR_NOT_FOUND (57): log dir /nowhere on broker 4"
    assert replicas_of(gateway, topic) == (1, 2)
