"""The predicted verdict is the controller's own: same code, same name, same message.

Broker 4 is dead, so that what is sent to it stays in flight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.domain.run.findings import Severity
from rehome.execution.dry_run.cluster_state import read_cluster
from rehome.execution.dry_run.controller_rules import facts_of, predict
from rehome.execution.dry_run.replica_checks import broker_findings
from rehome.execution.dry_run.typed_finding import FoundKind
from tests.conftest import Topics, impatient_gateway, revive
from tests.execution.dry_run.checked import check, found
from tests.ledger.small_plans import make_plan, move
from tests.versions.since import RELEASE, checks_replicas

Targets = Mapping[TopicPartition, Sequence[int] | None]
DEAD = 4
CHANGED = {38} if RELEASE >= (4, 1) else set()
"""What another number of replicas is refused with; older controllers let it pass."""


@dataclass(frozen=True)
class HalfDead:
    """A cluster whose broker 4 is dead.

    :param lost_topic: a topic whose only replica lies there.
    :param thin_topic: one of many partitions with one of three replicas there, and two needed in
        sync; its partition 0 has none there.
    """

    cluster: LocalCluster
    gateway: ClusterGateway
    lost_topic: str
    thin_topic: str

    def topic(self, *assignment: Sequence[int]) -> str:
        """A new topic, by a fresh client: an older one may still wait for a dead broker."""
        return Topics(self.cluster).create(assignment)


@pytest.fixture(scope="module")
def half_dead(mortal_cluster: LocalCluster) -> Iterator[HalfDead]:
    # Metadata names a dead broker only as a replica: that it is registered shows in this.
    lost_topic = Topics(mortal_cluster).create([[DEAD]])
    thin_topic = Topics(mortal_cluster).create(
        [[1, 2, 3], *[[1, 2, DEAD]] * 60], config={"min.insync.replicas": "2"}
    )
    with impatient_gateway(mortal_cluster) as gateway:
        mortal_cluster.kill(DEAD)
        wait_until(lambda: DEAD not in gateway.describe_cluster().brokers, "its death")
        yield HalfDead(mortal_cluster, gateway, lost_topic, thin_topic)
    revive(mortal_cluster)


def predicted(
    gateway: ClusterGateway, targets: Targets, *, allow: bool
) -> dict[TopicPartition, BrokerError | None]:
    facts = facts_of(
        gateway.describe_cluster(),
        gateway.describe_topics(),
        gateway.list_reassignments(),
        allow_replication_factor_change=allow,
    )
    return predict(targets, facts)


def agree(gateway: ClusterGateway, targets: Targets, *, allow: bool = False) -> set[int]:
    """Predict, then ask the controller; the codes that came, once each."""
    # Before 4.1 controllers know no such switch, and let the number of replicas change.
    ours = predicted(gateway, targets, allow=allow or RELEASE < (4, 1))
    theirs = gateway.alter_reassignments(targets, allow_replication_factor_change=allow)
    assert ours == theirs
    return {error.code if error else 0 for error in theirs.values()}


def test_bad_and_good_assignments_get_the_controllers_own_verdict(half_dead: HalfDead) -> None:
    topic = half_dead.topic(*[[1, 2]] * 20)
    targets: dict[TopicPartition, Sequence[int] | None] = {
        TopicPartition("no-such-topic", 0): [1, 2],
        TopicPartition("no-such-topic", 1): [],
        TopicPartition(topic, 99): [1, 2],
        TopicPartition(topic, 98): None,
        **{
            TopicPartition(topic, number): target
            for number, target in enumerate(
                [
                    [],
                    [1, 9],
                    [9, 8],
                    [8, 1, 8],
                    [1, 1],
                    [2, 2, 1, 1],
                    [9, 1, 1],  # the broker named twice comes first in order of ids
                    [2, 9, 9],
                    [-1, 2],
                    [1, 2, 3],
                    [3],
                    [1, 1, 1],  # twice the same comes before another replication factor
                    None,  # a cancel where nothing is in flight
                    [1, 2],
                    [2, 1],
                    [3, 2],
                    [3, 1],
                    [DEAD, 1],
                ]
            )
        },
    }
    assert agree(half_dead.gateway, targets) == {0, 3, 39, 85} | CHANGED


def test_a_replication_factor_may_change_where_that_is_allowed(half_dead: HalfDead) -> None:
    topic = half_dead.topic(*[[1, 2]] * 4)
    targets = {
        TopicPartition(topic, number): target
        for number, target in enumerate([[1, 2, 3], [3], [], [1, 1, 2]])
    }
    assert agree(half_dead.gateway, targets, allow=True) == {0, 39}


@checks_replicas
def test_a_partition_in_flight_counts_with_its_future_replication_factor(
    half_dead: HalfDead,
) -> None:
    gateway = half_dead.gateway
    topic = half_dead.topic(*[[1, 2]] * 4)
    grow, shrink, swap, keep = (TopicPartition(topic, number) for number in range(4))
    started = {grow: [1, 2, DEAD], shrink: [DEAD], swap: [1, DEAD], keep: [2, DEAD]}
    assert agree(gateway, started, allow=True) == {0}
    wait_until(lambda: gateway.list_reassignments().keys() >= started.keys(), "all in flight")

    refused = {grow: [1, 2], shrink: [1, 2], swap: [3], keep: [1, 2, 3]}
    assert agree(gateway, refused) == {38}
    accepted = {grow: [3, 2, DEAD], shrink: [DEAD], swap: [1, DEAD], keep: None}
    assert agree(gateway, accepted) == {0}


def test_a_cancel_that_would_leave_no_replica_in_sync_is_refused_as_predicted(
    half_dead: HalfDead,
) -> None:
    gateway, cluster = half_dead.gateway, half_dead.cluster
    topic = half_dead.topic([3])
    partition = TopicPartition(topic, 0)
    # The dead broker keeps it in flight after broker 2 has its copy.
    assert agree(gateway, {partition: [2, DEAD]}, allow=True) == {0}

    def in_sync() -> frozenset[int]:
        return gateway.describe_topics([topic])[topic].partitions[0].isr

    wait_until(lambda: 2 in in_sync(), "the copy on broker 2")
    cluster.kill(3)
    try:
        wait_until(lambda: in_sync() == {2}, "broker 3 to leave the ISR")
        assert agree(gateway, {partition: None}) == {39}
    finally:
        cluster.restart(3)


def test_a_dead_destination_passes_the_controller_and_not_the_dry_run(
    half_dead: HalfDead,
) -> None:
    gateway = half_dead.gateway
    topic = half_dead.topic([1, 2])
    result = check(gateway, move(topic, 0, (1, 2), (DEAD, 2)))
    assert not found(result, "verdict")
    brokers = found(result, "brokers")
    assert [item.subject for item in brokers] == [f"broker {DEAD}"]
    assert brokers[0].what == FoundKind.BROKER_DEAD
    assert f"{topic}-0" in brokers[0].message


def test_every_partition_with_too_few_in_sync_is_reported_and_those_that_are_alike_at_once(
    half_dead: HalfDead,
) -> None:
    gateway, topic = half_dead.gateway, half_dead.thin_topic
    wait_until(
        lambda: all(
            state.isr == ({1, 2} if number else {1, 2, 3})
            for number, state in gateway.describe_topics([topic])[topic].partitions.items()
        ),
        "broker 4 to leave the ISRs, and every other broker to be in them",
    )
    moved = [move(topic, number, (1, 2, DEAD), (1, 2, 3)) for number in range(1, 61) if number != 7]
    ordered = move(topic, 7, (1, 2, DEAD), (2, 1, DEAD))  # no data moves: there is no "while"
    fewer = move(topic, 0, (1, 2, 3), (1, 2))
    result = check(gateway, *moved, ordered, fewer)
    reported = [(item.what, item.subject) for item in found(result, "in-sync replicas")]
    assert reported == [
        (FoundKind.AT_MINIMUM, f"{topic}-1-6,8-60"),
        (FoundKind.UNDER_REPLICATED, f"{topic}-7"),
        (FoundKind.ALWAYS_AT_MINIMUM, f"{topic}-0"),
    ]


def test_a_decrease_that_gives_up_what_is_in_sync_is_refused(half_dead: HalfDead) -> None:
    topic = half_dead.thin_topic
    result = check(half_dead.gateway, move(topic, 1, (1, 2, DEAD), (1, DEAD)))
    assert [each.what for each in found(result, "in-sync replicas")] == [
        FoundKind.LOSES_IN_SYNC,
        FoundKind.WAITS_FOR_ISR,
    ]


def test_a_broker_that_does_not_answer_stops_only_plans_that_need_it(half_dead: HalfDead) -> None:
    gateway, topic = half_dead.gateway, half_dead.topic([1, 2])
    silent = BrokerError(7, "REQUEST_TIMED_OUT")
    for target, severity in (((1, 3), Severity.ERROR), ((2, 1), Severity.WARNING)):
        plan = make_plan("p", move(topic, 0, (1, 2), target))
        now = read_cluster(plan, gateway)
        without = replace(now, log_dirs=replace(now.log_dirs, missing={3: silent}))
        (finding,) = broker_findings(plan, without)
        assert (finding.severity, finding.subject, finding.error) == (severity, "broker 3", silent)


def test_a_partition_without_a_live_leader_has_nothing_to_copy_from(half_dead: HalfDead) -> None:
    result = check(half_dead.gateway, move(half_dead.lost_topic, 0, (DEAD,), (1,)))
    (finding,) = found(result, "in-sync replicas")
    assert finding.what == FoundKind.NO_SOURCE
