"""Observations and ledger views made by hand, for tests of `decide`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from rehome.domain.kafka import OngoingReassignment, PartitionState, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import BrokerFlow, FlowSample
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
POLICY = Policy(1000, throttle_efficiency=1.0)
TP = [TopicPartition("t", number) for number in range(10)]
ONE = make_plan("p", move("t", 0, (1, 2), (3, 2), 5000))


def seen(plan: Plan, *, live: tuple[int, ...] = (1, 2, 3, 4), **changes: Any) -> Observation:
    partitions = {
        m.partition: PartitionState(m.current[0], m.current, frozenset(m.current))
        for m in plan.moves
    }
    return replace(Observation(T0, partitions, {}, frozenset(live)), **changes)


def running(plan: Plan, **changes: Any) -> LedgerView:
    moves = {m.partition: MoveState.PENDING for m in plan.moves}
    return replace(LedgerView(PlanState.RUNNING, moves, last_progress_at=T0), **changes)


def flying(m: Move) -> OngoingReassignment:
    return OngoingReassignment((*m.target, *m.removing), m.adding, m.removing)


def in_flight(plan: Plan) -> tuple[LedgerView, Observation]:
    view = running(
        plan,
        moves={m.partition: MoveState.ADMITTED for m in plan.moves},
        sent={m.partition: T0 for m in plan.moves},
    )
    return view, seen(plan, ongoing={m.partition: flying(m) for m in plan.moves})


def flows(*points: tuple[float, int], throttle: int = 100) -> list[FlowSample]:
    """What broker 3 receives between polls at these seconds, with these bytes left to it then."""
    return [
        FlowSample(
            T0 + timedelta(seconds=since),
            T0 + timedelta(seconds=at),
            (BrokerFlow("in", 3, before - left, left, 1, 0, round(throttle * (at - since))),),
        )
        for (since, before), (at, left) in pairwise(points)
    ]
