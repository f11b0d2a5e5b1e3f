"""What is in flight on real brokers, listed and described; a snapshot shows the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.clock import utc_now
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.progress import ReplicaState
from rehome.execution.advance import advance
from rehome.execution.foreign.flight_words import described_lines
from rehome.execution.foreign.in_flight import Chosen, Flight, describe
from rehome.execution.foreign.read_flights import (
    DescribedFlights,
    describe_reassignments,
    list_reassignments,
)
from rehome.execution.foreign.snapshot_flights import snapshot_flights
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS
from rehome.ledger.store import Ledger
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.conftest import Configure
from tests.execution.driven import SLOW
from tests.ledger.small_plans import move


def test_what_any_client_has_in_flight_is_described(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: Callable[..., Plan],
    topics: Any,
    throttled: Callable[..., None],
    configure: Configure,
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    theirs, ours = TopicPartition(topic, 0), TopicPartition(topic, 1)
    plan = approved(move(topic, 1, (1, 2), (4, 2), 3_000_000))
    throttled(plan, 100_000)
    advance(plan, ledger, gateway, SLOW)
    configure(ConfigResource.broker(3), FOLLOWER_RATE, "50000")
    configure(ConfigResource.topic(topic), FOLLOWER_REPLICAS, "0:3,1:4")
    gateway.alter_reassignments({theirs: [3, 2]})
    began = utc_now()

    def begun() -> DescribedFlights | None:
        found = describe_reassignments(gateway, ledger, utc_now())
        there = {each.partition: each for each in found.reassignments}
        return found if there[theirs].bytes_in_place else None

    found = wait_until(begun, "broker 3 to have begun")
    foreign, own = found.reassignments
    assert (foreign.partition, foreign.plan_id, foreign.leader) == (theirs, None, 1)
    assert (foreign.entry.adding, foreign.entry.removing) == ((3,), (1,))
    assert foreign.since is not None
    assert began <= foreign.since <= utc_now()
    assert (own.partition, own.plan_id, own.started_here) == (ours, plan.plan_id, True)
    slowed = [(t.broker, t.leads, t.is_known) for t in foreign.throttles if t.rate_bytes_per_s]
    assert (3, False, True) in slowed
    states = {each.replica.broker: each.state for each in found.statuses[:2]}
    assert states == {3: ReplicaState.BEHIND, 2: ReplicaState.IN_SYNC}
    text = "\n".join(described_lines(found))
    assert f"{theirs}: of another client" in text
    assert f"{ours}: of plan {plan.plan_id}" in text
    assert "messages behind" in text

    by_snapshot = _by_snapshot(gateway, ledger, found)
    for field in ("partition", "entry", "plan_id", "leader", "since", "throttles", "hindrance"):
        values = [getattr(each, field) for each in by_snapshot]
        assert values == [getattr(each, field) for each in found.reassignments], field

    assert list(list_reassignments(gateway, Chosen(brokers=frozenset({3})))) == [theirs]
    again = describe_reassignments(gateway, ledger, utc_now(), Chosen(topics=(f"{topic}:0",)))
    (later,) = again.reassignments
    assert (later.identity, later.since, again.others) == (foreign.identity, foreign.since, 1)
    assert later.rate_bytes_per_s is not None
    gateway.alter_reassignments({theirs: None})
    with pytest.raises(ValueError, match="after the colon come partitions"):
        list_reassignments(gateway, Chosen(topics=("orders:x",)))


def _by_snapshot(
    gateway: OwnGateway, ledger: Ledger, before: DescribedFlights
) -> tuple[Flight, ...]:
    snapshot = take_snapshot(gateway, before.taken_at + timedelta(seconds=1))
    seen, throttles = snapshot_flights(snapshot)
    known = ledger.seen_reassignments(snapshot.cluster_id)
    starts = ledger.open_starts(snapshot.cluster_id)
    return describe(sorted(seen.ongoing), seen, throttles, starts, known)
