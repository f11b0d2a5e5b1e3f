"""Moves on real brokers: admitted, watched, settled, cancelled; after crashes too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from include.cluster.errors import ClusterError
from include.cluster.gateway import ClusterGateway
from include.cluster.model import PartitionState, ReplicaId, TopicPartition
from include.execution.abort import abort
from include.execution.advance import Advance, advance
from include.execution.decide import needs_worker
from include.execution.model import MoveState, PlanState, Policy, ReplicaStanding
from include.execution.observe import moves_of, observe
from include.execution.progress import record_progress, replica_statuses, status_text
from include.execution.throttle import clear_throttle, set_up_throttle
from include.execution.throttle_items import LISTS
from include.ledger.database import utc_now
from include.ledger.store import Ledger
from include.planning.plan import Plan
from local.kafka_cluster import LocalCluster
from local.waiting import wait_until
from tests.execution.killed import run_until_killed
from tests.ledger.small_plans import move

MakePlan = Callable[..., Plan]
FAST = Policy(100_000_000, metadata_grace_s=2)
SLOW_RATE = 1_000_000
SLOW = Policy(SLOW_RATE, metadata_grace_s=2)


@pytest.fixture
def throttled(ledger: Ledger, gateway: ClusterGateway) -> Iterator[Callable[..., None]]:
    """Sets a plan's throttle up, and takes it down at the end whatever happens."""
    plans: list[Plan] = []

    def set_up(plan: Plan, rate: int) -> None:
        plans.append(plan)
        set_up_throttle(plan, ledger, gateway, rate)

    yield set_up
    for plan in plans:
        abort(plan, ledger, gateway, "the test is over")
        clear_throttle(plan.plan_id, ledger, gateway)


def run(plan: Plan, ledger: Ledger, gateway: Any, policy: Policy = FAST) -> Advance:
    """Advance until the plan ends or pauses."""
    steps: list[Advance] = []

    def ended() -> bool:
        steps.append(advance(plan, ledger, gateway, policy))
        return steps[-1].finished is not None

    wait_until(ended, f"{plan.plan_id} to end", 60)
    return steps[-1]


def state_of(gateway: ClusterGateway, topic: str, partition: int = 0) -> PartitionState:
    return gateway.describe_topics([topic])[topic].partitions[partition]


def replicas_of(gateway: ClusterGateway, topic: str, partition: int = 0) -> tuple[int, ...]:
    return state_of(gateway, topic, partition).replicas


def test_a_plan_is_carried_out_and_every_start_has_its_identity(
    gateway: ClusterGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [2, 3], [3, 1]])
    topics.fill(topic, 200)
    plan = approved(
        move(topic, 0, (1, 2), (3, 2)),
        move(topic, 1, (2, 3), (3, 2)),  # only the preferred leader changes: no data moves
        move(topic, 2, (3, 1), (4, 2)),
    )
    end = run(plan, ledger, gateway)
    assert (end.finished, ledger.plan(plan.plan_id).state) == (PlanState.DONE, PlanState.DONE)
    assert [replicas_of(gateway, topic, p) for p in range(3)] == [(3, 2), (3, 2), (4, 2)]
    starts = ledger.reassignments(plan.plan_id)
    assert len({start.reassignment_id for start in starts}) == 3
    assert [start.first_leader for start in starts] == [1, 2, 3]
    assert {start.outcome for start in starts} == {MoveState.DONE}
    assert ledger.samples(plan.plan_id)[-1].bytes_done > 0


