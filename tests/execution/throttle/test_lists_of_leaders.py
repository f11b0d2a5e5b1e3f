"""The list of leaders holds every replica that may come to lead while something is to be copied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.throttle import configs as throttle_configs
from rehome.execution.throttle import plan_throttle
from rehome.execution.throttle.ensure import ensure
from rehome.execution.throttle.keys import FOLLOWER_REPLICAS, LEADER_REPLICAS, list_items
from rehome.execution.throttle.rate_scope import DEFAULT_HONOURED_SINCE, METADATA_VERSION
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import make_plan, move

LEADERS, FOLLOWERS = ("t", LEADER_REPLICAS), ("t", FOLLOWER_REPLICAS)
TWO_MORE = move("t", 0, (1,), (1, 2, 3))
TOPIC = ConfigResource.topic("t")


def test_a_single_new_replica_never_leads_while_it_is_copied() -> None:
    items = list_items([move("t", 0, (1, 2), (3, 2))])
    assert items == {LEADERS: ("0:1", "0:2"), FOLLOWERS: ("0:3",)}


def test_one_of_several_new_replicas_may_lead_while_the_next_is_copied() -> None:
    items = list_items([TWO_MORE])
    assert items == {LEADERS: ("0:1", "0:2", "0:3"), FOLLOWERS: ("0:2", "0:3")}


class World:
    """A plan of one move, its ledger, and its cluster in memory."""

    def __init__(self, url: str, *moves: Move) -> None:
        self.plan: Plan = make_plan("p", TWO_MORE, *moves)
        features = {METADATA_VERSION: DEFAULT_HONOURED_SINCE}
        self.cluster = SimulatedCluster([1, 2, 3], self.plan.moves, features)
        self.url = url
        with Ledger.open(url) as ledger:
            ledger.create_plan(self.plan, {}, "", "", "")
            ledger.approve("p", self.plan.plan_hash, "")

    def with_ledger(self, call: Callable[[Ledger, OwnCluster], object]) -> None:
        with Ledger.open(self.url) as ledger:
            call(ledger, cast(OwnCluster, self.cluster))

    def set_up(self) -> None:
        self.with_ledger(lambda led, port: set_up_throttle(self.plan, led, port, 1000))

    def poll(self) -> None:
        moves = self.plan.moves
        self.with_ledger(lambda led, port: ensure(self.plan, led, port, moves, in_flight=True))

    def gone(self) -> list[str]:
        """What the events say of losses."""
        with Ledger.open(self.url) as ledger:
            events = ledger.events("p")
        return [event.detail for event in events if event.kind is EventKind.THROTTLE_GONE]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(throttle_configs, "SETTLE_S", 0)
    monkeypatch.setattr(throttle_configs, "VERIFY_POLL_S", 0)
    return World(f"sqlite:///{tmp_path}/ledger.db")


def test_a_plan_of_an_earlier_version_gets_the_items_that_it_lacks_and_nothing_is_said_of_a_loss(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        old = {LEADERS: ("0:1",), FOLLOWERS: ("0:2", "0:3")}
        earlier.setattr(plan_throttle, "list_items", lambda _moves: old)
        world.set_up()
    assert world.cluster.configs[TOPIC, LEADER_REPLICAS] == "0:1"
    world.poll()
    assert world.cluster.configs[TOPIC, LEADER_REPLICAS] == "0:1,0:2,0:3"
    assert world.gone() == []


@pytest.mark.parametrize("rest", ["0:1", "0:2,0:3", ""])
def test_items_that_another_client_has_taken_off_are_a_loss(world: World, rest: str) -> None:
    world.set_up()
    world.cluster.configs[TOPIC, LEADER_REPLICAS] = rest
    world.poll()
    items = world.cluster.configs[TOPIC, LEADER_REPLICAS].split(",")
    assert sorted(filter(None, items)) == ["0:1", "0:2", "0:3"]
    assert len(world.gone()) == 1


def test_a_loss_of_one_list_is_told_of_that_list_alone(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = World(f"sqlite:///{tmp_path}/two.db", move("u", 0, (1,), (2,)))
    with monkeypatch.context() as earlier:
        of_t = {LEADERS: ("0:1",), FOLLOWERS: ("0:2", "0:3")}
        of_u = {("u", LEADER_REPLICAS): ("0:1",), ("u", FOLLOWER_REPLICAS): ("0:2",)}
        earlier.setattr(plan_throttle, "list_items", lambda _moves: of_t | of_u)
        two.set_up()
    two.cluster.configs[ConfigResource.topic("u"), FOLLOWER_REPLICAS] = ""
    two.poll()
    assert two.cluster.configs[TOPIC, LEADER_REPLICAS] == "0:1,0:2,0:3"
    (told,) = two.gone()
    assert "topic u" in told
    assert "0:2 was not on it any more" in told
