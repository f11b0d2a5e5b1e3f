"""Moves in flight keep their throttle on real brokers, whichever client removes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.alerts.alert_text import throttle_restored
from rehome.alerts.due_alerts import LOST_OFTEN
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.run_policy import Policy
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import advance
from rehome.execution.decide import needs_worker
from rehome.execution.poll import Poll, poll
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.ledger.base.records import SetBy
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.throttle.on_brokers import (
    leave_no_rates,  # noqa: F401 - an autouse fixture
    set_config,
    throttle_settings,
)
from tests.execution.throttle.refusing import let_refuse
from tests.ledger.small_plans import move
from tests.versions.since import honours_default

MakePlan = Callable[..., Plan]
SIMULATED = pytest.mark.simulated("nothing looks whether what is in flight is throttled still")
CRAWL = Policy(100_000, metadata_grace_s=2)
"""A fetch of 1 MB every 11 s, of 10 MB: longer than any test takes."""


@pytest.fixture
def flying(
    ledger: Ledger,
    gateway: OwnGateway,
    approved: MakePlan,
    topics: Topics,
    throttled: Callable[..., None],
) -> Plan:
    """A plan of two moves of one topic, which crawl."""
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 1000, size_bytes=10_000)
    plan = approved(move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (3, 2)))
    throttled(plan, CRAWL.rate_bytes_per_s)
    step = advance(plan, ledger, gateway, CRAWL)
    assert step.in_flight == 2
    return plan


def poll_once(plan: Plan, ledger: Ledger, gateway: OwnGateway) -> Poll:
    """As the trigger polls."""
    found = poll(plan, ledger, gateway, CRAWL, Backlog())
    assert found is not None
    return found


def lacking(plan: Plan, ledger: Ledger, gateway: OwnGateway) -> Poll:
    """The first poll that sees something missing: any broker may be behind for a moment."""

    def seen() -> Poll | None:
        found = poll_once(plan, ledger, gateway)
        return found if found.observation.unthrottled else None

    found = wait_until(seen, "a poll that sees it")
    assert found is not None
    return found


def delete(gateway: OwnGateway, resource: ConfigResource, key: str) -> None:
    change = ConfigChange(resource, key, ConfigOperation.DELETE)
    assert gateway.alter_configs([change]) == {resource: None}


def gone_events(ledger: Ledger, plan: Plan) -> list[str]:
    return [e.detail for e in ledger.events(plan.plan_id) if e.kind == EventKind.THROTTLE_GONE]


@honours_default
@pytest.mark.parametrize(
    "key",
    [
        FOLLOWER_REPLICAS,
        pytest.param(FOLLOWER_RATE, marks=SIMULATED),
    ],
)
def test_a_throttle_that_another_client_deletes_in_mid_copy_is_set_again_within_one_poll(
    key: str, ledger: Ledger, gateway: OwnGateway, flying: Plan
) -> None:
    """Leaders are still slowed meanwhile: so the copies last, and it is the same on any machine."""
    topic = flying.moves[0].partition.topic
    resource = DEFAULT if key == FOLLOWER_RATE else ConfigResource.topic(topic)
    throttles = throttle_settings(gateway, topic)
    seen = poll_once(flying, ledger, gateway).observation
    assert (seen.unthrottled, seen.throttles_unread) == ((), {})
    for times in range(1, LOST_OFTEN + 1):
        assert ledger.throttles_gone_often(flying.plan_id, LOST_OFTEN) == []
        delete(gateway, resource, key)
        found = lacking(flying, ledger, gateway)
        assert set(found.observation.unthrottled) == flying.by_partition.keys()
        assert needs_worker(found.actions), "it is woken"
        assert (resource, key) not in throttle_settings(gateway, topic), "a poll changes nothing"

        step = advance(flying, ledger, gateway, CRAWL)
        assert (step.in_flight, step.holds) == (2, [])
        assert throttle_settings(gateway, topic) == throttles
        assert len(gone_events(ledger, flying)) == times
        assert f"{resource} {key}" in gone_events(ledger, flying)[-1]
        wait_until(
            lambda: not poll_once(flying, ledger, gateway).observation.unthrottled,
            "all to know of it",
        )
    often = ledger.throttles_gone_often(flying.plan_id, LOST_OFTEN)
    assert [(entry.resource, entry.key) for entry in often] == [(resource, key)]
    reported, _ = throttle_restored(often, 5)
    assert f"{key} was gone 3 times" in reported
    assert "Each time it was set again." in reported
    ledger.mark_throttles_reported(often)
    assert ledger.throttles_gone_often(flying.plan_id, LOST_OFTEN) == [], "reported once"


@honours_default
def test_the_default_rate_is_set_again_though_a_broker_refuses_its_own_configs(
    ledger: Ledger, gateway: OwnGateway, flying: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = flying.moves[0].partition.topic
    throttles = throttle_settings(gateway, topic)
    delete(gateway, DEFAULT, FOLLOWER_RATE)
    with monkeypatch.context() as patches:
        let_refuse(patches, gateway, 3)
        found = lacking(flying, ledger, gateway)
        assert found.observation.throttles_unread.keys() == {ConfigResource.broker(3)}
        step = advance(flying, ledger, gateway, CRAWL)
    assert step.in_flight == 2
    assert throttle_settings(gateway, topic) == throttles
    (reported,) = [
        e.detail
        for e in ledger.events(flying.plan_id)
        if e.kind == EventKind.THROTTLE_NOT_SET_AGAIN
    ]
    assert reported.startswith("the throttle of broker 3: CLUSTER_AUTHORIZATION_FAILED (31)")
    assert len(gone_events(ledger, flying)) == 1


@SIMULATED
def test_a_list_that_loses_items_of_others_gets_what_moves_in_flight_need(
    ledger: Ledger, gateway: OwnGateway, flying: Plan
) -> None:
    """Another client's item is not put back; one of theirs that our copies rely on becomes ours."""
    topic = flying.moves[0].partition.topic
    resource = ConfigResource.topic(topic)
    set_config(gateway, resource, FOLLOWER_REPLICAS, "1:3,7:7")
    assert lacking(flying, ledger, gateway).observation.unthrottled == (TopicPartition(topic, 0),)
    advance(flying, ledger, gateway, CRAWL)
    assert throttle_settings(gateway, topic)[resource, FOLLOWER_REPLICAS] == "1:3,7:7,0:3"
    set_config(gateway, resource, FOLLOWER_REPLICAS, "*")
    wait_until(
        lambda: not poll_once(flying, ledger, gateway).observation.unthrottled,
        "it covers everything",
    )


