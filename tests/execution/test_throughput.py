"""What each broker has copied between two looks, and how it is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from include.cluster.model import (
    BrokerError,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicPartition,
)
from include.execution.model import LedgerView, Observation, PlanState
from include.execution.rates import BrokerFlow, RateChange, RateReason
from include.execution.throughput import Copied, flow_sample, throttle_text
from include.execution.trend import Trend
from include.planning.plan import Move
from tests.ledger.small_plans import move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
TP = TopicPartition("t", 0)
MOVE = move("t", 0, (1, 2), (3, 2), 1000)
COPY = ReplicaId(*TP, 3)
SEEN = Observation(
    taken_at=T0 + timedelta(seconds=5),
    partitions={TP: PartitionState(1, (3, 2, 1), frozenset({1, 2}))},
    ongoing={TP: OngoingReassignment((3, 2, 1), (3,), (1,))},
    live_brokers=frozenset({1, 2, 3}),
    sizes={ReplicaId(*TP, 1): 1100, ReplicaId(*TP, 2): 1100, COPY: 700},
)


def test_a_copy_loads_its_destination_and_the_leader_that_it_reads_from() -> None:
    sample = flow_sample([MOVE], SEEN, {COPY: Copied(500, 1000)}, T0)
    assert sample is not None
    assert sample.flows == (
        BrokerFlow("in", 3, copied_bytes=200, left_bytes=400, copies=1, grown_bytes=100),
        BrokerFlow("out", 1, copied_bytes=200, left_bytes=400, copies=1, grown_bytes=100),
    )
    assert sample.busiest_bytes_per_s == 40.0


def test_what_the_throttle_allowed_is_counted_from_what_was_left_at_the_look_before() -> None:
    """Broker 1 sends two copies in five seconds at 90 of 100 B/s: half of that to each."""
    other = move("t", 1, (1, 2), (4, 2), 1000)
    state = PartitionState(1, (4, 2, 1), frozenset({1, 2}))
    seen = replace(SEEN, partitions={**SEEN.partitions, other.partition: state})
    known = Trend(100, 0.9)

    def allowed(*moves: Move, was: int) -> dict[tuple[str, int], int]:
        before = {COPY: Copied(was, 1000)}
        sample = flow_sample(moves, seen, before, T0, known=known)
        assert sample is not None
        return {(flow.direction, flow.broker): flow.allowed_bytes for flow in sample.flows}

    assert allowed(MOVE, was=0) == {("in", 3): 500, ("out", 1): 500}
    assert allowed(MOVE, other, was=0) == {("in", 3): 250, ("in", 4): 250, ("out", 1): 500}
    # Of the first copy only 90 bytes were left: all of the rest could go to broker 4.
    nearly = allowed(MOVE, other, was=910)
    assert nearly == {("in", 3): 100, ("in", 4): 400, ("out", 1): 500}


def test_a_copy_that_has_just_begun_or_just_ended_counts_whole() -> None:
    begun = flow_sample([MOVE], SEEN, {}, T0)
    assert begun is not None
    assert begun.flows[0].copied_bytes == 700
    in_sync = PartitionState(1, (3, 2), frozenset({1, 2, 3}))
    ended = replace(SEEN, partitions={TP: in_sync}, ongoing={}, sizes={})
    whole = flow_sample([MOVE], ended, {COPY: Copied(700)}, T0)
    assert whole is not None
    assert whole.flows[0].copied_bytes == 300


def test_nothing_is_told_of_the_first_look_or_of_one_that_a_broker_did_not_answer() -> None:
    assert flow_sample([MOVE], SEEN, {}, None) is None
    silent = replace(SEEN, missing={3: BrokerError(7, "REQUEST_TIMED_OUT")})
    assert flow_sample([MOVE], silent, {}, T0) is None


def test_the_throttle_is_told_in_one_line() -> None:
    change = RateChange(T0, 1_050_000, 500_000, 1_000_000, RateReason.STRAIN, "others suffer")
    view = LedgerView(PlanState.RUNNING, {}, rates=(change,))
    sample = flow_sample([MOVE], SEEN, {}, T0)
    assert throttle_text(view, sample) == (
        "Throttle: 500 kB/s of 1 MB/s asked for wanted, brokers are told 1.05 MB/s (strain), "
        "the busiest delivers 140 B/s"
    )
    assert throttle_text(LedgerView(PlanState.RUNNING, {}), sample) == ""
