"""Copies that producers outrun are told from those that are slow, held up, or only silent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rehome.domain.kafka import PartitionState
from rehome.domain.run.flows import BrokerFlow, FlowSample
from rehome.execution.admission.slots import Direction
from rehome.execution.progress.outpaced import find_outpaced, may_be_outpaced
from tests.ledger.small_plans import move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
MOVE = move("t", 0, (1, 2), (3, 2))
STATES = {MOVE.partition: PartitionState(1, (1, 2, 3), frozenset({1, 2}))}
THROTTLE, EFFICIENCY = 1_000_000, 0.9


def flows(*spans: tuple[int, int], every_s: int = 10) -> list[FlowSample]:
    """Of each span what was copied and what the source has grown by, per second."""
    found = []
    for number, (copied, grown) in enumerate(spans):
        since = T0 + timedelta(seconds=number * every_s)
        both = [
            BrokerFlow(side.value, broker, copied * every_s, 10**9, 1, grown * every_s)
            for side, broker in ((Direction.IN, 3), (Direction.OUT, 1))
        ]
        found.append(FlowSample(since, since + timedelta(seconds=every_s), tuple(both)))
    return found


def where(spans: list[FlowSample]) -> dict[tuple[str, int], bool]:
    found = find_outpaced(spans, [MOVE], STATES, THROTTLE, EFFICIENCY)
    return {(each.direction.value, each.broker): each.lasts for each in found}


def test_what_producers_take_counts_twice_where_a_follower_in_sync_fetches_it_too() -> None:
    (sending,) = find_outpaced(
        flows(*[(100_000, 450_000)] * 5), [MOVE], STATES, THROTTLE, EFFICIENCY
    )
    assert (sending.direction, sending.broker, sending.lasts) == (Direction.OUT, 1, True)
    assert sending.inflow_bytes_per_s == 900_000
    assert sending.above_bytes_per_s == pytest.approx(1_000_000)
    assert "producers bring 900 kB/s" in str(sending)


def test_both_ends_are_named_where_the_inflow_alone_is_too_much() -> None:
    assert where(flows(*[(0, 1_500_000)] * 5)) == {("in", 3): True, ("out", 1): True}


def test_the_time_left_is_unknown_before_people_are_told() -> None:
    assert where(flows((1_700_000, 800_000), (0, 800_000))) == {}
    lately = flows(*[(2_500_000, 800_000)] * 3, *[(0, 800_000)] * 2)
    assert where(lately) == {("in", 3): False, ("out", 1): False}


@pytest.mark.parametrize(
    "spans",
    [
        [(810_000, 800_000)] * 6,  # it gains, however slowly
        [(0, 100_000)] * 6,  # it is held up by something else: that is a stall
        [(0, 0)] * 6,
        [(0, 1_500_000)],  # one silence of a quota's window says nothing
        [(0, 800_000), (1_700_000, 800_000)] * 3,
    ],
)
def test_nothing_else_counts_as_outpaced(spans: list[tuple[int, int]]) -> None:
    assert where(flows(*spans)) == {}


def test_a_broker_that_has_not_answered_between_is_not_judged() -> None:
    spans = flows(*[(0, 1_500_000)] * 5)
    assert where([*spans[:3], *spans[4:]]) == {}


def test_only_what_gained_nothing_is_looked_at() -> None:
    assert [may_be_outpaced(each) for each in flows((0, 1), (2, 1), (0, 0))] == [True, False, False]
