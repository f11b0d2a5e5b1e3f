"""A broker that does not answer delays no other broker's rate: on a cluster in memory."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rehome.cluster.interface.errors import broker_error
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import AnyKind, EventKind
from rehome.domain.run.run_policy import Policy
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import advance
from rehome.execution.decide import needs_worker
from rehome.execution.poll import poll
from rehome.execution.throttle.keys import FOLLOWER_RATE, LISTS, RATE_KEYS
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.execution.throttle.rate_scope import DEFAULT_HONOURED_SINCE, METADATA_VERSION
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.base.records import ThrottleState
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import move

WELL, HANGS = TopicPartition("t", 0), TopicPartition("u", 0)
MOVES = (move(*WELL, (1, 2), (3, 2)), move(*HANGS, (1, 2), (4, 2)))
SLOW, FAST = 1000, 2000
REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED = 7, 31


class Hanging(SimulatedCluster):
    """Of some brokers, which live, nothing is heard about their own configs."""

    hanging: frozenset[BrokerId] = frozenset()
    hang_once_changed: frozenset[BrokerId] = frozenset()
    code = REQUEST_TIMED_OUT

    def describe_configs(self, resources: Any, keys: Any = None) -> Any:
        return super().describe_configs(resources, keys) | self._silent(resources)

    def alter_configs(self, changes: Any, **options: Any) -> Any:
        silent = self._silent(change.resource for change in changes)
        heard = [change for change in changes if change.resource not in silent]
        verdicts = super().alter_configs(heard, **options) | silent
        changed = set(verdicts) & set(map(ConfigResource.broker, self.hang_once_changed))
        self.hanging |= {int(resource.name) for resource in changed}
        return verdicts

    def _silent(self, resources: Any) -> dict[ConfigResource, Any]:
        brokers = set(map(ConfigResource.broker, self.hanging))
        return dict.fromkeys(brokers & set(resources), broker_error(self.code))

    def rate_at(self, broker: BrokerId) -> str | None:
        own = self.configs.get((ConfigResource.broker(broker), FOLLOWER_RATE))
        return own or self.configs.get((DEFAULT, FOLLOWER_RATE))


@pytest.fixture(params=[DEFAULT_HONOURED_SINCE, 0], ids=["by_default", "by_broker"])
def cluster(request: pytest.FixtureRequest) -> Hanging:
    return Hanging([1, 2, 3, 4], MOVES, {METADATA_VERSION: request.param})


@pytest.fixture
def plan(approved: Any, ledger: Ledger, cluster: Hanging) -> Plan:
    made: Plan = approved(*MOVES, cluster_id="sim")
    return made


def policy(rate: int = SLOW) -> Policy:
    return Policy(rate, metadata_grace_s=0)


def kinds(ledger: Ledger, plan: Plan) -> list[AnyKind]:
    return [event.kind for event in ledger.events(plan.plan_id)]


def test_moves_that_do_not_need_it_start_at_the_rate_that_was_asked_for(
    cluster: Hanging, plan: Plan, ledger: Ledger
) -> None:
    port = cast(OwnCluster, cluster)
    cluster.hanging = frozenset({4})
    set_up_throttle(plan, ledger, port, SLOW)
    assert kinds(ledger, plan).count(EventKind.RATE_NOT_SET) == 1
    step = advance(plan, ledger, port, policy())
    assert step.admitted == [WELL]
    assert cluster.rate_at(3) == str(SLOW)
    (reported,) = step.holds
    assert reported.startswith("1 move is to be sent again: the throttle of broker 4: ")
    cluster.hanging = frozenset()
    assert advance(plan, ledger, port, policy()).admitted == [HANGS]
    assert cluster.rate_at(4) == str(SLOW)
    assert clear_throttle(plan.plan_id, ledger, port).owed != (), "copies rely on it"


@pytest.mark.slow
def test_a_rate_is_changed_where_it_can_be_and_elsewhere_when_the_broker_answers_again(
    cluster: Hanging, plan: Plan, ledger: Ledger
) -> None:
    port = cast(OwnCluster, cluster)
    set_up_throttle(plan, ledger, port, SLOW)
    assert advance(plan, ledger, port, policy()).in_flight == 2
    cluster.hanging = frozenset({4})
    ledger.request_rate(plan.plan_id, FAST, "ann")
    assert advance(plan, ledger, port, policy()).in_flight == 2
    assert cluster.rate_at(3) == str(FAST)
    assert ledger.plan(plan.plan_id).rate_bytes_per_s == FAST

    cluster.hanging = frozenset()
    behind = cluster.rate_at(4) != str(FAST)
    polled = poll(plan, ledger, port, policy(), Backlog())
    assert polled is not None
    assert needs_worker(polled.actions) is behind, (
        "it is woken where that broker has a rate of its own"
    )
    advance(plan, ledger, port, policy())
    assert cluster.rate_at(4) == str(FAST)
    assert EventKind.THROTTLE_GONE not in kinds(ledger, plan), "no client has removed it"


@pytest.mark.slow
def test_lists_that_another_client_deletes_are_set_again_though_a_broker_refuses_its_rates(
    cluster: Hanging, plan: Plan, ledger: Ledger
) -> None:
    """A right of the cluster's was revoked in mid-run: that of the topics is still there."""
    port = cast(OwnCluster, cluster)
    set_up_throttle(plan, ledger, port, SLOW)
    assert advance(plan, ledger, port, policy()).in_flight == 2
    cluster.hanging, cluster.code = frozenset({4}), CLUSTER_AUTHORIZATION_FAILED
    lists = {(topic, key) for topic in ("t", "u") for key in LISTS}
    for topic, key in lists:
        del cluster.configs[ConfigResource.topic(topic), key]
    for times in range(1, 4):
        polled = poll(plan, ledger, port, policy(), Backlog())
        assert polled is not None
        assert needs_worker(polled.actions)
        advance(plan, ledger, port, policy())
        assert all(cluster.configs[ConfigResource.topic(topic), key] for topic, key in lists)
        assert EventKind.THROTTLE_NOT_SET_AGAIN in kinds(ledger, plan), "of the rates"
        gone = ledger.throttles(plan.plan_id, open_only=True, keys=LISTS)
        assert {entry.times_gone for entry in gone} == {times}, "people are alerted by it"
        for topic, key in lists:
            del cluster.configs[ConfigResource.topic(topic), key]


