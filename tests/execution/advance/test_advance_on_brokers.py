"""Moves on real brokers: admitted, watched, settled, cancelled; after crashes too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.clock import utc_now
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.progress import ReplicaState
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.actions import SetRate
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.decide import decide
from rehome.execution.observation.observe import observe
from rehome.execution.progress.progress import record_progress, replica_statuses, status_text
from rehome.execution.throttle.keys import LISTS
from rehome.execution.throttle.set_up import change_rate, clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import FAST, SLOW, SLOW_RATE, replicas_of, run
from tests.execution.killed import run_until_killed
from tests.ledger.small_plans import move
from tests.versions.since import checks_replicas

MakePlan = Callable[..., Plan]


def test_a_plan_is_carried_out_and_every_start_has_its_identity(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
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
    gateway: OwnGateway,
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
    throttled(plan, SLOW_RATE // 5)  # so that a slow machine sees several values, too
    assert advance(plan, ledger, gateway, SLOW).admitted == [partition]
    behind: list[int] = []
    offset_lags: list[int] = []

    def finished() -> bool:
        view = ledger.view(plan.plan_id)
        seen = observe(gateway, plan.moves, utc_now())
        backlog = Backlog.of(plan, view, seen)
        progress, view = record_progress(plan, view, ledger, seen, SLOW, backlog)
        status = {s.replica: s for s in progress.statuses}[copy]
        steps = decide(plan, view, seen, seen.taken_at, SLOW)
        settled = any(isinstance(step, Settle) for step in steps)
        if status.state is ReplicaState.BEHIND and status.messages_behind is not None:
            assert not settled
            behind.append(status.messages_behind)
            offset_lags.extend(
                log_dir.replicas[partition].offset_lag
                for log_dir in gateway.describe_log_dirs([4], [partition]).value
                if partition in log_dir.replicas
            )
            if len(set(behind)) == 3:
                change_rate(plan, ledger, gateway, SetRate(FAST.rate_bytes_per_s, "seen enough"))
        if settled:
            assert status.state is ReplicaState.IN_SYNC
        return settled

    wait_until(finished, "the copy", 900)
    assert len(set(behind)) >= 3
    assert behind == sorted(behind, reverse=True)
    assert behind[0] > 0
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
    gateway: OwnGateway,
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

    def __init__(self, gateway: OwnGateway, call: str, after: bool) -> None:
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
    gateway: OwnGateway,
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
            advance(plan, ledger, cast(OwnCluster, faulty), FAST)
        except ClusterError:
            assert faulty.failed
    assert faulty.failed
    assert ledger.plan(plan.plan_id).state is PlanState.DONE
    assert (replicas_of(gateway, topic, 0), replicas_of(gateway, topic, 1)) == ((3, 2), (4, 1))
    assert len(ledger.reassignments(plan.plan_id)) == 2


@checks_replicas
def test_a_move_that_the_controller_refuses_fails_with_its_message_and_the_rest_goes_on(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [2, 1], [1, 3]])
    plan = approved(
        move(topic, 0, (1, 2), (3, 2)),
        move(topic, 1, (2, 1), (2, 1, 4)),  # the factor changes, which was not asked for
        move(topic + "-not", 0, (1, 2), (3, 2)),
        move(topic, 2, (1, 3), (1, 4)),
    )
    end = run(plan, ledger, gateway)
    assert end.finished is PlanState.FAILED
    assert end.cause == "not every move is done: 1 failed"
    moves = ledger.moves(plan.plan_id)
    assert moves[TopicPartition(topic, 0)].state is MoveState.DONE
    assert moves[TopicPartition(topic, 2)].state is MoveState.DONE
    refused = moves[TopicPartition(topic, 1)]
    assert refused.state is MoveState.FAILED
    assert "INVALID_REPLICATION_FACTOR (38): The replication factor is changed from 2 to 3" in (
        refused.detail
    )
    gone = moves[TopicPartition(topic + "-not", 0)]
    assert gone.state is MoveState.GONE
    assert "does not exist" in gone.detail


def test_a_worker_killed_in_mid_move_leaves_nothing_once_aborted_and_cleared_elsewhere(
    cluster: LocalCluster,
    gateway: OwnGateway,
    ledger: Ledger,
    ledger_url: str,
    approved: MakePlan,
    topics: Any,
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 4000)
    plan = approved(move(topic, 0, (1, 2), (4, 2), 4_000_000))
    set_up_throttle(plan, ledger, gateway, 100_000)
    run_until_killed("advance", "alter_reassignments", "after", plan, ledger_url, cluster, 100_000)
    assert TopicPartition(topic, 0) in gateway.list_reassignments()
    abort(plan.plan_id, ledger, gateway, "the run was marked failed")
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    wait_until(lambda: replicas_of(gateway, topic) == (1, 2), "the old replicas")
    assert gateway.list_reassignments() == {}
    resource = ledger.throttles(plan.plan_id)[-1].resource
    configs = gateway.describe_configs([resource], LISTS)[resource]
    assert isinstance(configs, dict)
    assert {value.source for value in configs.values()} == {"DEFAULT_CONFIG"}
    assert ledger.plan(plan.plan_id).state is PlanState.FAILED
    abort(plan.plan_id, ledger, gateway, "again")
    assert ledger.plan(plan.plan_id).cause == "the run was marked failed"


def test_a_pause_lets_what_is_in_flight_end_and_a_claim_goes_on(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
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


def test_a_broker_whose_disks_are_full_gets_nothing_until_they_have(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 200)
    plan = approved(move(topic, 0, (1, 2), (4, 2), 200_000))
    step = advance(plan, ledger, gateway, replace(FAST, min_free_disk_fraction=1.0))
    assert (step.admitted, step.holds) == (
        [],
        ["1 move waits: broker 4 has too little free space on its disks"],
    )
    assert run(plan, ledger, gateway).finished is PlanState.DONE