@honours_default
@SIMULATED
def test_a_rate_that_another_client_changes_in_mid_copy_holds_and_is_reported_once(
    ledger: Ledger, gateway: OwnGateway, flying: Plan
) -> None:
    topic = flying.moves[0].partition.topic
    set_config(gateway, DEFAULT, LEADER_RATE, "123456")

    def reported() -> list[str]:
        return [e.detail for e in ledger.events(flying.plan_id) if e.kind == EventKind.FOREIGN_RATE]

    lacking(flying, ledger, gateway)
    advance(flying, ledger, gateway, CRAWL)
    assert reported() == [
        f"{DEFAULT} {LEADER_RATE} was set to 123456 B/s by another client, and stays so"
    ]
    assert poll_once(flying, ledger, gateway).observation.unthrottled == ()
    advance(flying, ledger, gateway, CRAWL)
    assert len(reported()) == 1
    assert throttle_settings(gateway, topic)[DEFAULT, LEADER_RATE] == "123456"
    marks: dict[Any, SetBy] = {
        (e.resource, e.key): e.set_by for e in ledger.throttles(flying.plan_id)
    }
    assert marks[DEFAULT, LEADER_RATE] is SetBy.OTHERS
    assert marks[DEFAULT, FOLLOWER_RATE] is SetBy.REHOME
    assert gone_events(ledger, flying) == []


@honours_default
@SIMULATED
def test_a_broker_that_gets_a_higher_rate_of_its_own_in_mid_copy_is_slowed_again(
    ledger: Ledger, gateway: OwnGateway, flying: Plan
) -> None:
    """It would hide the brokers' default, which is ours; it is put back in the end."""
    topic, three = flying.moves[0].partition.topic, ConfigResource.broker(3)
    set_config(gateway, three, FOLLOWER_RATE, "99000000")
    lacking(flying, ledger, gateway)
    advance(flying, ledger, gateway, CRAWL)
    assert throttle_settings(gateway, topic)[three, FOLLOWER_RATE] == "100000"
    entry = next(e for e in ledger.throttles(flying.plan_id) if e.resource == three)
    assert (entry.prior_value, entry.times_gone) == ("99000000", 1)
