"""Plans in a ledger of this test's own, with what polls have seen of their copies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from rehome.domain.kafka import OngoingReassignment, PartitionState, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState
from rehome.execution.admission.backlog import Backlog
from rehome.execution.progress.progress import record_progress
from rehome.ledger.store import Ledger
from tests.execution.observed import POLICY
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan, move

MOVES = (
    move("a", 0, (1, 2), (3, 2), 1000),
    move("b", 0, (1, 2), (3, 2), 500),
    move("c", 0, (1, 2), (3, 2), 200),
)
"""Each is copied from broker 1 to broker 3."""


def started(ledger: Ledger, tmp_path: Path) -> Plan:
    """A plan of the three moves that runs."""
    plan = make_plan("p1", *MOVES)
    ledger.create_plan(plan, {}, (tmp_path / "away").as_uri(), "run-1", "ann", "k", "dag")
    ledger.approve("p1", plan.plan_hash, "ann")
    ledger.acquire_lease("c1", "dag/run-1", 60)
    ledger.claim("p1")
    return plan


def admit(ledger: Ledger, clock: SetClock, *moves: Move) -> None:
    """Start moves as a step does."""
    ledger.admit("p1", moves, _seen(clock(), {}), 1000)
    ledger.mark_sent("p1", [each.partition for each in moves])


def poll(
    ledger: Ledger, plan: Plan, clock: SetClock, copies: Mapping[Move, tuple[int, int]]
) -> None:
    """Record a poll, five seconds later, as the trigger does.

    :param copies: move → what its source holds, and what its copy does.
    """
    clock.pass_s(5)
    seen, view = _seen(clock(), copies), ledger.view_of_open("p1")
    backlog = Backlog()
    backlog.follow(plan.moves, view, seen)
    record_progress(plan, view, ledger, seen, POLICY, backlog)


def settle(ledger: Ledger, state: MoveState, *moves: Move) -> None:
    """Record what became of moves."""
    for each in moves:
        ledger.settle("p1", each.partition, state, "as the test says")


def _seen(now: datetime, copies: Mapping[Move, tuple[int, int]]) -> Observation:
    sizes, partitions = {}, {}
    for each in MOVES:
        source, copy = copies.get(each, (each.size_bytes, 0))
        whole = frozenset({1, 2, 3} if copy >= source else {1, 2})
        partitions[each.partition] = PartitionState(1, (3, 2, 1), whole)
        sizes[ReplicaId(*each.partition, 1)] = source
        if copy:
            sizes[ReplicaId(*each.partition, 3)] = copy
    ongoing = {each.partition: OngoingReassignment((3, 2, 1), (3,), (1,)) for each in MOVES}
    return Observation(now, partitions, ongoing, frozenset({1, 2, 3}), sizes=sizes)
