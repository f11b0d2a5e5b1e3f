"""Copies between log dirs that are cancelled, paused, or owed because their broker is away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rehome.domain.kafka import BrokerError, ReplicaId
from rehome.domain.run.ledger_view import LONGEST_BETWEEN_S
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import Cancel
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.control.owed_log_dir_copies import stop_owed_copies
from rehome.ledger.store import Ledger
from tests.execution.observation.log_dirs.log_dir_cluster import A, B, C, LogDirCluster
from tests.execution.observation.log_dirs.log_dir_site import (
    BOTH,
    MIXED,
    ONE,
    TWO,
    Approved,
    Refusing,
    Site,
)
from tests.ledger.small_plans import move


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
    """Its copies end between the reading and the request that takes them back."""

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
    assert site.step(after_s=LONGEST_BETWEEN_S).finished is PlanState.CANCELLED
    assert memory.future == {}


def test_a_log_dir_that_is_refused_takes_the_others_of_its_move_back(
    ledger: Ledger, approved: Approved
) -> None:
    nowhere = move("t", 0, (1, 2), (1, 2), 1000, (A, A), (B, "/nowhere"))
    site = Site(nowhere, ledger, approved)
    site.step()
    assert (site.state, site.memory.future) == (MoveState.FAILED, {})
    assert site.detail == "LOG_DIR_NOT_FOUND (57): log dir /nowhere on broker 2"
    assert site.step().finished is PlanState.FAILED


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
    before = site.state
    assert before is MoveState.ADMITTED

    def pay() -> Any:
        return stop_owed_copies(ledger, site.cluster, "sim")

    assert list(pay().owed) == [site.partition]
    site.memory.live.add(1)
    assert pay().taken_back == (site.partition,)
    assert site.memory.future == {}
    assert site.state is (MoveState.PENDING if paused else MoveState.CANCELLED)
    assert pay().taken_back == ()
