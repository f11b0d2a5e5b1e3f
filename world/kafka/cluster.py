"""The model as a whole: a Kafka cluster whose time is moved on by whoever owns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId
from world.kafka.actions import Actions
from world.kafka.brokers import Brokers, records_of
from world.kafka.config_definitions import MIN_ISR
from world.kafka.controller import Controller
from world.kafka.controlling import ELR
from world.kafka.hooks import Clock
from world.kafka.metadata import Table, View
from world.kafka.movement import Movement
from world.kafka.nodes import BrokerSpec, Disk, Node
from world.kafka.port import ModelPort
from world.kafka.quota import Quota
from world.kafka.upkeep import Upkeep
from world.kafka.world_state import WorldState

_OF_4_3 = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
FEATURES = {(4, 3): _OF_4_3, (4, 4): {**_OF_4_3, "metadata.version": 33, "share.version": 2}}
"""Finalized features of a new cluster, by version."""


class KafkaModel:
    """A cluster in memory, in virtual time.

    ``world`` is the truth, as plain state to be read; ``actions`` is what anybody else may do to
    it; :meth:`port` is how a client sees it. Everything that happens by itself happens in
    :meth:`advance_to`, in an order that depends on the seed and on nothing else.

    :param clock: virtual time; the model follows it whenever it is looked at through a port.
    :param rng: every choice of the model is drawn from it.
    :param brokers: how many (two log dirs of 100 GB each, racks in turn), or the rack of each from
        broker 1 on, or each by its id.
    :param version: Kafka's, as (major, minor), of every broker and of the cluster's features.
    :param secured: whether ACLs hold.
    :param efficiency: part of a throttle's rate that brokers deliver.
    :param balances_leaders: auto.leader.rebalance.enable, which is on unless a cluster says no.
    """

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        brokers: int | Sequence[str] | Mapping[BrokerId, BrokerSpec] = 4,
        version: tuple[int, int] = (4, 3),
        *,
        secured: bool = False,
        efficiency: float = 0.88,
        balances_leaders: bool = False,
        cluster_id: str = "model",
    ) -> None:
        self.clock = clock
        self.version = version
        self.cluster_id = cluster_id
        self.world = WorldState(rng, clock.now(), version, efficiency, secured)
        self.controller = Controller(self.world)
        self.brokers = Brokers(self.world, self.controller)
        self.movement = Movement(self.world, self.brokers, self.controller)
        self.upkeep = Upkeep(self.world, self.controller, balances_leaders)
        self.actions = Actions(self.world, self.controller, self.brokers)
        specs = dict(brokers) if isinstance(brokers, Mapping) else self._usual(brokers)
        for broker, spec in sorted(specs.items()):
            self.world.nodes[broker] = self._node(broker, spec)
        self.world.commit(self._first_records())
        for node in self.world.nodes.values():
            node.view.catch_up(self.world.now + node.view.lag_s)
            self.brokers.take_up_configs(node)
        self.upkeep.begin()

    def advance_to(self, when: float) -> None:
        """Let everything happen that happens by itself until then."""
        self.movement.turn()
        while True:
            at = self.next_event_at()
            if at > when:
                break
            self.movement.move_on(max(at, self.world.now))
            for event in self.world.due():
                event()
            self.movement.turn()
        self.movement.move_on(max(when, self.world.now))

    def next_event_at(self) -> float:
        """When something happens by itself next, at the earliest; infinite = never."""
        return min(self.world.next_event_at, self.movement.next_change_at)

    def catch_up_with_clock(self) -> None:
        """Advance to the time that the clock shows."""
        self.advance_to(self.clock.now())

    def port(self, principal: str = "User:admin", name: str = "model") -> ModelPort:
        """How a client sees the cluster who logs in as this principal."""
        return ModelPort(self, principal, name)

    def _usual(self, brokers: int | Sequence[str]) -> dict[BrokerId, BrokerSpec]:
        if isinstance(brokers, int):
            brokers = [f"/dc{number % 2}/r{number // 2}" for number in range(1, brokers + 1)]
        return {
            broker: BrokerSpec(rack=rack, version=self.version)
            for broker, rack in enumerate(brokers, 1)
        }

    def _node(self, broker: BrokerId, spec: BrokerSpec) -> Node:
        lag_s = spec.metadata_lag_s
        if lag_s is None:
            lag_s = round(self.world.rng.uniform(0.005, 0.08), 3)
        node = Node(
            id=broker,
            spec=spec,
            view=View(self.world.log, lag_s),
            disks={path: Disk(path, size) for path, size in spec.log_dirs.items()},
            leader_quota=Quota(),
            follower_quota=Quota(),
            log_dirs_quota=Quota(),
            clean_shutdown=False,
            static=dict(spec.static),
        )
        node.wake = partial(self.brokers.take_news, node)
        return node

    def _first_records(self) -> list[Table]:
        features = FEATURES.get(self.version, FEATURES[4, 3])
        records = [Table("features", name, level) for name, level in features.items()]
        if features.get(ELR):
            # A cluster with ELR keeps its min ISR where every broker has the same (KIP-966).
            records.append(Table("configs", ConfigResource.cluster_default(), {MIN_ISR: "1"}))
        return records + records_of(self.world.nodes)
