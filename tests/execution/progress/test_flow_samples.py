"""Bytes that each broker has copied between two observations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rehome.domain.kafka import (
    BrokerError,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.domain.run.flows import BrokerFlow, RateChange, RateReason
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import PlanState
from rehome.execution.estimate.rate_regression import Trend
from rehome.execution.progress.flow_samples import Copied, flow_sample, throttle_text
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


def test_what_the_throttle_allowed_is_counted_from_what_was_left_at_the_poll_before() -> None:
    """Broker 1 sends two copies in five seconds at 90 of 100 B/s: half of that to each."""
    other = move("t", 1, (1, 2), (4, 2), 1000)
    state = PartitionState(1, (4, 2, 1), frozenset({1, 2}))
    seen = replace(
        SEEN,
        partitions={**SEEN.partitions, other.partition: state},
        sizes={**SEEN.sizes, COPY: 1000},
        live_brokers=frozenset({1, 2, 3, 4}),
    )
    known = Trend(100, 0.9)

    def allowed(*moves: Move, was: int) -> dict[tuple[str, int], int]:
        before = {COPY: Copied(was, 1000)}
        sample = flow_sample(moves, seen, before, T0, trend=known)
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


def test_nothing_is_reported_of_the_first_poll() -> None:
    assert flow_sample([MOVE], SEEN, {}, None) is None


def test_brokers_that_share_a_copy_with_a_silent_broker_are_left_out_of_two_polls() -> None:
    """What has come from there is of a longer time then. Of the others all is known."""
    elsewhere = move("t", 1, (2, 1), (4, 1), 1000)
    state = PartitionState(2, (4, 1, 2), frozenset({1, 2}))
    seen = replace(SEEN, partitions={**SEEN.partitions, elsewhere.partition: state})

    def reported(missing: tuple[int, ...], silent: frozenset[int]) -> list[tuple[str, int]]:
        errors = {broker: BrokerError(7, "REQUEST_TIMED_OUT") for broker in missing}
        looked = replace(seen, missing=errors)
        sample = flow_sample([MOVE, elsewhere], looked, {}, T0, silent=silent)
        assert sample is not None
        assert sample.silent == missing
        return [(flow.direction, flow.broker) for flow in sample.flows]

    assert reported((), frozenset()) == [("in", 3), ("in", 4), ("out", 1), ("out", 2)]
    assert reported((3,), frozenset()) == [("in", 4), ("out", 2)]
    assert reported((), frozenset({3})) == [("in", 4), ("out", 2)]


def test_a_new_leader_has_sent_nothing_of_the_copy_that_made_it_one() -> None:
    """Broker 1 led and is removed; when the copy is complete broker 3 is elected."""
    led_by_3 = PartitionState(3, (3, 2), frozenset({2, 3}))
    ended = replace(SEEN, partitions={TP: led_by_3}, ongoing={})
    sample = flow_sample([MOVE], ended, {COPY: Copied(500, 1000)}, T0, trend=Trend(100, 1.0))
    assert sample is not None
    copied = {(f.direction, f.broker): (f.copied_bytes, f.allowed_bytes) for f in sample.flows}
    assert copied["in", 3] == copied["out", 1] == (200, 500)
    assert ("across", 3) not in copied


def test_a_copy_between_log_dirs_counts_until_it_has_taken_the_old_ones_place() -> None:
    dirs = {"current_log_dirs": ("/a",), "target_log_dirs": ("/b",)}
    two = [move("t", number, (3,), (3,), 1000, **dirs) for number in (0, 1)]
    one, other = (ReplicaId(*m.partition, 3) for m in two)
    seen = replace(
        SEEN,
        partitions={m.partition: PartitionState(3, (3,), frozenset({3})) for m in two},
        ongoing={},
        sizes={one: 1000, other: 1000},
        log_dirs={one: "/b", other: "/a"},
        future_sizes={other: 400},
        future_log_dirs={other: "/b"},
    )
    before = {one: Copied(900, 1000), other: Copied(0, 1000)}
    sample = flow_sample(two, seen, before, T0, trend=Trend(100, 1.0))
    assert sample is not None
    assert sample.flows == (BrokerFlow("across", 3, 500, 600, 1, 0, 500),)


def test_a_copy_that_has_shrunk_is_not_counted() -> None:
    """Retention has deleted a segment of it: 300 bytes more than have come since."""
    cut = flow_sample([MOVE], SEEN, {COPY: Copied(1000, 1400)}, T0, trend=Trend(100, 0.9))
    assert cut is not None
    assert {(f.copied_bytes, f.grown_bytes, f.allowed_bytes) for f in cut.flows} == {(0, 0, 0)}


def test_a_leader_that_is_elected_while_other_copies_go_on_is_what_they_are_read_from() -> None:
    """Broker 3 has caught up and leads; broker 4 still copies."""
    two = move("t", 0, (1, 2), (3, 4, 2), 1000)
    state = PartitionState(3, (3, 4, 2, 1), frozenset({1, 2, 3}))
    sizes = {ReplicaId(*TP, broker): size for broker, size in ((1, 1000), (3, 1000), (4, 700))}
    seen = replace(SEEN, partitions={TP: state}, sizes=sizes, live_brokers=frozenset({1, 2, 3, 4}))
    before = {COPY: Copied(1000, 1000), ReplicaId(*TP, 4): Copied(500, 1000)}
    sample = flow_sample([two], seen, before, T0, trend=Trend(100, 1.0))
    assert sample is not None
    copied = {(f.direction, f.broker): (f.copied_bytes, f.allowed_bytes) for f in sample.flows}
    assert copied == {("in", 4): (200, 500), ("out", 3): (200, 500)}


def test_dead_brokers_take_no_share_of_what_others_are_allowed() -> None:
    other = move("t", 1, (1, 2), (4, 2), 1000)
    state = PartitionState(1, (4, 2, 1), frozenset({1, 2}))
    seen = replace(SEEN, partitions={**SEEN.partitions, other.partition: state})
    dead = flow_sample([MOVE, other], seen, {COPY: Copied(0, 1000)}, T0, trend=Trend(100, 1.0))
    assert dead is not None
    allowed = {(flow.direction, flow.broker): flow.allowed_bytes for flow in dead.flows}
    assert allowed == {("in", 3): 500, ("in", 4): 0, ("out", 1): 500}


def test_the_throttle_is_reported_in_one_line() -> None:
    change = RateChange(T0, 1_050_000, 500_000, 1_000_000, RateReason.STRAIN, "others suffer")
    view = LedgerView(PlanState.RUNNING, {}, rates=(change,))
    sample = flow_sample([MOVE], SEEN, {}, T0)
    assert throttle_text(view, sample) == (
        "Throttle: 500 kB/s of 1 MB/s asked for wanted, the rate set is 1.05 MB/s (strain), "
        "the busiest delivers 140 B/s"
    )
    assert throttle_text(LedgerView(PlanState.RUNNING, {}), sample) == ""
