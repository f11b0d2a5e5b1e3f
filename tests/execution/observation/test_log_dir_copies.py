"""Moves between log dirs in memory: what others do to them, crashes, cancels that come too late.

test_log_dir_moves_on_brokers shows them on real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from include.cluster.interface.port import ClusterPort
from include.domain.kafka import BrokerError, LogDir, Partial, ReplicaId
from include.domain.plan.move import Move
from include.domain.plan.plan import Plan
from include.domain.run.policy import Policy
from include.domain.run.states import MoveState, PlanState
from include.execution.actions import Cancel
from include.execution.advance import Advance, advance
from include.execution.control.cancel import abort
from include.execution.control.owed_log_dir_copies import stop_owed_copies
from include.ledger.store import Ledger
from tests.execution.observation.log_dir_cluster import A, B, C, LogDirCluster
from tests.execution.simulated_cluster import Crash
from tests.ledger.small_plans import move

POLICY = Policy(1000, metadata_grace_s=0)
THEIRS = move("x", 0, (1,), (3,), 1)
WITHIN = move("t", 0, (1, 2), (1, 2), 1000, (A, A), (B, "any"))
BOTH = move("t", 0, (1, 2), (1, 2), 1000, (A, A), (B, C))
ACROSS = move("t", 0, (1, 2), (3, 2), 1000, (A, A), (B, C))
ONE, TWO, THREE = (ReplicaId("t", 0, broker) for broker in (1, 2, 3))

Approved = Callable[..., Plan]


class Site:
    """A plan of one move that was admitted, on a cluster in memory."""

    def __init__(
        self, of: Move, ledger: Ledger, approved: Approved, memory: LogDirCluster | None = None
    ) -> None:
        self.plan = approved(of, cluster_id="sim")
        self.memory = memory or LogDirCluster([1, 2, 3, 4], [of])
        self.cluster = cast(ClusterPort, self.memory)
        self.ledger = ledger
        self.partition = of.partition

    def step(self) -> Advance:
        return advance(self.plan, self.ledger, self.cluster, POLICY)

    def end(self) -> Advance:
        """Step until the plan ends; whatever copies, arrives in between."""
        for _ in range(10):
            done = self.step()
            if done.finished is not None:
                return done
            self.memory.step(10_000)
            self.memory.finish_copies()
        raise AssertionError(f"the plan does not end: {done}")

    @property
    def state(self) -> MoveState:
        return self.ledger.view(self.plan.plan_id).moves[self.partition]

    @property
    def detail(self) -> str:
        return self.ledger.moves(self.plan.plan_id)[self.partition].detail


@pytest.fixture
def started(ledger: Ledger, approved: Approved) -> Callable[..., Site]:
    def make(of: Move = WITHIN, memory: LogDirCluster | None = None) -> Site:
        site = Site(of, ledger, approved, memory)
        assert site.step().admitted == [site.partition]
        return site

    return make


@pytest.fixture
def crashed(ledger: Ledger, approved: Approved) -> Callable[..., Site]:
    def make(memory: LogDirCluster, of: Move, at_call: int) -> Site:
        """A run that died at this request of its first step: 1 = before any, 2 = after the first.

        The first one names log dirs, the next one sends the reassignment.
        """
        memory.crash_at = at_call
        site = Site(of, ledger, approved, memory)
        with pytest.raises(Crash):
            site.step()
        return site

    return make


def test_bytes_between_log_dirs_count_in_the_ledger_and_in_progress(
    started: Callable[..., Site],
) -> None:
    site = started(BOTH)
    assert site.ledger.plan(site.plan.plan_id).bytes_total == 2000
    assert site.ledger.moves(site.plan.plan_id)[site.partition].bytes_to_move == 2000
    half_way = site.step().progress
    assert half_way is not None
    assert (half_way.sample.bytes_done, half_way.sample.bytes_total) == (1000, 2000)
    assert half_way.sample.messages_behind == 14
    end = site.end()
    assert end.finished is PlanState.DONE
    assert end.progress is not None
    assert end.progress.sample.bytes_done == end.progress.sample.bytes_total == 2000


@pytest.mark.parametrize("of", [WITHIN, BOTH, ACROSS], ids=["one", "both", "and brokers"])
def test_a_crash_at_any_request_neither_repeats_nor_loses_a_copy(
    of: Move, ledger: Ledger, approved: Approved
) -> None:
    for call in range(1, 50):
        site = Site(of, ledger, approved)
        site.memory.crash_at = call
        crashed = False
        while not ledger.plan(site.plan.plan_id).state.ended:
            try:
                site.end()
            except Crash:
                crashed = True
        assert ledger.plan(site.plan.plan_id).state is PlanState.DONE
        reported = site.memory.reported
        assert len(reported) == len(set(reported)), f"a log dir was named twice after call {call}"
        wanted = dict(zip(of.target, of.target_log_dirs, strict=True))
        for broker, path in wanted.items():
            if path != "any":
                assert site.memory.log_dir(ReplicaId("t", 0, broker)) == path
        assert len(ledger.reassignments(site.plan.plan_id)) == 1
        if not crashed:
            return
    raise AssertionError("there were more requests than expected")


def test_a_new_replica_that_lands_in_another_log_dir_is_moved_on(
    started: Callable[..., Site],
) -> None:
    site = started(ACROSS)
    site.memory.step(1000)
    site.step()
    assert site.memory.future == {THREE: B, TWO: C}
    assert site.end().finished is PlanState.DONE


@pytest.mark.parametrize(
    ("future", "detail"),
    [
        ({ONE: C}, "another client is moving it to /c on broker 1"),
        ({}, "nothing copies it to /b on broker 1 any more: another client has taken that back"),
    ],
)
def test_what_another_client_does_to_a_copy_is_recognised_and_not_fought(
    future: dict[ReplicaId, str], detail: str, started: Callable[..., Site]
) -> None:
    site = started()
    site.memory.future = dict(future)
    site.memory.reported.clear()
    assert site.end().finished is PlanState.FAILED
    assert site.state is (MoveState.SUPERSEDED if future else MoveState.CANCELLED)
    assert detail in site.detail
    assert site.memory.reported == []


def test_a_copy_whose_answer_was_lost_and_that_another_client_takes_back_is_not_begun_again(
    ledger: Ledger, approved: Approved
) -> None:
    site = Site(WITHIN, ledger, approved)
    site.memory.crash_at = 2
    with pytest.raises(Crash):
        site.step()
    assert site.memory.future == {ONE: B}
    site.step()
    site.memory.future = {}
    site.memory.reported.clear()
    assert site.end().finished is PlanState.FAILED
    assert (site.state, site.memory.reported) == (MoveState.CANCELLED, [])


def test_a_replica_that_another_client_has_moved_to_a_third_log_dir_stays_there(
    started: Callable[..., Site],
) -> None:
    site = started()
    site.memory.future, site.memory.log_dirs = {}, {ONE: C}
    assert site.end().finished is PlanState.FAILED
    assert (site.state, site.memory.reported[1:]) == (MoveState.SUPERSEDED, [])
    assert "another client has moved it to /c on broker 1" in site.detail


@pytest.mark.parametrize("to", [B, C])
def test_a_copy_that_another_client_has_begun_is_left_alone(
    to: str, ledger: Ledger, approved: Approved
) -> None:
    site = Site(WITHIN, ledger, approved)
    site.memory.future = {ONE: to}
    assert site.step().admitted == []
    assert (site.state, site.memory.reported) == (MoveState.SUPERSEDED, [])
    assert "another client" in site.detail


def test_a_copy_of_ours_is_taken_back_where_another_client_reassigns_the_partition(
    started: Callable[..., Site],
) -> None:
    site = started(BOTH)
    site.cluster.alter_reassignments({site.partition: [4, 2]})
    assert site.step().settled == {site.partition: MoveState.SUPERSEDED}
    assert (site.memory.future, site.memory.targets) == ({}, {site.partition: (4, 2)})


def test_a_cancel_takes_copies_back_and_a_copy_that_arrived_before_it_stays(
    started: Callable[..., Site],
) -> None:
    site = started(BOTH)
    abort(site.plan.plan_id, site.ledger, site.cluster, "enough")
    assert (site.state, site.memory.future) == (MoveState.CANCELLED, {})
    arrived = started(BOTH)
    arrived.memory.finish_copies()
    abort(arrived.plan.plan_id, arrived.ledger, arrived.cluster, "enough")
    assert (arrived.state, arrived.memory.future) == (MoveState.DONE, {})


class TooLate(LogDirCluster):
    """Its copies end between the look and the request that takes them back."""

    late = False

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaId, str]
    ) -> dict[ReplicaId, BrokerError | None]:
        if self.late:
            self.late = False
            self.finish_copies()
        return super().alter_replica_log_dirs(targets)


def test_a_copy_that_ends_just_before_its_cancel_is_not_copied_back(
    started: Callable[..., Site],
) -> None:
    memory = TooLate([1, 2], [BOTH])
    site = started(BOTH, memory)
    memory.late = True
    abort(site.plan.plan_id, site.ledger, site.cluster, "enough")
    assert (memory.future, memory.log_dirs) == ({}, {ONE: B, TWO: C})
    assert site.state is MoveState.DONE


class Refusing(LogDirCluster):
    """Some of its brokers answer a request with an error that passes."""

    silent: frozenset[int] = frozenset()

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaId, str]
    ) -> dict[ReplicaId, BrokerError | None]:
        heard = {r: path for r, path in targets.items() if r.broker not in self.silent}
        timed_out: Any = {
            replica: BrokerError(7, "REQUEST_TIMED_OUT") for replica in targets.keys() - heard
        }
        return timed_out | super().alter_replica_log_dirs(heard)


def test_a_move_that_a_broker_did_not_take_is_sent_again(
    ledger: Ledger, approved: Approved
) -> None:
    memory = Refusing([1, 2], [BOTH])
    memory.silent = frozenset({2})
    site = Site(BOTH, ledger, approved, memory)
    first = site.step()
    assert first.admitted == []
    assert "1 moves are to be sent again: REQUEST_TIMED_OUT" in first.holds[0]
    memory.silent = frozenset()
    assert site.end().finished is PlanState.DONE
    assert len(ledger.reassignments(site.plan.plan_id)) == 1


class Sized(LogDirCluster):
    """One of its log dirs holds a copy of the replica, and not two; of others no size is known."""

    def describe_log_dirs(self, *args: Any, **options: Any) -> Partial[list[LogDir]]:
        found = super().describe_log_dirs(*args, **options).value
        return Partial([_sized(log_dir) if log_dir.path == C else log_dir for log_dir in found])


def _sized(log_dir: LogDir) -> LogDir:
    used = sum(replica.size_bytes for replica in log_dir.replicas.values())
    return replace(log_dir, total_bytes=1500, usable_bytes=1500 - used)


MIXED = move("t", 0, (1, 2), (3, 2), 1000, (A, A), ("any", C))


def test_a_copy_that_arrived_before_the_rest_of_its_move_was_sent_needs_no_free_space_again(
    crashed: Callable[..., Site],
) -> None:
    memory = Sized([1, 2, 3], [MIXED])
    site = crashed(memory, MIXED, at_call=2)
    memory.finish_copies()
    assert (memory.log_dirs, memory.started) == ({TWO: C}, [])
    assert site.end().finished is PlanState.DONE
    assert memory.reported == [(TWO, C)]


def test_a_pause_waits_for_what_a_move_copies_though_the_rest_was_never_sent(
    ledger: Ledger, crashed: Callable[..., Site]
) -> None:
    memory = LogDirCluster([1, 2, 3], [MIXED])
    site = crashed(memory, MIXED, at_call=2)
    ledger.request_pause(site.plan.plan_id, "ann")
    waiting = site.step()
    assert (waiting.finished, waiting.holds) == (None, ["pause requested"])
    assert memory.future == {TWO: C}
    assert site.end().finished is PlanState.PAUSED
    assert (site.state, memory.started) == (MoveState.PENDING, [])
    ledger.withdraw_pause(site.plan.plan_id, "ann")
    ledger.claim(site.plan.plan_id)
    assert site.end().finished is PlanState.DONE
    assert memory.reported == [(TWO, C)]


TURNED = move("t", 0, (1, 2), (2, 1), 1000, (A, A), (C, "any"))


@pytest.mark.parametrize("of", [MIXED, TURNED], ids=["and brokers", "and their order"])
def test_a_move_whose_copy_has_arrived_starts_though_it_was_taken_back_in_between(
    of: Move, crashed: Callable[..., Site]
) -> None:
    """Where the log dir is full of that copy."""
    memory = Sized([1, 2, 3], [of, THEIRS])
    site = crashed(memory, of, at_call=2)
    memory.finish_copies()
    memory.targets[THEIRS.partition] = THEIRS.target
    site.step()
    assert site.state is MoveState.PENDING
    memory.step(10_000)
    assert site.end().finished is PlanState.DONE
    assert memory.reported == [(TWO, C)]


def test_a_move_that_may_be_copied_by_a_broker_that_is_away_waits_and_is_not_cancelled(
    crashed: Callable[..., Site],
) -> None:
    memory = LogDirCluster([1, 2, 3], [MIXED])
    site = crashed(memory, MIXED, at_call=1)
    memory.kill(2)
    for _ in range(3):
        assert not any(isinstance(action, Cancel) for action in site.step().actions)
    memory.live.add(2)
    assert site.end().finished is PlanState.DONE


def test_a_cancel_that_a_broker_did_not_take_leaves_the_move_in_flight_and_says_so(
    started: Callable[..., Site],
) -> None:
    memory = Refusing([1, 2], [BOTH])
    site = started(BOTH, memory)
    memory.silent = frozenset({2})
    site.ledger.request_cancel(site.plan.plan_id, "ann")
    assert site.step().finished is None
    assert (site.state, memory.future) == (MoveState.ADMITTED, {TWO: C})
    memory.silent = frozenset()
    assert site.step().finished is PlanState.CANCELLED
    assert memory.future == {}


def test_a_log_dir_that_is_refused_takes_the_others_of_its_move_back(
    ledger: Ledger, approved: Approved
) -> None:
    nowhere = move("t", 0, (1, 2), (1, 2), 1000, (A, A), (B, "/nowhere"))
    site = Site(nowhere, ledger, approved)
    assert site.step().finished is PlanState.FAILED
    assert (site.state, site.memory.future) == (MoveState.FAILED, {})
    assert site.detail == "LOG_DIR_NOT_FOUND (57): log dir /nowhere on broker 2"


@pytest.mark.parametrize("paused", [True, False])
def test_a_copy_of_a_dead_broker_is_owed_and_taken_back_when_it_returns(
    paused: bool, started: Callable[..., Site]
) -> None:
    site = started()
    plan_id, ledger = site.plan.plan_id, site.ledger
    site.memory.kill(1)
    if paused:
        policy = Policy(1000, metadata_grace_s=0, window_end=ledger.plan(plan_id).created_at)
        assert advance(site.plan, ledger, site.cluster, policy).finished is PlanState.PAUSED
    else:
        abort(site.plan.plan_id, ledger, site.cluster, "enough")
        assert "broker 1 is not alive, and goes on copying when it" in ledger.plan(plan_id).cause
    assert site.state is MoveState.ADMITTED

    def pay() -> Any:
        return stop_owed_copies(ledger, site.cluster, "sim")

    assert list(pay().owed) == [site.partition]
    site.memory.live.add(1)
    assert pay().taken_back == (site.partition,)
    assert site.memory.future == {}
    assert site.state is (MoveState.PENDING if paused else MoveState.CANCELLED)
    assert pay().taken_back == ()
