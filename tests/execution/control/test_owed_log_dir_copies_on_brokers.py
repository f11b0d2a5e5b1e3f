"""What an ended plan still owes, while another plan needs the same throttles, on real brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigChange, ConfigResource
from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.control.owed_log_dir_copies import stop_owed_copies
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LISTS,
)
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle, sweep
from rehome.ledger.base.records import ThrottleState
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import state_of
from tests.execution.throttle.on_brokers import (
    leave_no_rates,  # noqa: F401 - an autouse fixture
    set_config,
    throttle_settings,
)
from tests.ledger.small_plans import move
from tests.versions.since import copies_end

pytestmark = copies_end

MakePlan = Callable[..., Plan]
INVALID_REPLICA_ASSIGNMENT = 39
CRAWL = Policy(100_000, metadata_grace_s=2)


class Unlucky(OwnGateway):
    """Its first change of a configuration gets no answer."""

    lucky = False

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> dict[ConfigResource, BrokerError | None]:
        if not self.lucky:
            self.lucky = True
            raise ClusterError("no answer")
        return super().alter_configs(changes, validate_only=validate_only)


@pytest.fixture
def unlucky(cluster: LocalCluster) -> Iterator[OwnGateway]:
    with Unlucky(Connection.from_settings(cluster.client_settings())) as gateway:
        yield gateway


@pytest.mark.parametrize("owed_rate", [5_000_000, 50_000])
def test_a_debt_takes_nothing_away_that_the_running_plan_relies_on_and_is_paid_with_it(
    owed_rate: int,
    unlucky: OwnGateway,
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Topics,
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 1000, size_bytes=10_000)
    resource = ConfigResource.topic(topic)
    set_config(gateway, resource, LEADER_REPLICAS, "9:9,8:8")
    before = throttle_settings(gateway, topic)
    first = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(first, ledger, gateway, owed_rate)
    ledger.transition(first.plan_id, PlanState.FAILED, "its worker died")

    second = approved(move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (4, 2)))
    set_up_throttle(second, ledger, unlucky, CRAWL.rate_bytes_per_s)
    needed = throttle_settings(gateway, topic)
    assert needed[DEFAULT, FOLLOWER_RATE] == "100000", "what a plan of ours left is not foreign"
    assert needed[resource, FOLLOWER_REPLICAS] == "0:3,1:4"
    assert {e.state for e in ledger.throttles(first.plan_id)} == {ThrottleState.CLEARED}
    assert sweep(ledger, gateway).cleared == ()
    assert throttle_settings(gateway, topic) == needed
    assert advance(second, ledger, gateway, CRAWL).in_flight == 2
    assert sweep(ledger, gateway).cleared == ()
    assert throttle_settings(gateway, topic) == needed

    abort(second.plan_id, ledger, gateway, "enough")
    assert clear_throttle(second.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == before
    assert ledger.throttles(open_only=True) == []


def test_a_copy_that_cannot_be_cancelled_keeps_its_throttle_until_it_ends(
    mortal: LocalCluster, ledger: Ledger, approved: MakePlan
) -> None:
    """The only old replica dies once one of the two new ones is in sync: the controller refuses."""
    cluster = mortal
    topics = Topics(cluster)
    topic = topics.create([[1]])
    topics.fill(topic, 1000, size_bytes=10_000)
    resource, partition = ConfigResource.topic(topic), TopicPartition(topic, 0)
    brokers = [ConfigResource.broker(broker) for broker in (2, 3)]
    with impatient_gateway(cluster) as gateway:
        plan = replace(
            approved(move(topic, 0, (1,), (2, 3)), cluster_id=cluster.cluster_id),
            allow_replication_factor_change=True,
        )
        set_up_throttle(plan, ledger, gateway, CRAWL.rate_bytes_per_s)
        assert advance(plan, ledger, gateway, CRAWL).in_flight == 1
        set_config(gateway, ConfigResource.broker(1), LEADER_RATE, "90000000")
        set_config(gateway, brokers[0], FOLLOWER_RATE, "90000000")
        wait_until(lambda: 2 in state_of(gateway, topic).isr, "one of the copies", 240)
        cluster.kill(1)
        wait_until(lambda: state_of(gateway, topic).isr == {2}, "the old replica's end", 240)

        stopped = abort(plan.plan_id, ledger, gateway, "enough")
        assert stopped.errors[partition].code == INVALID_REPLICA_ASSIGNMENT
        cleared = clear_throttle(plan.plan_id, ledger, gateway)
        assert {entry.key for entry in cleared.owed} == {*LISTS, LEADER_RATE, FOLLOWER_RATE}
        assert all(f"{partition} is still being copied" in entry.detail for entry in cleared.owed)
        slowed = throttle_settings(gateway, topic, brokers=brokers)
        assert slowed[resource, FOLLOWER_REPLICAS] == "0:2,0:3"
        assert slowed[DEFAULT, FOLLOWER_RATE] == "100000"
        assert sweep(ledger, gateway, cluster.cluster_id).cleared == ()
        left = stop_owed_copies(ledger, gateway, cluster.cluster_id)
        assert (left.ended, left.copying) == ({}, (partition,))

        set_config(gateway, brokers[0], LEADER_RATE, "90000000")
        set_config(gateway, brokers[1], FOLLOWER_RATE, "90000000")
        wait_until(lambda: not gateway.list_reassignments(), "the other copy", 240)
        assert len(sweep(ledger, gateway, cluster.cluster_id).cleared) == len(cleared.owed)
        theirs = {(brokers[0], LEADER_RATE), (brokers[0], FOLLOWER_RATE)}
        theirs.add((brokers[1], FOLLOWER_RATE))
        assert throttle_settings(gateway, topic, brokers=brokers).keys() == theirs
        wait_until(lambda: state_of(gateway, topic).replicas == (2, 3), "brokers to know")
        left = stop_owed_copies(ledger, gateway, cluster.cluster_id)
        assert left.ended == {partition: MoveState.DONE}
        assert ledger.stopped_with_admitted(cluster.cluster_id) == []