@pytest.mark.slow
@pytest.mark.parametrize("code", [CLUSTER_AUTHORIZATION_FAILED, REQUEST_TIMED_OUT])
@pytest.mark.parametrize("from_the_start", [True, False], ids=["from the start", "in the middle"])
def test_rates_that_another_client_deletes_are_set_again_on_all_brokers_but_those_that_refuse(
    from_the_start: bool, code: int, cluster: Hanging, plan: Plan, ledger: Ledger
) -> None:
    """Two refuse: from the first reading on, or from the moment on that they have been changed."""
    port = cast(OwnCluster, cluster)
    set_up_throttle(plan, ledger, port, SLOW)
    assert advance(plan, ledger, port, policy()).in_flight == 2
    deleted = [where for where in cluster.configs if where[1] in RATE_KEYS]
    for where in deleted:
        del cluster.configs[where]
    cluster.code = code
    cluster.hanging = frozenset({1, 4} if from_the_start else ())
    cluster.hang_once_changed = frozenset(() if from_the_start else {1, 4})
    advance(plan, ledger, port, policy())
    refusing = set(map(ConfigResource.broker, cluster.hanging))
    assert {where for where in deleted if where[0] not in refusing} <= cluster.configs.keys()
    reported = [
        e.detail for e in ledger.events(plan.plan_id) if e.kind == EventKind.THROTTLE_NOT_SET_AGAIN
    ]
    assert all(f"broker {broker}: " in "; ".join(reported) for broker in cluster.hanging)
    states = {(e.resource, e.key): e.state for e in ledger.throttles(plan.plan_id, keys=RATE_KEYS)}
    known = {states[where] for where in deleted if where[0] not in refusing}
    assert known == {ThrottleState.APPLIED}, "they have been read back"

    cluster.hanging = cluster.hang_once_changed = frozenset()
    advance(plan, ledger, port, policy())
    assert set(deleted) <= cluster.configs.keys()


def test_moves_of_other_brokers_start_though_one_refuses_its_configs(
    cluster: Hanging, plan: Plan, ledger: Ledger
) -> None:
    port = cast(OwnCluster, cluster)
    set_up_throttle(plan, ledger, port, SLOW)
    cluster.hanging, cluster.code = frozenset({4}), CLUSTER_AUTHORIZATION_FAILED
    step = advance(plan, ledger, port, policy())
    assert step.admitted == [WELL]
    (reported,) = step.holds
    assert reported.startswith("1 move is to be sent again: the throttle of broker 4: ")
