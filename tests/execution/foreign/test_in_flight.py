"""What is known of reassignments in flight, whichever client has started them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.kafka import OngoingReassignment, PartitionState, ReplicaId, TopicPartition
from rehome.domain.run.observation import Observation
from rehome.execution.foreign.flight_words import flight_line
from rehome.execution.foreign.in_flight import (
    Chosen,
    Flight,
    ReplicaThrottle,
    ThrottlesSeen,
    all_in_flight,
    describe,
)
from rehome.execution.observation.foreign_reassignments import (
    CancelOutlook,
    Hindrance,
    NeverEnds,
    hindrance,
)
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.ledger.base.records import Reassignment
from rehome.ledger.stores.by_cluster.seen_reassignments import KnownReassignment
from tests.execution.observed import T0

ONE = TopicPartition("orders", 7)
ENTRY = OngoingReassignment((4, 2, 3, 1), (4,), (1,))
STATE = PartitionState(2, (4, 2, 3, 1), frozenset({1, 2, 3}))
SIZES = {ReplicaId(*ONE, 2): 1000, ReplicaId(*ONE, 4): 400}
SEEN = Observation(
    T0, {ONE: STATE}, {ONE: ENTRY}, frozenset({1, 2, 3, 4}), topic_ids={"orders": "id"}, sizes=SIZES
)
KNOWN = KnownReassignment("s1", ENTRY, "id", T0 - timedelta(seconds=60), 1, T0, 200)
KNOWN = replace(KNOWN, read_at=T0 - timedelta(seconds=10))


def one(
    seen: Observation = SEEN,
    throttles: ThrottlesSeen = ThrottlesSeen(),  # noqa: B008 - frozen
    starts: tuple[Reassignment, ...] = (),
    **known: Any,
) -> Flight:
    """The one reassignment as it is described."""
    before = {ONE: replace(KNOWN, **known)} if known != {"none": True} else {}
    (found,) = describe([ONE], seen, throttles, starts, before)
    return found


def started(target: tuple[int, ...]) -> Reassignment:
    at = T0 - timedelta(seconds=30)
    return Reassignment(
        "r1", ONE, "id", at, at, 3, (1, 2, 3), target, None, None, None, "", "plan-1"
    )


def test_of_another_client_it_is_known_since_when_it_was_seen_and_not_who_it_is() -> None:
    found = one()
    assert (found.plan_id, found.identity, found.since) == (None, "s1", KNOWN.first_seen_at)
    assert (found.started_here, found.leader, found.first_leader) == (False, 2, 1)
    assert (found.topic_id, found.originals) == ("id", (2, 3, 1))
    assert "another client, which one is not known; first seen 2029-12-31" in flight_line(found)
    new = one(none=True)
    assert (new.since, new.identity, new.rate_bytes_per_s) == (None, None, None)


def test_what_a_plan_has_started_is_named_by_it_and_another_target_is_not_its() -> None:
    found = one(starts=(started((4, 2, 3)),))
    assert (found.plan_id, found.identity, found.first_leader) == ("plan-1", "r1", 3)
    assert found.started_here
    assert "of plan plan-1, started 2029-12-31 23:59:30 UTC" in flight_line(found)
    assert one(starts=(started((1, 2, 4)),)).plan_id is None


def test_bytes_rate_and_time_left_are_by_two_readings_and_else_unknown() -> None:
    found = one()
    assert (found.bytes_in_place, found.bytes_left) == (400, 600)
    assert (found.rate_bytes_per_s, found.eta_s) == (20.0, 30.0)
    first = one(none=True)
    assert (first.bytes_in_place, first.rate_bytes_per_s, first.eta_s) == (400, None, None)
    assert "rate unknown, time left unknown" in flight_line(first)
    at_rest = one(bytes_in_place=400)
    assert (at_rest.rate_bytes_per_s, at_rest.eta_s) == (0.0, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": {}},
        {"live_brokers": frozenset({1, 2, 3})},
        {"missing": {4: ErrorCode.BROKER_NOT_AVAILABLE.error("away")}},
        {"partitions": {}, "unreadable": {"orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED.error()}},
    ],
)
def test_what_a_broker_does_not_say_is_not_known(changes: dict[str, Any]) -> None:
    found = one(replace(SEEN, **changes))
    assert (found.bytes_in_place, found.bytes_left, found.rate_bytes_per_s) == (None, None, None)
    assert "how far it is, is not known" in flight_line(found)


def test_the_throttle_is_what_is_listed_and_has_a_rate() -> None:
    lists = {("orders", LEADER_REPLICAS): ["7:2"], ("orders", FOLLOWER_REPLICAS): ["*"]}
    rates = {(2, LEADER_RATE): 5_000, (4, FOLLOWER_RATE): None}
    found = one(throttles=ThrottlesSeen(lists, rates))
    leader, new = found.throttles
    assert leader == ReplicaThrottle(2, leads=True, rate_bytes_per_s=5_000, is_known=True)
    assert new == ReplicaThrottle(4, leads=False, rate_bytes_per_s=None, is_known=True)
    assert "throttle: leader 2 5 kB/s, broker 4 none" in flight_line(found)
    listed_elsewhere = {key: ["6:2", "6:4"] for key in lists}
    found = one(throttles=ThrottlesSeen(listed_elsewhere, {}))
    assert {each.rate_bytes_per_s for each in found.throttles} == {None}
    assert all(each.is_known for each in found.throttles)
    unread = one(throttles=ThrottlesSeen({}, rates))
    assert [each.is_known for each in unread.throttles] == [False, True]
    assert "leader 2 not known" in flight_line(unread)


SHRINKS = OngoingReassignment((2, 3, 1), (), (1,))
TAKEN, REFUSED = CancelOutlook.TAKEN, CancelOutlook.REFUSED


@pytest.mark.parametrize(
    ("entry", "live", "leader", "isr", "expected", "ends"),
    [
        (
            *(ENTRY, (1, 2, 3), 2, (1, 2, 3)),
            Hindrance(NeverEnds.TARGET_AWAY, (4,), TAKEN, (2, 3, 1)),
            "ends when that broker is back, or by a cancel: by the client",
        ),
        (
            *(OngoingReassignment((4, 5, 1), (4, 5), (1,)), (2, 4), 4, (4,)),
            Hindrance(NeverEnds.TARGET_AWAY, (5,), REFUSED, (4,)),
            "refuses a cancel, unless the topic allows an unclean leader election. Kafka's own "
            "tool ends it by another target: kafka-reassign-partitions.sh --execute --additional, "
            "to as many live brokers as the partition is to have replicas, among them broker 4 "
            "(in sync) and at least one that has no replica of it.",
        ),
        (
            *(OngoingReassignment((4, 5, 6, 7, 1), (4, 5, 6, 7), (1,)), (1, 4, 5), 1, (1, 4, 5)),
            Hindrance(NeverEnds.TARGET_AWAY, (6, 7), TAKEN, (4, 5, 1)),
            "it adds replicas on brokers 6 and 7, which are not alive. It ends when those brokers "
            "are back, or by a cancel",
        ),
        (
            *(OngoingReassignment((2, 3, 4, 1), (), (1,)), (1, 2), 2, (1, 2)),
            Hindrance(NeverEnds.KEPT_AWAY, (3, 4), TAKEN, (2, 1)),
            "and brokers 3 and 4 are not alive. It ends when those brokers are back",
        ),
        (
            *(ENTRY, (4,), None, (1,)),
            Hindrance(NeverEnds.NO_SOURCE, (2, 3, 1), TAKEN),
            "no leader to copy from: brokers 2, 3 and 1 are not alive. It ends when a broker with "
            "a complete replica is back. A cancel leaves the partition without a leader until "
            "then, too.",
        ),
        (
            *(ENTRY, (1, 2, 3, 4), None, (4,)),
            Hindrance(NeverEnds.NO_SOURCE, (), REFUSED),
            "until one is, the controller refuses a cancel, unless the topic allows an unclean "
            "leader election.",
        ),
        (
            *(OngoingReassignment((1, 4), (4,), (4,)), (1, 4), 1, (1,)),
            Hindrance(NeverEnds.SENT_BACK, (4,), TAKEN, (1,)),
            "removes broker 4. A cancel ends it: by the client",
        ),
        (
            *(SHRINKS, (1, 2), 2, (1, 2)),
            Hindrance(NeverEnds.KEPT_AWAY, (3,), TAKEN, (2, 1)),
            "in sync, and broker 3 is not alive. It ends when that broker is back, or by a cancel",
        ),
    ],
)
def test_what_can_never_end_says_so_and_what_ends_it(
    entry: OngoingReassignment,
    live: tuple[int, ...],
    leader: int | None,
    isr: tuple[int, ...],
    expected: Hindrance,
    ends: str,
) -> None:
    seen = replace(
        SEEN,
        ongoing={ONE: entry},
        live_brokers=frozenset(live),
        partitions={ONE: PartitionState(leader, entry.replicas, frozenset(isr))},
    )
    found = one(seen)
    assert found.hindrance == expected
    assert "It cannot end: " in flight_line(found)
    assert ends in flight_line(found)
    assert one().hindrance is None
    unread = one(replace(seen, partitions={}))
    if unread.hindrance is not None:
        assert flight_line(unread).endswith("Whether a cancel ends it is not known.")


def test_one_that_shrinks_and_still_copies_may_end_where_a_replica_that_stays_is_away() -> None:
    """Older brokers end it when all is copied; the others show it then as in flight still."""
    entry = OngoingReassignment((2, 4, 1, 3), (4,), (1, 3))
    live = frozenset({1, 3, 4})

    def hindered(*isr: int) -> Hindrance | None:
        return hindrance(entry, live, PartitionState(1, entry.replicas, frozenset(isr)))

    assert hindered(1, 3) is None
    assert hindered(1, 3, 4) == Hindrance(NeverEnds.KEPT_AWAY, (2,), TAKEN, (4, 1, 3))


def test_they_are_chosen_by_topics_partitions_and_brokers() -> None:
    other, own = TopicPartition("logs-a", 0), TopicPartition("__consumer_offsets", 3)
    away = OngoingReassignment((5, 6), (5,), ())
    ongoing = {ONE: ENTRY, other: away, own: away}
    assert Chosen().among(ongoing) == [own, other, ONE]
    assert Chosen(topics=("logs-*", "orders:3-9")).among(ongoing) == [other, ONE]
    assert Chosen(topics=("orders:1",)).among(ongoing) == []
    assert Chosen(topics=("*",)).among(ongoing) == [other, ONE]
    assert Chosen(topics=("__consumer_offsets",)).among(ongoing) == [own]
    assert Chosen(brokers=frozenset({1, 9})).among(ongoing) == [ONE]
    assert Chosen(partitions=frozenset({other})).among(ongoing) == [other]


def test_the_ledger_is_told_of_everything_that_is_in_flight() -> None:
    seen = all_in_flight(SEEN)[ONE]
    assert (seen.entry, seen.topic_id, seen.leader, seen.bytes_in_place) == (ENTRY, "id", 2, 400)
