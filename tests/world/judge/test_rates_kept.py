"""Rates of brokers, each by direction, held against what was asked for in histories that no run of
Rehome's has made.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.domain.configs import ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from world.history import OTHERS, ConfigWrite, History
from world.judge.configs import Configs
from world.judge.flights import FOLLOWER_RATE, LEADER_RATE, UNSEEN_S, Span
from world.judge.placement import Partitions
from world.judge.plan_seen import PlanSeen, RatesAsked
from world.judge.rates_kept import over_their_rates
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Registration, Table
from world.others import LISTS
from world.running.outside import EPOCH

KEY = PartitionKey("id-of-t", 0)
MOVES = {TopicPartition("t", 0): (KEY.topic_id, (3, 2))}
BY = [Span(0.0, 400.0)]
RAN: Any = SimpleNamespace(started_at=EPOCH, ended_at=None)
PLAN = PlanSeen("p", "A", MOVES, RAN, frozenset(), frozenset(), BY, True)
TOPIC, DEFAULT = ConfigResource.topic("t"), ConfigResource.cluster_default()
BROKER = ConfigResource.broker
FIRST = RatesAsked(0.0, 0.0, True, 1_000, {})
OWN = replace(FIRST, own={(3, FOLLOWER_RATE): 100})


def world() -> History:
    """A copy of 200 seconds from broker 1 to broker 3, with both on their lists."""
    history = History(MetadataLog())
    topic = [Table("topics", "t", KEY.topic_id), Table("names", KEY.topic_id, "t")]
    brokers = [registered(broker) for broker in (1, 2, 3, 4)]
    began = Table("partitions", KEY, Partition((1, 2), (1, 2), 1))
    history.log.append(0.0, [*topic, *brokers, began])
    history.begin()
    for key, value in zip(LISTS, ("0:1,0:2", "0:3"), strict=True):
        write(history, 1.0, TOPIC, key, value)
    for key in (LEADER_RATE, FOLLOWER_RATE):
        write(history, 1.0, DEFAULT, key, "1100")
    copying = Partition((3, 2, 1), (1, 2), 1, adding=(3,), removing=(1,))
    history.log.append(2.0, [Table("partitions", KEY, copying)])
    history.log.append(202.0, [Table("partitions", KEY, Partition((3, 2), (2, 3), 2))])
    return history


def registered(broker: int, *, fenced: bool = False) -> Table:
    """A broker that is alive, or not."""
    return Table("brokers", broker, Registration(broker, None, 1, fenced, (), ()))


def write(
    history: History,
    at: float,
    resource: ConfigResource,
    key: str,
    value: str | None,
    owner: str = "A",
) -> None:
    how = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    number = len(history.writes) + 1
    written = ConfigWrite(number, at, owner, f"{owner}:x", resource, key, None, value, how, number)
    history.writes.append(written)


def found(history: History, *asked: RatesAsked, plan: PlanSeen = PLAN) -> list[str]:
    configs, partitions = Configs.of(history), Partitions.of(history.log)
    rated = replace(plan, rates=asked)
    return [each.subject for each in over_their_rates(partitions, configs, history, rated)]


def test_what_is_set_is_above_what_is_wanted_by_what_brokers_do_not_deliver() -> None:
    assert found(world(), FIRST) == []
    assert found(world(), replace(FIRST, rate=600)) == ["3 receives", "1 sends"]
    assert found(world()) == [], "nobody knows what was asked for"


@pytest.mark.parametrize(
    ("side", "over"),
    [
        ((3, FOLLOWER_RATE), ["3 receives"]),
        ((1, LEADER_RATE), ["1 sends"]),
        ((3, LEADER_RATE), []),  # it sends nothing
        ((1, FOLLOWER_RATE), []),
        ((4, FOLLOWER_RATE), []),
    ],
)
def test_a_broker_has_its_own_rate_in_its_own_direction(
    side: tuple[int, str], over: list[str]
) -> None:
    history, asked = world(), replace(FIRST, own={side: 100})
    assert found(history, asked) == over
    write(history, 1.5, BROKER(side[0]), side[1], "110")
    assert found(history, asked) == []


def test_a_rate_holds_for_what_is_on_its_list_alone() -> None:
    history = world()
    write(history, 1.5, BROKER(3), FOLLOWER_RATE, "110")
    write(history, 50.0, TOPIC, LISTS[1], "0:4")
    assert found(history, OWN) == ["3 receives"]


@pytest.mark.parametrize(
    ("where", "key"), [(TOPIC, LISTS[1]), (BROKER(3), FOLLOWER_RATE), (DEFAULT, FOLLOWER_RATE)]
)
def test_what_another_client_has_changed_is_not_judged(where: ConfigResource, key: str) -> None:
    history = world()
    write(history, 50.0, where, key, "0:9" if where == TOPIC else "5000", OTHERS)
    assert found(history, OWN) == []


def test_a_lower_rate_holds_once_it_was_agreed_to_and_could_be_seen() -> None:
    lower = RatesAsked(20.0, 22.0, True, None, {(3, FOLLOWER_RATE): 100})
    history = world()
    write(history, 22.0 + UNSEEN_S, BROKER(3), FOLLOWER_RATE, "110")
    assert found(history, FIRST, lower) == []
    late = world()
    write(late, 24.0 + UNSEEN_S, BROKER(3), FOLLOWER_RATE, "110")
    assert found(late, FIRST, lower) == ["3 receives"]
    assert found(late, FIRST, replace(lower, agreed=False, ended=inf)) == []


@pytest.mark.parametrize(("set_after_s", "over"), [(UNSEEN_S, []), (UNSEEN_S + 2, ["3 receives"])])
def test_a_lower_rate_is_seen_by_who_goes_on_after_a_death(
    set_after_s: float, over: list[str]
) -> None:
    lower = RatesAsked(20.0, 22.0, True, None, {(3, FOLLOWER_RATE): 100})
    history = world()
    write(history, 100.0 + set_after_s, BROKER(3), FOLLOWER_RATE, "110")
    died = replace(PLAN, able=[Span(0.0, 40.0), Span(100.0, 400.0)])
    assert found(history, FIRST, lower, plan=died) == over


@pytest.mark.parametrize(
    ("set_after_s", "over"),
    [(UNSEEN_S, []), (UNSEEN_S + 2, ["3 receives"]), (None, ["3 receives"])],
)
def test_an_own_rate_is_set_through_its_broker_once_its_return_is_seen(
    set_after_s: float | None, over: list[str]
) -> None:
    history = world()
    history.log.append(1.0, [registered(3, fenced=True)])
    history.log.append(60.0, [registered(3)])
    if set_after_s is not None:
        write(history, 60.0 + set_after_s, BROKER(3), FOLLOWER_RATE, "110")
    assert found(history, OWN) == over


def test_the_rate_of_all_holds_for_a_broker_that_returns() -> None:
    history = world()
    history.log.append(1.0, [registered(3, fenced=True)])
    history.log.append(60.0, [registered(3)])
    assert found(history, replace(FIRST, rate=600)) == ["3 receives", "1 sends"]


def test_a_higher_rate_may_hold_from_when_it_is_asked_for() -> None:
    higher = RatesAsked(20.0, inf, False, None, {(3, FOLLOWER_RATE): 500})
    history = world()
    write(history, 1.5, BROKER(3), FOLLOWER_RATE, "110")
    write(history, 21.0, BROKER(3), FOLLOWER_RATE, "550")
    assert found(history, OWN, higher) == []
    assert found(history, OWN) == ["3 receives"]


@pytest.mark.parametrize(
    "changed",
    [
        {"able": [Span(0.0, 2.5), Span(201.5, 300.0)]},
        {"record": None},
        {"record": SimpleNamespace(started_at=None, ended_at=None)},
        {"record": SimpleNamespace(started_at=EPOCH, ended_at=EPOCH + timedelta(seconds=2))},
    ],
)
def test_what_nothing_carries_out_is_not_judged(changed: dict[str, Any]) -> None:
    assert found(world(), OWN) == ["3 receives"]
    assert found(world(), OWN, plan=replace(PLAN, **changed)) == []
