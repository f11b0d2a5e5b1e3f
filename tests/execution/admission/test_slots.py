"""Slots that moves take: counting many at once gives the same as one by one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.kafka import PartitionState, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import Pace
from rehome.execution.admission.slots import Ends, InUse, slots_of
from tests.examples import few_and_many, property_of
from tests.ledger.small_plans import move

BROKERS = (1, 2, 3, 4, 5)
SIZES = st.integers(0, 3000)


@st.composite
def observed_moves(draw: st.DrawFn) -> tuple[list[Move], Observation]:
    """Moves, what is known of the leaders and sizes of their partitions."""
    moves, partitions, sizes = [], {}, {}
    for number in range(draw(st.integers(0, 8))):
        brokers = draw(st.permutations(BROKERS))
        current = tuple(brokers[: draw(st.integers(1, 3))])
        target = tuple(draw(st.permutations(BROKERS))[: draw(st.integers(1, 3))])
        log_dirs = draw(st.sampled_from([(), tuple("/a" for _ in target)]))
        made = move("t", number, current, target, draw(SIZES), target_log_dirs=log_dirs)
        leader = draw(st.sampled_from([*current, None]))
        if draw(st.integers(0, 9)):
            partitions[made.partition] = PartitionState(leader, current, frozenset(current))
        for broker in draw(st.sets(st.sampled_from(BROKERS))):
            sizes[ReplicaId(*made.partition, broker)] = draw(SIZES)
        moves.append(made)
    now = datetime(2030, 1, 1, tzinfo=UTC)
    return moves, Observation(now, partitions, {}, frozenset(BROKERS), sizes=sizes)


@pytest.mark.slow
@few_and_many(100, 5000)
def test_many_moves_at_once_take_what_each_takes_alone(examples: int) -> None:
    @property_of(examples)
    @given(
        observed_moves(),
        observed_moves(),
        st.sampled_from([0.0, 100.0, 1000.0, 7000.0]),
        st.sampled_from([0, 50, 2000]),
    )
    def holds(
        first: tuple[list[Move], Observation],
        then: tuple[list[Move], Observation],
        whole_bytes: float,
        small_bytes: int,
    ) -> None:
        moves, _ = first
        ends = [(made, Ends(made)) for made in moves]
        for _, seen in (first, then):  # leaders change from one poll to the next
            pace = Pace(whole_bytes, reaction_s=1, max_moves_per_broker=1, small_bytes=small_bytes)
            at_once, alone = InUse(pace), InUse(pace)
            at_once.add_all(ends, seen)
            for made in moves:
                alone.add(made, slots_of(made, seen))
            assert at_once.slots == alone.slots
            assert (at_once.moves, at_once.small) == (alone.moves, alone.small)
            assert at_once.to_dir == alone.to_dir

    holds()
