"""Throttles on real brokers: earlier values are put back byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import PlanState
from rehome.execution.actions import SetRate
from rehome.execution.throttle.ensure import ensure
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LIST_LIMIT,
    LOG_DIR_RATE,
)
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.execution.throttle.rate_scope import CRUISE_CONTROL_TOPICS
from rehome.execution.throttle.set_up import (
    change_rate,
    clear_throttle,
    set_up_throttle,
    sweep,
)
from rehome.ledger.base.records import ThrottleState
from rehome.ledger.store import Ledger
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.killed import run_until_killed
from tests.execution.throttle.on_brokers import (
    leave_no_rates,  # noqa: F401 - an autouse fixture
    marks,
    set_config,
    throttle_settings,
)
from tests.ledger.small_plans import make_plan, move
from tests.versions.since import honours_default

pytestmark = honours_default

MakePlan = Callable[..., Plan]


@pytest.fixture
def foreign(gateway: OwnGateway) -> Callable[[ConfigResource, str, str], None]:
    """Sets throttles as another client would."""
    return lambda resource, key, value: set_config(gateway, resource, key, value)


def test_a_throttle_is_set_where_copies_go_and_taken_down_without_a_trace(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [2, 3], [3, 4]])
    plan = approved(
        move(topic, 0, (1, 2), (3, 2)),
        move(topic, 1, (2, 3), (4, 1)),
        move(topic, 2, (3, 4), (4, 3)),
    )
    resource = ConfigResource.topic(topic)
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    assert throttle_settings(gateway, topic) == {
        (resource, LEADER_REPLICAS): "0:1,0:2,1:2,1:3,1:4,1:1",
        (resource, FOLLOWER_REPLICAS): "0:3,1:4,1:1",
        (DEFAULT, LEADER_RATE): "5000000",
        (DEFAULT, FOLLOWER_RATE): "5000000",
    }
    assert {entry.state for entry in ledger.throttles(plan.plan_id)} == {ThrottleState.APPLIED}
    result = clear_throttle(plan.plan_id, ledger, gateway)
    assert (len(result.cleared), result.owed) == (4, ())
    assert throttle_settings(gateway, topic) == {}


def test_beside_cruise_control_no_default_is_set_and_brokers_have_rates_of_their_own(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topics.create_as(CRUISE_CONTROL_TOPICS[0], [[1]])
    plan = approved(move(topics.create([[1, 2]]), 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    brokers = [ConfigResource.broker(broker) for broker in (1, 2, 3)]
    both = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), "5000000")
    rates = {(broker, key): value for broker in brokers for key, value in both.items()}
    assert throttle_settings(gateway) == rates
    change_rate(plan, ledger, gateway, SetRate(6_000_000, "requested"))
    assert throttle_settings(gateway) == dict.fromkeys(rates, "6000000")
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway) == {}


def test_throttles_that_were_there_before_are_put_back_byte_for_byte(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    foreign: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2], [2, 3]])
    resource = ConfigResource.topic(topic)
    foreign(resource, LEADER_REPLICAS, "1:3,0:1,7:7")
    foreign(resource, FOLLOWER_REPLICAS, "")
    foreign(ConfigResource.broker(3), FOLLOWER_RATE, "30000000")
    foreign(ConfigResource.broker(2), LEADER_RATE, "1000000")
    foreign(DEFAULT, LEADER_RATE, "90000000")
    before = throttle_settings(gateway, topic)
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    result = set_up_throttle(plan, ledger, gateway, 5_000_000)
    assert throttle_settings(gateway, topic) == {
        (resource, LEADER_REPLICAS): "1:3,0:1,7:7,0:2",
        (resource, FOLLOWER_REPLICAS): "0:3",
        (ConfigResource.broker(3), FOLLOWER_RATE): "5000000",  # a higher one would win over ours
        (ConfigResource.broker(2), LEADER_RATE): "1000000",  # a lower one holds
        (DEFAULT, LEADER_RATE): "5000000",
        (DEFAULT, FOLLOWER_RATE): "5000000",
    }
    assert result.foreign_rates == {f"broker 2 {LEADER_RATE}": 1_000_000}
    set_up_throttle(plan, ledger, gateway, 5_000_000)  # a retry
    clear_throttle(plan.plan_id, ledger, gateway)
    del before[resource, FOLLOWER_REPLICAS]  # an empty list is as none to brokers (decision 056)
    assert throttle_settings(gateway, topic) == before


def test_a_list_that_covers_every_replica_is_left_alone(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    foreign: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2]])
    foreign(ConfigResource.topic(topic), FOLLOWER_REPLICAS, "*")
    before = throttle_settings(gateway, topic)
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    assert FOLLOWER_REPLICAS not in {entry.key for entry in ledger.throttles(plan.plan_id)}
    clear_throttle(plan.plan_id, ledger, gateway)
    assert throttle_settings(gateway, topic) == before


@pytest.mark.parametrize(
    ("when", "with_foreign"),
    [
        pytest.param(
            "before",
            False,
            marks=pytest.mark.simulated("the journal is written after the cluster"),
        ),
        pytest.param("before", True, marks=pytest.mark.long),
        pytest.param("after", False, marks=pytest.mark.long),
        ("after", True),
    ],
)
def test_a_set_up_killed_around_its_request_leaves_nothing_after_another_process_cleared(
    when: str,
    with_foreign: bool,
    cluster: LocalCluster,
    gateway: OwnGateway,
    ledger: Ledger,
    ledger_url: str,
    approved: MakePlan,
    topics: Any,
    foreign: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2]])
    if with_foreign:
        foreign(ConfigResource.topic(topic), LEADER_REPLICAS, "0:2,5:5")
        foreign(DEFAULT, FOLLOWER_RATE, "70000000")
    before = throttle_settings(gateway, topic)
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    # The first request sets rates, so that lists are set by the retry below.
    run_until_killed("set_up", "alter_configs", when, plan, ledger_url, cluster, 5_000_000)
    assert {e.state for e in ledger.throttles(plan.plan_id)} == {ThrottleState.JOURNALLED}
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == before
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    assert throttle_settings(gateway, topic) != before
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == before


def test_a_list_journalled_by_a_process_that_died_is_taken_back_though_it_was_not_seen_applied(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    entries = ledger.throttles(plan.plan_id)
    ledger.mark_throttles([replace(entry, state=ThrottleState.JOURNALLED) for entry in entries])
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == {}


def test_a_key_that_another_client_has_changed_since_stays_as_it_is(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    foreign: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2]])
    resource = ConfigResource.topic(topic)
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    foreign(DEFAULT, LEADER_RATE, "123456")
    foreign(resource, LEADER_REPLICAS, "0:1,0:2,9:9")  # theirs is the 9:9
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == {
        (DEFAULT, LEADER_RATE): "123456",
        (resource, LEADER_REPLICAS): "9:9",
    }
    details = {(e.resource, e.key): e.detail for e in ledger.throttles(plan.plan_id)}
    assert "another client has changed it since" in details[DEFAULT, LEADER_RATE]


def test_clearing_twice_and_clearing_what_was_never_set_does_nothing(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    assert clear_throttle(plan.plan_id, ledger, gateway).cleared == ()
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    assert len(clear_throttle(plan.plan_id, ledger, gateway).cleared) == 4
    assert clear_throttle(plan.plan_id, ledger, gateway).cleared == ()


def test_the_throttle_of_a_deleted_topic_counts_as_cleared(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    topics.delete_all()
    result = clear_throttle(plan.plan_id, ledger, gateway)
    assert (len(result.cleared), result.owed) == (4, ())


def test_the_rate_can_be_changed_in_mid_run_and_is_still_taken_down(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    foreign: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2]])
    foreign(ConfigResource.broker(3), FOLLOWER_RATE, "30000000")
    before = throttle_settings(gateway, topic)
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    change_rate(plan, ledger, gateway, SetRate(60_000_000, "requested"))
    now = throttle_settings(gateway, topic)
    assert now[DEFAULT, LEADER_RATE] == "60000000"
    assert now[ConfigResource.broker(3), FOLLOWER_RATE] == "30000000"  # theirs is the lower again
    assert ledger.plan(plan.plan_id).rate_bytes_per_s == 60_000_000
    change_rate(plan, ledger, gateway, SetRate(2_000_000, "requested"))
    assert throttle_settings(gateway, topic)[ConfigResource.broker(3), FOLLOWER_RATE] == "2000000"
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == before


def test_a_rate_that_another_client_deleted_is_set_again_before_a_move_starts(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    before = throttle_settings(gateway, topic)
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    throttled = throttle_settings(gateway, topic)
    deleted = ConfigChange(DEFAULT, FOLLOWER_RATE, ConfigOperation.DELETE)
    assert not any(gateway.alter_configs([deleted]).values())
    gone = DEFAULT, FOLLOWER_RATE
    wait_until(lambda: gone not in throttle_settings(gateway, topic), "the rate to go")

    def covered() -> bool:
        """A broker that has not heard of the change yet still shows the rate."""
        ensure(plan, ledger, gateway, plan.moves)
        return throttle_settings(gateway, topic) == throttled

    wait_until(covered, "the rate to be set again")
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == before


def test_moves_between_log_dirs_get_their_own_rate(
    cluster: LocalCluster, gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    first, second = (str(path) for path in cluster.log_dirs(1))
    plan = approved(move(topic, 0, (1, 2), (1, 2), 100, (first, "any"), (second, "any")))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    assert throttle_settings(gateway, topic) == {(DEFAULT, LOG_DIR_RATE): "5000000"}
    clear_throttle(plan.plan_id, ledger, gateway)
    assert throttle_settings(gateway, topic) == {}


def test_throttles_of_an_unreachable_cluster_stay_owed_and_are_taken_back_later(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    nowhere = Connection.from_settings({"bootstrap.servers": "127.0.0.1:1"})
    with OwnGateway(nowhere, request_timeout_s=2, connect_timeout_s=2) as unreachable:
        result = clear_throttle(plan.plan_id, ledger, unreachable)
    assert (result.cleared, len(result.owed)) == ((), 4)
    assert {e.state for e in ledger.throttles(plan.plan_id)} == {ThrottleState.OWED}
    ledger.transition(plan.plan_id, PlanState.FAILED, "cluster away")
    assert len(sweep(ledger, gateway).cleared) == 4
    assert throttle_settings(gateway, topic) == {}


def test_throttles_owed_by_an_earlier_plan_are_taken_back_and_not_taken_for_another_clients(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2], [2, 1]])
    first = approved(move(topic, 0, (1, 2), (3, 2)))
    second = approved(move(topic, 1, (2, 1), (3, 1)))
    set_up_throttle(first, ledger, gateway, 5_000_000)
    ledger.transition(first.plan_id, PlanState.FAILED, "its worker died")
    set_up_throttle(second, ledger, gateway, 8_000_000)
    assert throttle_settings(gateway, topic)[DEFAULT, LEADER_RATE] == "8000000"
    clear_throttle(second.plan_id, ledger, gateway)
    assert throttle_settings(gateway, topic) == {}


def test_two_installations_leave_what_was_there_before_whichever_ends_first(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    foreign: Callable[[ConfigResource, str, str], None],
    tmp_path: Path,
) -> None:
    topic = topics.create([[1, 2], [2, 1]])
    foreign(DEFAULT, LEADER_RATE, "9000000")
    first = approved(move(topic, 0, (1, 2), (3, 2)))
    second = make_plan("of-another", move(topic, 1, (2, 1), (3, 1)), cluster_id=first.cluster_id)
    with closing(Ledger.open(f"sqlite:///{tmp_path}/another.db")) as another:
        another.create_plan(second, {}, "memory://", "run-2", "bob")
        another.approve(second.plan_id, second.plan_hash, "bob")
        set_up_throttle(first, ledger, gateway, 5_000_000)
        set_up_throttle(second, another, gateway, 2_000_000)
        assert clear_throttle(first.plan_id, ledger, gateway).owed == ()
        found = throttle_settings(gateway, topic)
        assert [found[DEFAULT, key] for key in (LEADER_RATE, FOLLOWER_RATE)] == ["2000000"] * 2
        assert clear_throttle(second.plan_id, another, gateway).owed == ()
    assert throttle_settings(gateway, topic) == {(DEFAULT, LEADER_RATE): "9000000"}
    assert marks(gateway) == []


def test_a_running_plans_throttle_is_not_swept(
    gateway: OwnGateway, ledger: Ledger, approved: MakePlan, topics: Any
) -> None:
    topic = topics.create([[1, 2]])
    plan = approved(move(topic, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, ledger, gateway, 5_000_000)
    assert sweep(ledger, gateway).cleared == ()
    assert len(clear_throttle(plan.plan_id, ledger, gateway).cleared) == 4


def test_lists_too_long_as_a_whole_are_set_as_moves_start(
    gateway: OwnGateway,
    ledger: Ledger,
    approved: MakePlan,
    topics: Any,
    foreign: Callable[..., None],
) -> None:
    topic = topics.create([[1, 2], [2, 1]])
    resource = ConfigResource.topic(topic)
    # Room for one move's eight characters, not for two.
    filler = "1:9," + ",".join(f"{n}:1" for n in range(10_000, 10_000 + LIST_LIMIT // 8 - 1))
    foreign(resource, LEADER_REPLICAS, filler)
    before = throttle_settings(gateway, topic)
    plan = approved(move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (2, 1), (3, 1)))
    assert set_up_throttle(plan, ledger, gateway, 5_000_000).in_waves == (topic,)
    assert throttle_settings(gateway, topic)[resource, LEADER_REPLICAS] == filler
    ensure(plan, ledger, gateway, plan.moves[:1])
    assert throttle_settings(gateway, topic)[resource, LEADER_REPLICAS] == filler + ",0:1,0:2"
    ensure(plan, ledger, gateway, plan.moves[1:])  # the first move is not in flight any more
    assert throttle_settings(gateway, topic)[resource, LEADER_REPLICAS] == filler + ",1:2,1:1"
    assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
    assert throttle_settings(gateway, topic) == before
