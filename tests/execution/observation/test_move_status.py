"""The status of a move: the quick check of waiting moves agrees with the full one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rehome.domain.kafka import OngoingReassignment, PartitionState, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.execution.observation.log_dir_copies import where_copied_from
from rehome.execution.observation.move_status import Fate, fate, is_untouched
from tests.examples import few_and_many, property_of
from tests.ledger.small_plans import move

BROKERS = (1, 2, 3)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
REPLICAS = st.sampled_from([(1, 2), (2, 1), (1, 3), (3, 2)])
LOG_DIRS = st.sampled_from(["/a", "/b"])


@st.composite
def readings(draw: st.DrawFn) -> tuple[Move, Observation]:
    """A move, and what is seen of its partition."""
    current, target = draw(REPLICAS), draw(REPLICAS)
    log_dirs = draw(st.sampled_from([(), ("/a", "/b")]))
    made = replace(
        move("t", 0, current, target, target_log_dirs=log_dirs),
        topic_id=draw(st.sampled_from(["", "one"])),
    )
    at = made.partition
    found = draw(st.one_of(st.none(), st.just(current), REPLICAS))
    replicas = [ReplicaId(*at, broker) for broker in BROKERS]
    return made, Observation(
        NOW,
        {} if found is None else {at: PartitionState(1, found, frozenset(found))},
        draw(st.sampled_from([{}, {}, {at: OngoingReassignment((3, 2, 1), (3,), (1,))}])),
        frozenset(BROKERS),
        topic_ids=draw(st.sampled_from([{}, {"t": "one"}, {"t": "another"}])),
        log_dirs={replica: draw(LOG_DIRS) for replica in replicas},
        future_log_dirs=draw(st.dictionaries(st.sampled_from(replicas), LOG_DIRS, max_size=1)),
    )


@pytest.mark.slow
@few_and_many(300, 5000)
def test_a_move_that_is_said_to_be_untouched_would_have_been_found_so(examples: int) -> None:
    @property_of(examples)
    @given(readings())
    def holds(reading: tuple[Move, Observation]) -> None:
        made, seen = reading
        found, _ = fate(made, seen, NOW, sent_at=None, grace_s=0)
        short = is_untouched(made, seen)
        event(f"{short}, {found.name}")
        if short:
            assert found is Fate.UNTOUCHED
            assert not where_copied_from(made, seen)

    holds()


def test_a_partition_as_it_was_planned_from_is_untouched() -> None:
    made = move("t", 0, (1, 2), (1, 3))
    there = {made.partition: PartitionState(1, (1, 2), frozenset({1, 2}))}
    assert is_untouched(made, Observation(NOW, there, {}, frozenset(BROKERS)))
