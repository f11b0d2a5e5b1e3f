"""Another tool that throttles and moves: what it sets, what it leaves, and what it takes back."""

from __future__ import annotations

from random import Random

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from world.cruise_control import CruiseControl
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.others import LISTS, RATES

PART = TopicPartition("t", 0)


def cluster() -> tuple[KafkaModel, SetClock]:
    clock = SetClock()
    model = KafkaModel(clock, Random(1), 3)
    model.actions.create_topic("t", [(1, 2)])
    model.actions.fill(PART, 50_000_000)
    clock.wait(1.0)
    model.catch_up_with_clock()
    return model, clock


def configs(model: KafkaModel, resource: ConfigResource) -> dict[str, str]:
    return dict(model.world.image.config(resource))


def test_it_moves_and_leaves_nothing() -> None:
    model, clock = cluster()
    CruiseControl(model.port(), clock.wait).execute(PART, (3, 2), 1_000_000)
    found = model.world.partition(PART)
    assert found is not None
    assert (found[1].replicas, found[1].reassigning) == ((3, 2), False)
    assert 40.0 < clock.at < 90.0
    assert configs(model, ConfigResource.topic("t")) == {}
    assert all(configs(model, ConfigResource.broker(broker)) == {} for broker in (1, 2, 3))


def test_while_it_moves_its_replicas_are_listed_and_rates_are_set_where_there_was_none() -> None:
    model, clock = cluster()
    model.actions.set_config(ConfigResource.broker(2), RATES[0], "7000000")
    model.actions.set_config(ConfigResource.topic("t"), LISTS[0], "0:9")
    model.catch_up_with_clock()
    clock.wait(1.0)
    during = []

    def wait(seconds: float) -> None:
        during.append([configs(model, ConfigResource.broker(broker)) for broker in (1, 2, 3)])
        during[-1].append(configs(model, ConfigResource.topic("t")))
        clock.wait(seconds)
        model.catch_up_with_clock()

    CruiseControl(model.port(), wait).execute(PART, (3, 2), 1_000_000)
    rates = dict.fromkeys(RATES, "1000000")
    lists = {LISTS[0]: "0:1,0:2,0:3,0:9", LISTS[1]: "0:1,0:2,0:3"}
    assert during[0] == [rates, rates | {RATES[0]: "7000000"}, rates, lists]
    assert configs(model, ConfigResource.topic("t")) == {LISTS[0]: "0:9"}
    assert configs(model, ConfigResource.broker(2)) == {}, "it deletes what it has not set, too"


def test_it_waits_where_brokers_have_a_default_rate_until_that_is_gone() -> None:
    model, clock = cluster()
    default = ConfigResource.cluster_default()
    model.actions.set_config(default, RATES[0], "7000000")
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        clock.wait(seconds)
        model.catch_up_with_clock()
        if len(waited) == 12:
            model.actions.set_config(default, RATES[0], None)

    CruiseControl(model.port(), wait).execute(PART, (3, 2), 1_000_000)
    looked = waited.index(5.0)
    assert waited[looked:] == [5.0 * 2**n for n in range(len(waited) - looked)]
    assert 12 <= len(waited) <= 13, "a broker has read it a moment later"
    assert waited[-1] > 60.0, "longer and longer"
    assert configs(model, ConfigResource.topic("t")) == {}


def test_it_begins_nothing_while_others_reassign() -> None:
    model, clock = cluster()
    model.actions.reassign(PART, (3, 2))
    CruiseControl(model.port(), clock.wait).execute(PART, (3, 1), 1_000_000)
    assert configs(model, ConfigResource.topic("t")) == {}
