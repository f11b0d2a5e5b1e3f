"""Drained brokers are cordoned, and uncordoned, as the throttles are set: journal first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka.cimpl import NewTopic

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.actions import Action
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import Cordon, ReassignmentRequest
from rehome.domain.run.states import PlanState
from rehome.execution.dry_run.throttle_checks import cordon_findings
from rehome.execution.throttle.cordon import cordon
from rehome.execution.throttle.keys import CORDONED
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.base.records import ThrottleState
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.throttle.cordon.cordons import cordon_of, uncordoned_afterwards
from tests.ledger.small_plans import move
from tests.versions.since import cordons

pytestmark = cordons

DRAINED = 4
BROKER = ConfigResource.broker(DRAINED)
KEEP = ReassignmentRequest(Action.DRAIN, brokers=(DRAINED,), cordon=Cordon.KEEP)
UNDO = replace(KEEP, cordon=Cordon.UNDO)


@pytest.fixture(autouse=True)
def as_before(gateway: OwnGateway) -> Iterator[None]:
    with uncordoned_afterwards(gateway, DRAINED):
        yield


@pytest.fixture
def plan(topics: Topics, approved: Callable[..., Plan]) -> Plan:
    return approved(move(topics.create([[DRAINED, 1]]), 0, (DRAINED, 1), (2, 1)))


def test_a_cordon_is_kept_when_the_plan_ends_and_kafka_places_nothing_new_there(
    gateway: OwnGateway, topics: Topics, ledger: Ledger, plan: Plan
) -> None:
    set_up_throttle(plan, ledger, gateway, 1_000_000)
    assert cordon(plan, KEEP, ledger, gateway) == (DRAINED,)
    assert cordon(plan, KEEP, ledger, gateway) == (), "a retry changes nothing"
    assert all(log_dir.cordoned for log_dir in gateway.describe_log_dirs([DRAINED]).value)
    name = f"{topics.create([[1]])}-placed"
    topics.admin.create_topics([NewTopic(name, 12, 1)])[name].result(120)
    topics.created.append(name)
    placed = gateway.current_topics([name])[name].partitions.values()
    assert not [state for state in placed if DRAINED in state.replicas]

    ledger.transition(plan.plan_id, PlanState.FAILED, "the test is over")
    assert not clear_throttle(plan.plan_id, ledger, gateway).owed
    assert cordon_of(gateway, DRAINED) == "*"
    (entry,) = [item for item in ledger.throttles(plan.plan_id) if item.key == CORDONED]
    assert (entry.state, entry.prior_value) == (ThrottleState.KEPT, None)
    assert not ledger.throttles(open_only=True)


def test_a_cordon_is_undone_on_request_and_the_earlier_value_is_put_back(
    cluster: LocalCluster, gateway: OwnGateway, ledger: Ledger, plan: Plan
) -> None:
    theirs = str(cluster.log_dirs(DRAINED)[0])
    set_it = ConfigChange(BROKER, CORDONED, ConfigOperation.SET, theirs)
    assert gateway.alter_configs([set_it]) == {BROKER: None}
    wait_until(lambda: cordon_of(gateway, DRAINED) == theirs, "their cordon")
    set_up_throttle(plan, ledger, gateway, 1_000_000)
    assert cordon(plan, UNDO, ledger, gateway) == (DRAINED,)
    assert cordon_of(gateway, DRAINED) == "*"
    ledger.transition(plan.plan_id, PlanState.FAILED, "the test is over")
    assert not clear_throttle(plan.plan_id, ledger, gateway).owed
    assert cordon_of(gateway, DRAINED) == theirs
    assert not ledger.throttles(open_only=True)


def test_what_another_client_has_cordoned_stays_cordoned(
    gateway: OwnGateway, ledger: Ledger, plan: Plan
) -> None:
    set_it = ConfigChange(BROKER, CORDONED, ConfigOperation.SET, "*")
    assert gateway.alter_configs([set_it]) == {BROKER: None}
    wait_until(lambda: cordon_of(gateway, DRAINED) == "*", "their cordon")
    set_up_throttle(plan, ledger, gateway, 1_000_000)
    assert cordon(plan, UNDO, ledger, gateway) == ()
    ledger.transition(plan.plan_id, PlanState.FAILED, "the test is over")
    assert not clear_throttle(plan.plan_id, ledger, gateway).owed
    assert cordon_of(gateway, DRAINED) == "*"


def test_without_being_asked_nothing_is_cordoned(
    gateway: OwnGateway, ledger: Ledger, plan: Plan
) -> None:
    request = replace(KEEP, cordon=Cordon.NO)
    assert cordon(plan, request, ledger, gateway) == ()
    assert list(cordon_findings(request, [1], gateway)) == []