def test_progress_is_not_complete_before_the_copy_is_though_offset_lag_reads_0(
    gateway: ClusterGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
) -> None:
    """OffsetLag is 0 from the first byte on: messages behind must tell the truth."""
    topic = topics.create([[1, 2]])
    topics.fill(topic, 6000)
    copy, partition = ReplicaId(topic, 0, 4), TopicPartition(topic, 0)
    plan = approved(move(topic, 0, (1, 2), (4, 2), 6_000_000))
    throttled(plan, SLOW_RATE)
    started = time.monotonic()
    assert advance(plan, ledger, gateway, SLOW).admitted == [partition]
    behind: list[int] = []
    offset_lags: list[int] = []
    wakes: list[bool] = []

    def finished() -> bool:
        view = ledger.view(plan.plan_id)
        seen = observe(gateway, plan.moves, utc_now())
        progress = record_progress(plan, view, ledger, seen)
        status = {s.replica: s for s in progress.statuses}[copy]
        wakes.append(needs_worker(plan, view, seen, SLOW))
        if status.standing is ReplicaStanding.BEHIND and status.messages_behind is not None:
            assert not wakes[-1]
            behind.append(status.messages_behind)
            offset_lags.extend(
                log_dir.replicas[partition].offset_lag
                for log_dir in gateway.describe_log_dirs([4], [partition]).value
                if partition in log_dir.replicas
            )
        if wakes[-1]:
            assert status.standing is ReplicaStanding.IN_SYNC
        return wakes[-1]

    wait_until(finished, "the copy", 60)
    assert time.monotonic() - started > 4, "6 MB at 1 MB/s cannot be faster"
    assert len(set(behind)) >= 3
    assert behind == sorted(behind, reverse=True)
    assert behind[0] > 3000
    assert set(offset_lags) == {0}
    assert status_text(
        replica_statuses(plan.moves, observe(gateway, plan.moves, utc_now()))[0]
    ) == ("In sync")
    assert run(plan, ledger, gateway, SLOW).finished is PlanState.DONE
    largest = ledger.latest(plan.plan_id)[copy].max_messages_behind
    assert largest is not None
    assert largest >= behind[0]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_killed_around_its_request_is_followed_by_one_that_goes_on(
    when: str,
    cluster: LocalCluster,
    gateway: ClusterGateway,
    ledger: Ledger,
    ledger_url: str,
    approved: MakePlan,
    topics: Any,
) -> None:
    topic = topics.create([[1, 2], [2, 1]])
    topics.fill(topic, 200)
    plan = approved(move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (2, 1), (1, 2)))
    run_until_killed("advance", "alter_reassignments", when, plan, ledger_url, cluster, 5_000_000)
    assert set(ledger.view(plan.plan_id).moves.values()) == {MoveState.ADMITTED}
    assert ledger.view(plan.plan_id).sent == {}
    assert run(plan, ledger, gateway).finished is PlanState.DONE
    assert (replicas_of(gateway, topic, 0), replicas_of(gateway, topic, 1)) == ((3, 2), (1, 2))
    assert len(ledger.reassignments(plan.plan_id)) == 2


class Faulty:
    """The gateway, with one call failing once: its request or only its answer is lost."""

    def __init__(self, gateway: ClusterGateway, call: str, after: bool) -> None:
        self._gateway, self._call, self._after, self.failed = gateway, call, after, False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._gateway, name)
        if name != self._call or self.failed:
            return found

        def fail(*args: Any, **options: Any) -> Any:
            self.failed = True
            if self._after:
                found(*args, **options)
            raise ClusterError("the answer was lost")

        return fail


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "call", ["list_reassignments", "describe_topics", "log_end_offsets", "alter_reassignments"]
)
def test_an_advance_that_failed_anywhere_can_simply_be_repeated(
    call: str,
    after: bool,
    gateway: ClusterGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
) -> None:
    topic = topics.create([[1, 2], [2, 1]])
    plan = approved(move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (2, 1), (4, 1)))
    faulty = Faulty(gateway, call, after)
    steps = 0
    while not ledger.plan(plan.plan_id).state.ended:
        steps += 1
        assert steps < 500
        try:
            advance(plan, ledger, faulty, FAST)
        except ClusterError:
            assert faulty.failed
    assert faulty.failed
    assert ledger.plan(plan.plan_id).state is PlanState.DONE
    assert (replicas_of(gateway, topic, 0), replicas_of(gateway, topic, 1)) == ((3, 2), (4, 1))
    assert len(ledger.reassignments(plan.plan_id)) == 2


