"""Which rates are set at brokers and which as a default, by the brokers' version."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import ConfigValue, PartitionState, TopicDescription
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, source_of
from rehome.execution.throttle.rate_scope import (
    CRUISE_CONTROL_TOPICS,
    choose_rates,
    default_is_honoured,
    hangs_on_default,
    own_by_key,
    set_up_by_broker,
)
from rehome.ledger.base.records import ThrottleEntry, ThrottleState

DEFAULT, ONE, TWO = (
    ConfigResource.cluster_default(),
    ConfigResource.broker(1),
    ConfigResource.broker(2),
)
OURS = 500


def entry(
    resource: ConfigResource, prior: str | None, *ours: str, key: str = FOLLOWER_RATE
) -> ThrottleEntry:
    return ThrottleEntry("p", "c", resource, key, ours, prior, "", ThrottleState.APPLIED)


def chosen(
    own: Mapping[ConfigResource, str], *journal: ThrottleEntry, by_broker: bool = True
) -> tuple[dict[ConfigResource, str], dict[ConfigResource, int]]:
    """What is set, and which value of another client is in force, given these values."""
    found = {
        resource: {FOLLOWER_RATE: ConfigValue(own[resource], source_of(resource))}
        if resource in own
        else {}
        for resource in (DEFAULT, ONE, TWO)
    }
    known = {(item.resource, item.key): item for item in journal}
    choices = list(choose_rates(found, [FOLLOWER_RATE], OURS, by_broker=by_broker, entries=known))
    return (
        {c.resource: c.rate for c in choices if c.rate is not None and not c.done},
        {c.resource: c.holds for c in choices if c.holds is not None},
    )


@pytest.mark.parametrize("by_broker", [True, False])
@pytest.mark.parametrize(
    ("own", "theirs", "wanted", "holds"),
    [
        (200, None, "200", None),
        (900, None, "900", None),  # above the plan's
        (200, "300", "200", None),  # their own rate, which is put back in the end
        (200, "100", None, 100),
    ],
)
def test_a_broker_has_its_own_rate_whatever_the_default_is(
    by_broker: bool, own: int, theirs: str | None, wanted: str | None, holds: int | None
) -> None:
    before = {ONE: {FOLLOWER_RATE: ConfigValue(theirs, source_of(ONE))} if theirs else {}}
    found = {DEFAULT: {}, TWO: {}, **before}
    rates = own_by_key({("in", 1): own, ("out", 2): 7})
    choices = {
        c.resource: c
        for c in choose_rates(found, [FOLLOWER_RATE], OURS, by_broker=by_broker, own=rates)
    }
    assert (choices[ONE].rate, choices[ONE].holds) == (wanted, holds)
    assert choices[TWO].rate == (str(OURS) if by_broker else None), "that is of leaders"
    assert choices[DEFAULT].rate == (None if by_broker else str(OURS))


def test_a_brokers_own_rate_does_not_override_a_lower_default_of_another_client() -> None:
    default = {FOLLOWER_RATE: ConfigValue("100", source_of(DEFAULT))}
    rates = own_by_key({("in", 1): 200})
    found = {DEFAULT: default, ONE: {}}
    choices = choose_rates(found, [FOLLOWER_RATE], OURS, by_broker=False, own=rates)
    assert {c.resource: c.rate for c in choices} == {DEFAULT: None, ONE: "100"}


@pytest.mark.parametrize(
    ("features", "honoured"),
    [
        ({"metadata.version": 30, "kraft.version": 1}, True),
        ({"metadata.version": 21}, True),  # 3.9-IV0
        ({"metadata.version": 20}, False),  # 3.8-IV0: binaries may be 3.9 or not
        ({"kraft.version": 30}, False),
        ({}, False),  # ZooKeeper
    ],
)
def test_the_default_is_trusted_only_where_no_older_broker_can_be(
    features: dict[str, int], honoured: bool
) -> None:
    assert default_is_honoured(features) is honoured


@pytest.mark.parametrize("name", [*CRUISE_CONTROL_TOPICS, "orders"])
def test_cruise_control_is_noticed_by_any_of_its_topics(name: str) -> None:
    there = {0: PartitionState(1, (1,), frozenset({1}))}
    found = {each: TopicDescription(each, "", True, {}) for each in CRUISE_CONTROL_TOPICS}
    assert not hangs_on_default(found)
    found |= {name: TopicDescription(name, "id", True, there)} if name in found else {}
    assert hangs_on_default(found) is (name != "orders")


def test_one_default_rate_suffices_except_for_a_broker_with_a_higher_rate() -> None:
    assert chosen({}, by_broker=False) == ({DEFAULT: "500"}, {})
    assert chosen({ONE: "900"}, by_broker=False) == ({DEFAULT: "500", ONE: "500"}, {})
    assert chosen({DEFAULT: "100"}, by_broker=False) == ({}, {DEFAULT: 100})


def test_every_broker_gets_its_own_where_the_default_may_not_be_honoured() -> None:
    assert chosen({}) == ({ONE: "500", TWO: "500"}, {})
    assert chosen({DEFAULT: "900", ONE: "900"}) == ({ONE: "500", TWO: "500"}, {})
    assert chosen({ONE: "100"}) == ({TWO: "500"}, {ONE: 100})


def test_a_lower_default_is_not_hidden_by_ours() -> None:
    assert chosen({DEFAULT: "100"}) == ({ONE: "100", TWO: "100"}, {DEFAULT: 100})
    # Nor raised to: a broker's own rate wins over the default, and theirs was higher than ours.
    assert chosen({DEFAULT: "100", ONE: "900"})[0] == {ONE: "500", TWO: "100"}


def test_a_value_of_ours_that_is_already_set_is_not_set_again() -> None:
    both = {ONE: "500", TWO: "500"}
    assert chosen(both, entry(ONE, None, "500"), entry(TWO, "900", "500")) == ({}, {})
    assert chosen(both, entry(ONE, None, "500")) == ({}, {})  # the same rate, but not ours


def test_a_rate_that_another_client_deleted_is_set_again_only_where_nothing_else_throttles() -> (
    None
):
    journal = (entry(ONE, "900", "500"), entry(TWO, None, "500"))
    assert chosen({}, *journal) == ({ONE: "500", TWO: "500"}, {})
    gone = entry(ONE, "900", "500")
    assert chosen({DEFAULT: "500"}, gone, entry(DEFAULT, None, "500"), by_broker=False) == ({}, {})


def test_a_rate_that_another_client_changed_is_theirs_now() -> None:
    assert chosen({ONE: "700"}, entry(ONE, None, "500")) == ({TWO: "500"}, {ONE: 700})


def test_an_upgrade_that_is_finalized_in_mid_run_keeps_what_was_set_up() -> None:
    own = entry(ONE, None, "500")
    listed = entry(ConfigResource.topic("t"), None, "0:1", key=FOLLOWER_REPLICAS)
    assert set_up_by_broker([own, listed])
    assert not set_up_by_broker([listed])
    assert not set_up_by_broker([own, entry(DEFAULT, None, "500")])
    # A change of the rate reaches both what was set before and the default.
    old = {ONE: "200"}
    assert chosen(old, entry(ONE, None, "200"), by_broker=False)[0] == {ONE: "500", DEFAULT: "500"}
