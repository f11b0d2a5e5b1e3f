"""A plan that runs while the active one of three controllers dies, and then the next one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.keys import CONTROLLER_SERVERS
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.actions import SetRate
from rehome.execution.advance import advance
from rehome.execution.completion.verify import verify
from rehome.execution.throttle.keys import LEADER_RATE
from rehome.execution.throttle.set_up import change_rate, clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.dags.clusters import no_throttles, throttles_of
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import FAST, run
from tests.ledger.small_plans import move

RATE = 150_000
MESSAGES = 6_000  # of 1 kB, in each of two partitions: at RATE they take 80 s
pytestmark = pytest.mark.long


@pytest.fixture
def cluster(private_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return private_cluster(brokers=3, controllers=3)


def test_a_plan_outlives_two_elections_of_controllers_and_leaves_nothing(
    cluster: LocalCluster,
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    topics = Topics(cluster)
    topic = topics.create([[1, 2], [2, 1]])
    topics.fill(topic, MESSAGES)
    plan = approved(
        move(topic, 0, (1, 2), (3, 2), MESSAGES * 1000),
        move(topic, 1, (2, 1), (3, 1), MESSAGES * 1000),
        cluster_id=cluster.cluster_id,
    )
    policy = Policy(RATE, metadata_grace_s=2)
    with impatient_gateway(cluster) as gateway:
        set_up_throttle(plan, ledger, gateway, RATE)
        ours = throttles_of(gateway, [topic])
        assert len(advance(plan, ledger, gateway, policy).admitted) == 2
        led = [cluster.active_controller()]
        for _ in range(2):
            cluster.stop_controller(led[-1])
            wait_until(lambda: _stepped(plan, ledger, gateway, policy), "a step", 120)
            led.append(cluster.active_controller())
            cluster.start_controller(led[-2])
        assert led[0] != led[1] != led[2]
        assert gateway.list_reassignments(), "all of it was in mid-plan"
        assert throttles_of(gateway, [topic]) == ours
        change_rate(plan, ledger, gateway, SetRate(FAST.rate_bytes_per_s, "elections are over"))
        assert run(plan, ledger, gateway, FAST).finished is PlanState.DONE
        verified = verify(plan, gateway)
        assert verified.ok, verified
        clear_throttle(plan.plan_id, ledger, gateway)
        no_throttles(gateway, [topic])


@pytest.mark.parametrize("place", range(3))
def test_a_dead_brokers_settings_are_changed_by_whichever_controller_leads(
    cluster: LocalCluster, place: int
) -> None:
    active = cluster.active_controller()
    others = [each for each in cluster.controllers if each != active]
    listed = [*others[:place], active, *others[place:]]
    servers = ",".join(map(cluster.address, listed))
    settings = {**cluster.client_settings(), CONTROLLER_SERVERS: servers}
    change = ConfigChange(ConfigResource.broker(3), LEADER_RATE, ConfigOperation.SET, "1234567")
    with OwnGateway(Connection.from_settings(settings), request_timeout_s=5) as gateway:
        cluster.kill(3)
        assert gateway.alter_configs([change]) == {change.resource: None}
        cluster.restart(3)
        found = gateway.describe_configs([change.resource], [LEADER_RATE])[change.resource]
        assert isinstance(found, dict)
        assert found[LEADER_RATE].value == "1234567"


def _stepped(plan: Plan, ledger: Ledger, gateway: OwnCluster, policy: Policy) -> bool:
    """As a worker does: where no controller answers it tries again."""
    with suppress(ClusterError):
        assert advance(plan, ledger, gateway, policy).finished is None
        return True
    return False