def test_what_the_controller_refuses_fails_with_its_words_and_the_rest_goes_on(
    gateway: ClusterGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [2, 1], [1, 3]])
    plan = approved(
        move(topic, 0, (1, 2), (3, 2)),
        move(topic, 1, (2, 1), (2, 1, 4)),  # the factor changes, and nobody asked for that
        move(topic + "-not", 0, (1, 2), (3, 2)),
        move(topic, 2, (1, 3), (1, 4)),
    )
    end = run(plan, ledger, gateway)
    assert end.finished is PlanState.FAILED
    assert end.cause == "not every move is done: 2 failed"
    moves = ledger.moves(plan.plan_id)
    assert moves[TopicPartition(topic, 0)].state is MoveState.DONE
    assert moves[TopicPartition(topic, 2)].state is MoveState.DONE
    refused = moves[TopicPartition(topic, 1)]
    assert refused.state is MoveState.FAILED
    assert "INVALID_REPLICATION_FACTOR (38): The replication factor is changed from 2 to 3" in (
        refused.detail
    )
    assert "does not exist" in moves[TopicPartition(topic + "-not", 0)].detail


def test_a_cancel_restores_the_order_of_replicas_and_leaves_no_throttle(
    gateway: ClusterGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2, 3], [3, 2, 1]])
    topics.fill(topic, 4000)
    plan = approved(
        move(topic, 0, (1, 2, 3), (4, 3, 2), 4_000_000),
        move(topic, 1, (3, 2, 1), (2, 4, 1), 4_000_000),
    )
    throttled(plan, 200_000)
    advance(plan, ledger, gateway, SLOW)
    wait_until(lambda: len(gateway.list_reassignments()) == 2, "both to be in flight")
    ledger.request_cancel(plan.plan_id, "ann")
    end = advance(plan, ledger, gateway, SLOW)
    assert end.finished is PlanState.CANCELLED
    assert set(ledger.view(plan.plan_id).moves.values()) == {MoveState.CANCELLED}
    wait_until(lambda: replicas_of(gateway, topic, 0) == (1, 2, 3), "the order")
    wait_until(lambda: replicas_of(gateway, topic, 1) == (3, 2, 1), "the order")
    assert gateway.list_reassignments() == {}


def test_a_worker_killed_in_mid_move_leaves_nothing_once_aborted_and_cleared_elsewhere(
    cluster: LocalCluster,
    gateway: ClusterGateway,
    ledger: Ledger,
    ledger_url: str,
    approved: MakePlan,
    topics: Any,
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 4000)
    plan = approved(move(topic, 0, (1, 2), (4, 2), 4_000_000))
    set_up_throttle(plan, ledger, gateway, 200_000)
    run_until_killed("advance", "alter_reassignments", "after", plan, ledger_url, cluster, 200_000)
    assert TopicPartition(topic, 0) in gateway.list_reassignments()
    abort(plan, ledger, gateway, "the run was marked failed")
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    wait_until(lambda: replicas_of(gateway, topic) == (1, 2), "the old replicas")
    assert gateway.list_reassignments() == {}
    resource = ledger.throttles(plan.plan_id)[-1].resource
    configs = gateway.describe_configs([resource], LISTS)[resource]
    assert {value.source for value in configs.values()} == {"DEFAULT_CONFIG"}
    assert ledger.plan(plan.plan_id).state is PlanState.FAILED
    abort(plan, ledger, gateway, "again")
    assert ledger.plan(plan.plan_id).cause == "the run was marked failed"


