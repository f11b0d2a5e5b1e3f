"""Copies between log dirs in memory: crashes, other clients, free space.

test_log_dir_copies_on_brokers has them on real brokers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.kafka import LogDir, Partial, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.store import Ledger
from tests.execution.observation.log_dirs.log_dir_cluster import A, B, C, LogDirCluster
from tests.execution.observation.log_dirs.log_dir_site import (
    ACROSS,
    BOTH,
    MIXED,
    ONE,
    THEIRS,
    THREE,
    TWO,
    WITHIN,
    Approved,
    Refusing,
    Site,
)
from tests.execution.simulated_cluster import Crash
from tests.ledger.small_plans import move


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


@pytest.mark.slow
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
def test_changes_of_a_copy_by_another_client_are_recognised_and_accepted(
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


def test_a_move_that_a_broker_did_not_take_is_sent_again(
    ledger: Ledger, approved: Approved
) -> None:
    memory = Refusing([1, 2], [BOTH])
    memory.silent = frozenset({2})
    site = Site(BOTH, ledger, approved, memory)
    first = site.step()
    assert first.admitted == []
    assert "1 move is to be sent again: REQUEST_TIMED_OUT" in first.holds[0]
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


def test_a_copy_that_arrived_before_the_rest_of_its_move_was_sent_needs_no_free_space_again(
    crashed: Callable[..., Site],
) -> None:
    memory = Sized([1, 2, 3], [MIXED])
    site = crashed(memory, MIXED, at_call=2)
    memory.finish_copies()
    assert (memory.log_dirs, memory.started) == ({TWO: C}, [])
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
