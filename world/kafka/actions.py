"""What anybody may do to a cluster: people, other tools, producers, and bad luck.

Nothing here needs a right, and everything happens at once, at the world's time. A client's own
calls go through a port.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, BrokerId, ConsumerGroup, TopicPartition
from world.kafka.acls import Binding
from world.kafka.brokers import Brokers
from world.kafka.controller import Controller
from world.kafka.log import Log
from world.kafka.metadata import PartitionKey, Table
from world.kafka.nodes import Node, Process
from world.kafka.world_state import Producer, WorldState

SHUTDOWN_S = 1.0


class Actions:
    """Actions of a world; those that a controller may refuse return its error."""

    def __init__(self, world: WorldState, controller: Controller, brokers: Brokers) -> None:
        self._world = world
        self._controller = controller
        self._brokers = brokers

    # -- topics -------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        assignment: Sequence[Sequence[BrokerId]],
        configs: Mapping[str, str] | None = None,
    ) -> BrokerError | None:
        """Create a topic with these replicas."""
        return self._controller.error_of(
            partial(self._controller.create_topic, name, assignment, configs or {})
        )

    def delete_topic(self, name: str) -> BrokerError | None:
        """Delete a topic."""
        return self._controller.error_of(partial(self._controller.delete_topic, name))

    def create_partitions(
        self, name: str, total: int, assignment: Sequence[Sequence[BrokerId]] | None = None
    ) -> BrokerError | None:
        """Raise a topic to this many partitions."""
        return self._controller.error_of(
            partial(self._controller.create_partitions, name, total, assignment)
        )

    def reassign(
        self, part: TopicPartition, target: Sequence[BrokerId] | None
    ) -> BrokerError | None:
        """Begin a reassignment, or (None) cancel it, as Kafka's tool does."""
        return self._controller.error_of(
            partial(self._controller.alter_reassignment, part, target, True)
        )

    def elect(self, part: TopicPartition, *, unclean: bool = False) -> BrokerError | None:
        """Elect the preferred leader, or an unclean one."""
        return self._controller.error_of(partial(self._controller.elect, part, unclean))

    # -- data ---------------------------------------------------------------------------------

    def produce(
        self,
        part: TopicPartition,
        rate: float,
        *,
        message_bytes: float = 1_000.0,
        acks: str = "all",
    ) -> None:
        """Write to a partition from now on at this many bytes per second; 0 ends it."""
        found = self._world.partition(part)
        if found is None:
            return
        if rate > 0:
            self._world.producers[found[0]] = Producer(rate, message_bytes, acks)
        else:
            self._world.producers.pop(found[0], None)
        self._world.flows_changed = True

    def fill(self, part: TopicPartition, size: float, message_bytes: float = 1_000.0) -> None:
        """Write this many bytes at once; those of the ISR that run have them at once, too."""
        found = self._world.partition(part)
        if found is None:
            return
        key, state = found
        first: Log | None = None
        for broker in sorted(state.isr, key=lambda each: (each != state.leader, each)):
            node = self._world.nodes[broker]
            if key not in node.replicas:
                self._brokers.take_news(node, at_once=True)
            if key not in node.replicas:
                continue  # it has just been killed
            log = node.replicas[key].log
            if first is None:
                first = log
                first.append(size, message_bytes)
            # With its epochs: a follower that knows none cuts off all that it has.
            log.follow(first, first.end)
            self._world.acknowledged[key] = first.end
        self._world.flows_changed = True

    def delete_records(self, part: TopicPartition, before: float) -> None:
        """DeleteRecords: the log start moves; what is below stays on disk until a segment goes."""
        found = self._world.partition(part)
        if found is None:
            return
        key, state = found
        for broker in state.replicas:
            replica = self._world.nodes[broker].replicas.get(key)
            if replica is not None:
                replica.log.start = max(replica.log.start, min(before, replica.log.end))

    # -- configs and rights -------------------------------------------------------------------

    def set_config(
        self, resource: ConfigResource, key: str, value: str | None
    ) -> BrokerError | None:
        """Set a dynamic config of a topic, of a broker or of all; None deletes it."""
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        change = ConfigChange(resource, key, operation, value)
        return self._controller.error_of(
            partial(self._controller.alter_configs, resource, [change])
        )

    def set_static(self, broker: BrokerId, key: str, value: str | None) -> None:
        """Edit a broker's server.properties; it takes effect when the broker starts again."""
        node = self._world.nodes[broker]
        static = {**node.spec.static, **({key: value} if value is not None else {})}
        if value is None:
            static.pop(key, None)
        node.spec = replace(node.spec, static=static)

    def allow(self, bindings: Collection[Binding]) -> None:
        """Add ACLs."""
        self._world.commit([Table("acls", binding, True) for binding in bindings])

    def revoke(self, bindings: Collection[Binding]) -> None:
        """Take ACLs away."""
        self._world.commit([Table("acls", binding, None) for binding in bindings])

    def set_groups(self, groups: Collection[ConsumerGroup]) -> None:
        """These are the consumer groups, with what they have committed."""
        self._world.groups = sorted(groups, key=lambda group: group.name)

    # -- brokers ------------------------------------------------------------------------------

    def kill(self, broker: BrokerId) -> None:
        """SIGKILL: the controllers notice when its session ends."""
        node = self._world.nodes[broker]
        node.process, node.clean_shutdown = Process.DEAD, False
        self._brokers.silent(node)

    def stop(self, broker: BrokerId) -> None:
        """A clean shutdown: leaders are handed over first."""
        node = self._world.nodes[broker]
        if not node.running:
            return
        if not self._world.controller_sees(node):
            self.kill(broker)
            return
        self._controller.shut_down(broker)
        self._world.at(self._world.now + SHUTDOWN_S, partial(self._stopped, node))

    def _stopped(self, node: Node) -> None:
        if node.running:
            node.process, node.clean_shutdown = Process.DEAD, True
            self._controller.fence(node.id)
            self._brokers.silent(node)

    def start(
        self,
        broker: BrokerId,
        *,
        empty: bool = False,
        rack: str | None = None,
        version: tuple[int, int] | None = None,
    ) -> None:
        """Start a broker that is dead.

        :param empty: all its disks are new.
        :param rack: it has been moved to this one.
        :param version: it has been upgraded, or downgraded.
        """
        node = self._world.nodes[broker]
        if node.process is not Process.DEAD:
            return
        if empty:
            self._world.wiped |= dict.fromkeys(node.replicas, self._world.now)
            node.replicas.clear()
            node.clean_shutdown = False
            for disk in node.disks.values():
                disk.online, disk.other_bytes = True, 0.0
        spec = replace(
            node.spec,
            rack=rack if rack is not None else node.spec.rack,
            version=version or node.spec.version,
        )
        node.spec, node.static = spec, dict(spec.static)
        self._brokers.start(node)

    def pause(self, broker: BrokerId) -> None:
        """SIGSTOP: connections stay open, and nothing answers."""
        node = self._world.nodes[broker]
        if node.running:
            node.process = Process.PAUSED
            self._brokers.silent(node)

    def resume(self, broker: BrokerId) -> None:
        """SIGCONT."""
        node = self._world.nodes[broker]
        if node.process is Process.PAUSED:
            node.process = Process.RUNNING
            self._brokers.heard(node)

    def cut_off(self, broker: BrokerId) -> None:
        """The broker does not reach the controllers any more; clients and brokers reach it."""
        node = self._world.nodes[broker]
        node.cut_off = True
        self._brokers.silent(node)

    def reconnect(self, broker: BrokerId) -> None:
        """The broker reaches the controllers again."""
        node = self._world.nodes[broker]
        node.cut_off = False
        self._brokers.heard(node)

    def lag(self, broker: BrokerId, seconds: float) -> None:
        """The broker reads metadata this much later than it is written."""
        self._world.nodes[broker].view.lag_s = seconds

    def unregister(self, broker: BrokerId) -> None:
        """The cluster forgets a broker that is dead."""
        self._controller.unregister(broker)

    def stop_controllers(self) -> None:
        """No controller is there: data keeps flowing, administration times out."""
        self._world.controllers_up = False
        self._world.flows_changed = True

    def start_controllers(self) -> None:
        """The controllers are back; every session begins anew."""
        self._world.controllers_up = True
        for node in self._world.nodes.values():
            if node.silent_since is not None:
                node.silent_since = None
                if not node.running or node.cut_off:
                    self._brokers.silent(node)
            self._brokers.heard(node)

    # -- disks --------------------------------------------------------------------------------

    def fill_disk(self, broker: BrokerId, path: str, other_bytes: float) -> None:
        """Files that are none of Kafka's take this much of a log dir."""
        self._world.nodes[broker].disks[path].other_bytes = other_bytes
        self._world.flows_changed = True

    def fail_disk(self, broker: BrokerId, path: str) -> None:
        """A log dir cannot be written to any more."""
        node = self._world.nodes[broker]
        if node.disks[path].online:
            self._brokers.disk_fails(node, node.disks[path])

    def key(self, part: TopicPartition) -> PartitionKey | None:
        """A partition's key in the world's tables, by its topic's id."""
        found = self._world.partition(part)
        return found[0] if found is not None else None