def test_foreign_reassignments_are_never_touched(
    gateway: ClusterGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2], [1, 2], [2, 1], [1, 3]])
    topics.fill(topic, 3000)
    ours, taken, before, beside = (TopicPartition(topic, number) for number in range(4))
    plan = approved(
        *(move(topic, number, (1, 2), (4, 2), 3_000_000) for number in range(2)),
        move(topic, 2, (2, 1), (4, 1), 3_000_000),
    )
    throttled(plan, 200_000)
    gateway.alter_reassignments({before: [3, 1], beside: [1, 4]})
    wait_until(lambda: replicas_of(gateway, topic, 2) == (3, 1), "the foreign ones to end")
    with_others = Policy(200_000, additional=True, metadata_grace_s=2)
    step = advance(plan, ledger, gateway, with_others)
    assert sorted(step.admitted) == [ours, taken]
    assert step.settled == {before: MoveState.SUPERSEDED}
    gateway.alter_reassignments({taken: [3, 2]})  # somebody supersedes ours
    wait_until(
        lambda: (
            advance(plan, ledger, gateway, with_others).settled.get(taken) is MoveState.SUPERSEDED
        ),
        "it to be recognised",
    )
    abort(plan, ledger, gateway, "enough")
    wait_until(lambda: replicas_of(gateway, topic, 1) == (3, 2), "the foreign one to end")
    assert ledger.view(plan.plan_id).moves[ours] is MoveState.CANCELLED
    assert replicas_of(gateway, topic, 3) == (1, 4)


def test_a_move_that_somebody_else_cancelled_is_recognised_and_its_order_restored(
    gateway: ClusterGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2, 3]])
    topics.fill(topic, 3000)
    partition = TopicPartition(topic, 0)
    plan = approved(move(topic, 0, (1, 2, 3), (4, 3, 2), 3_000_000))
    throttled(plan, 200_000)
    advance(plan, ledger, gateway, SLOW)
    gateway.alter_reassignments({partition: None})
    assert run(plan, ledger, gateway, SLOW).finished is PlanState.FAILED
    record = ledger.moves(plan.plan_id)[partition]
    assert (record.state, record.detail) == (MoveState.CANCELLED, "somebody else cancelled it")
    wait_until(lambda: replicas_of(gateway, topic) == (1, 2, 3), "the order")


def test_a_pause_lets_what_is_in_flight_end_and_a_claim_goes_on(
    gateway: ClusterGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    plan = approved(*(move(topic, number, (1, 2), (4, 2)) for number in range(2)))
    one_by_one = Policy(1_000_000, max_moves_per_broker=1, metadata_grace_s=2)
    assert len(advance(plan, ledger, gateway, one_by_one).admitted) == 1
    ledger.request_pause(plan.plan_id, "ann")
    assert run(plan, ledger, gateway, one_by_one).finished is PlanState.PAUSED
    states = sorted(ledger.view(plan.plan_id).moves.values())
    assert states == [MoveState.DONE, MoveState.PENDING]
    ledger.claim(plan.plan_id)
    assert run(plan, ledger, gateway, one_by_one).finished is PlanState.DONE


def test_replicas_move_between_log_dirs_and_land_in_the_dirs_that_are_wanted(
    cluster: LocalCluster, gateway: ClusterGateway, ledger: Ledger, approved: MakePlan, topics: Any
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


def test_a_log_dir_that_does_not_exist_fails_the_move_before_anything_moves(
    gateway: ClusterGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (4, 2), 0, ("any", "any"), ("/nowhere", "any")))
    assert run(plan, ledger, gateway).finished is PlanState.FAILED
    detail = ledger.moves(plan.plan_id)[TopicPartition(topic, 0)].detail
    assert detail == "LOG_DIR_NOT_FOUND (57): log dir /nowhere on broker 4"
    assert replicas_of(gateway, topic) == (1, 2)


def test_what_somebody_else_moves_can_be_watched(
    gateway: ClusterGateway,
    topics: Any,
    ledger: Ledger,
    approved: MakePlan,
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 3000)
    throttled(approved(move(topic, 0, (1, 2), (4, 2))), 200_000)
    gateway.alter_reassignments({TopicPartition(topic, 0): [4, 2]})
    (watched,) = moves_of(gateway.list_reassignments())
    assert (set(watched.current), watched.target) == ({1, 2}, (4, 2))
    copy, other = replica_statuses([watched], observe(gateway, [watched], utc_now()))
    assert (copy.replica.broker, copy.standing) == (4, ReplicaStanding.BEHIND)
    assert (other.replica.broker, other.standing) == (2, ReplicaStanding.IN_SYNC)
    gateway.alter_reassignments({TopicPartition(topic, 0): None})
