"""What brokers do by themselves: read metadata, make and drop replicas, lead, follow, report."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial

from rehome.domain.kafka import BrokerId
from world.kafka.config_definitions import (
    CORDONED,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    LOG_DIRS_RATE,
)
from world.kafka.config_rules import parts
from world.kafka.controller import Controller
from world.kafka.log import EpochStart
from world.kafka.metadata import Partition, PartitionKey, Paths, Registration, Table, View
from world.kafka.nodes import Disk, Node, Process, Replica
from world.kafka.quota import UNLIMITED, Quota
from world.kafka.world_state import LAG_MAX_S, WorldState, of_topic

HEARTBEAT_S = 0.5
START_S = 2.0
"""From the start of a broker's process to its registration, without any log to recover."""
RATES = {LEADER_RATE: "leader_quota", FOLLOWER_RATE: "follower_quota"}


class Brokers:
    """The brokers of a world."""

    def __init__(self, world: WorldState, controller: Controller) -> None:
        self._world = world
        self._controller = controller

    # -- metadata -----------------------------------------------------------------------------

    def take_news(self, node: Node, *, at_once: bool = False) -> None:
        """Read what the controllers have written, and act on it; ``at_once``: without any lag."""
        if not node.running or node.cut_off or not self._world.controllers_up:
            return
        lag_s = node.view.lag_s if at_once else 0.0
        news = node.view.catch_up(self._world.now + lag_s)
        keys = [record.key for record in news if record.name == "partitions"]
        for key in dict.fromkeys(keys):
            self.settle(node, key)
        if any(record.name == "configs" for record in news):
            self.take_up_configs(node)
        if news:
            self._world.flows_changed = True

    def settle(self, node: Node, key: PartitionKey) -> None:
        """Make the broker's replica what its view of the metadata says."""
        wanted = node.view.image.partitions.get(key)
        replica = node.replicas.get(key)
        if wanted is None or node.id not in wanted.replicas:
            node.replicas.pop(key, None)
            return
        if replica is None:
            replica = self._new_replica(node, key, wanted)
        if replica is None or not node.hosts(replica):
            return
        if wanted.leader == node.id:
            if wanted.leader_epoch > replica.epoch:
                replica.log.epochs.append(EpochStart(wanted.leader_epoch, replica.log.end))
            if replica.fetching_from is not None:
                replica.fetching_from, replica.high_watermark = None, 0.0
        else:
            replica.fetching_from = wanted.leader
        replica.epoch = max(replica.epoch, wanted.leader_epoch)

    def _new_replica(self, node: Node, key: PartitionKey, wanted: Partition) -> Replica | None:
        path = node.preferred_dirs.pop(key, None) or self._emptiest(node)
        if path is None:
            return None
        topic = node.view.image.names.get(key.topic_id, "")
        replica = Replica(key, topic, path, behind_since=self._world.now)
        node.replicas[key] = replica
        if len(node.disks) > 1:  # a broker with one log dir has nothing to tell
            self._world.at(self._world.now, partial(self._tell_dir, node, key))
        return replica

    def _tell_dir(self, node: Node, key: PartitionKey) -> None:
        replica = node.replicas.get(key)
        if replica is not None and self._world.controller_sees(node):
            self._controller.assign_dir(key, node.id, replica.path)

    def _emptiest(self, node: Node) -> str | None:
        """The log dir with the fewest replicas; one that is cordoned only if all are."""
        count = {path: 0 for path, disk in node.disks.items() if disk.online}
        for replica in node.replicas.values():
            for path in (replica.path, replica.future.path if replica.future else None):
                if path in count:
                    count[path] += 1
        cordoned = self.cordoned(node)
        willing = {path: number for path, number in count.items() if path not in cordoned} or count
        return min(willing, key=lambda path: willing[path]) if willing else None

    def take_up_configs(self, node: Node) -> None:
        """Rates of quotas and cordons, as the broker knows them now."""
        values = self._world.effective(node, node.view.image)
        for key, name in RATES.items():
            quota: Quota = getattr(node, name)
            quota.set_rate(_rate(values, key, self._world.efficiency))
        node.log_dirs_quota.set_rate(_rate(values, LOG_DIRS_RATE, self._world.efficiency))
        known = self._world.image.brokers.get(node.id)
        if known is not None and known.cordoned_dirs != self.cordoned(node):
            self._world.at(self._world.now + HEARTBEAT_S, partial(self._tell_cordons, node))
        self._world.flows_changed = True

    def cordoned(self, node: Node) -> Paths:
        """Log dirs that the broker takes for cordoned."""
        values = self._world.effective(node, node.view.image)
        named = [path.strip() for path in parts(values.get(CORDONED, ""))]
        return tuple(sorted(node.disks if named == ["*"] else named))

    def _tell_cordons(self, node: Node) -> None:
        if self._world.controller_sees(node):
            self._controller.dirs_cordoned(node.id, self.cordoned(node))

    def throttles(self, node: Node, key: PartitionKey, topic: str, leads: bool) -> bool:
        """Whether a broker's quota holds for a partition, by its view of the topic's list."""
        name = LEADER_LIST if leads else FOLLOWER_LIST
        listed = node.view.image.config(of_topic(topic)).get(name, "")
        return bool(listed) and _lists(listed, key.number, node.id)

    # -- lives --------------------------------------------------------------------------------

    def silent(self, node: Node) -> None:
        """The controllers hear nothing of a broker any more; it is fenced when its session ends."""
        if node.silent_since is None:
            node.silent_since = self._world.now
            end = self._world.now + self._world.session_s
            self._world.at(end, partial(self._session_ends, node, node.silent_since))
        self._world.at(self._world.now + LAG_MAX_S, self.shrink_isrs)
        self._world.flows_changed = True

    def heard(self, node: Node) -> None:
        """The controllers hear a broker again."""
        if not self._world.controller_sees(node):
            return
        node.silent_since = None
        self.take_news(node)
        known = self._world.image.brokers.get(node.id)
        if known is not None and known.fenced and known.incarnation == node.incarnation:
            self._world.at(self._world.now + HEARTBEAT_S, partial(self._caught_up, node))
        self._world.flows_changed = True

    def _session_ends(self, node: Node, since: float) -> None:
        if node.silent_since != since:
            return
        if not self._world.controllers_up:
            self._world.at(self._world.now + 1.0, partial(self._session_ends, node, since))
            return
        self._controller.fence(node.id)

    def shrink_isrs(self) -> None:
        """Leaders drop followers that lack something and have not fetched for 30 s."""
        for key, part in list(self._world.image.partitions.items()):
            leader = self._world.nodes.get(part.leader) if part.leader is not None else None
            if leader is None or not self._world.controller_sees(leader):
                continue
            end = leader.replicas[key].log.end if key in leader.replicas else 0.0
            late = {one for one in part.isr if self._late(key, one, end)} - {leader.id}
            if late:
                left = set(part.isr) - late
                self._controller.alter_isr(key, leader.id, part.leader_epoch, left)

    def _late(self, key: PartitionKey, broker: BrokerId, end: float) -> bool:
        node = self._world.nodes.get(broker)
        replica = node.replicas.get(key) if node is not None else None
        if node is None or replica is None:
            return True
        fetches = node.running and node.hosts(replica) and replica.fetching_from is not None
        since = self._world.now - replica.behind_since
        return not fetches and replica.log.end < end and since >= LAG_MAX_S - 1e-6

    def start(self, node: Node) -> None:
        """The broker's process starts; it is refused while its former session lasts."""
        node.process = Process.REGISTERING
        node.incarnation += 1
        self._world.at(self._world.now + START_S, partial(self._register, node, node.incarnation))

    def _register(self, node: Node, incarnation: int) -> None:
        if node.process is not Process.REGISTERING or node.incarnation != incarnation:
            return
        known = self._world.image.brokers.get(node.id)
        unheard = not self._world.controllers_up or node.cut_off
        if unheard or (known is not None and not known.fenced):
            self._world.at(
                self._world.now + HEARTBEAT_S, partial(self._register, node, incarnation)
            )
            return
        online = tuple(sorted(path for path, disk in node.disks.items() if disk.online))
        node.view = View(self._world.log, node.view.lag_s)
        new = Registration(node.id, node.spec.rack, incarnation, True, online, ())
        self._controller.register(new, node.clean_shutdown)
        node.process, node.silent_since, node.clean_shutdown = Process.RUNNING, None, False
        for quota in (node.leader_quota, node.follower_quota, node.log_dirs_quota):
            quota.burst = quota.peak = quota.pause_s = quota.traffic = 0.0
        node.view.catch_up(self._world.now + node.view.lag_s)
        self.take_up_configs(node)
        for key in [*node.replicas, *node.view.image.partitions]:
            self.settle(node, key)
        self._world.at(self._world.now + HEARTBEAT_S, partial(self._caught_up, node))
        self._world.flows_changed = True

    def _caught_up(self, node: Node) -> None:
        if self._world.controller_sees(node):
            self._controller.unfence(node.id)

    def disk_fails(self, node: Node, disk: Disk) -> None:
        """A log dir goes offline (KafkaStorageException): all its replicas are lost to clients."""
        disk.online = False
        self._world.flows_changed = True
        if not any(one.online for one in node.disks.values()):
            node.process = Process.DEAD  # a broker without a log dir shuts itself down
            self.silent(node)
            return
        self._world.at(self._world.now + HEARTBEAT_S, partial(self._tell_dirs, node))

    def _tell_dirs(self, node: Node) -> None:
        if self._world.controller_sees(node):
            online = tuple(sorted(path for path, disk in node.disks.items() if disk.online))
            self._controller.dirs_offline(node.id, online)


@lru_cache(10_000)
def _lists(value: str, number: int, broker: BrokerId) -> bool:
    items = [item.strip() for item in value.split(",")]
    return items == ["*"] or f"{number}:{broker}" in items


def _rate(values: Mapping[str, str], key: str, efficiency: float) -> float:
    return float(values[key]) * efficiency if key in values else UNLIMITED


def records_of(specs: Mapping[BrokerId, Node]) -> list[Table]:
    """Registrations of the brokers that a world begins with."""
    return [
        Table(
            "brokers",
            node.id,
            Registration(
                node.id, node.spec.rack, node.incarnation, False, tuple(sorted(node.disks)), ()
            ),
        )
        for node in specs.values()
    ]
