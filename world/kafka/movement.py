"""Data in motion: who fetches from whom, at which rate, and what has come of it.

Rates hold from one event to the next: :class:`Movement` works them out when something has changed,
says when something will, and moves all logs on at once. Nothing is done per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from rehome.domain.kafka import BrokerId
from world.kafka.brokers import Brokers
from world.kafka.controller import Controller
from world.kafka.flows import Pair, share
from world.kafka.metadata import Partition, PartitionKey
from world.kafka.nodes import Node, Replica
from world.kafka.quota import UNLIMITED
from world.kafka.world_state import Producer, WorldState

DISK_COPY_BYTES_PER_S = 200e6
"""What a copy between two log dirs of a broker gets without a quota."""
FETCH_BYTES = 1_048_576
"""replica.fetch.max.bytes, of each partition."""
JOIN_S = 0.2
"""From the last byte to the leader's request to take a follower into the ISR."""
RETRY_S = 2.0
"""Until a leader asks again that was not heard, or refused."""
SHORTEST_S = 1e-4
"""Nothing changes by itself sooner: time always goes on."""
NOTHING = 0.5
"""Bytes that count as none: positions are floating-point numbers."""


class Movement:
    """Copies and producers of a world."""

    def __init__(self, world: WorldState, brokers: Brokers, controller: Controller) -> None:
        self._world = world
        self._brokers = brokers
        self._controller = controller
        self.pairs: list[Pair] = []
        self._writes: list[tuple[Node, Replica, Producer]] = []
        self._next_change = UNLIMITED
        self._joining: set[tuple[PartitionKey, BrokerId]] = set()

    # -- between events -----------------------------------------------------------------------

    def move_on(self, until: float) -> None:
        """Move all logs on to a time up to which nothing changes."""
        seconds = until - self._world.now
        self._world.now = until
        if seconds <= 0:
            return
        for _, replica, producer in self._writes:
            replica.log.append(producer.rate * seconds, producer.message_bytes)
            if producer.acks == "all":
                self._world.acknowledged[replica.key] = replica.log.end
        for pair in self.pairs:
            self._move_pair(pair, seconds)
        for node in self._world.nodes.values():
            for quota in (node.leader_quota, node.follower_quota, node.log_dirs_quota):
                quota.pass_by(seconds, until)

    def _move_pair(self, pair: Pair, seconds: float) -> None:
        log, leader = pair.log, pair.leader.log
        if not pair.copying:
            log.follow(leader, leader.end)
            pair.replica.behind_since = self._world.now
        elif pair.rate > 0:
            log.follow(leader, leader.after(log.end, pair.rate * seconds))
            if pair.behind <= NOTHING:
                log.follow(leader, leader.end)
        if log.start < leader.start:
            log.start = min(leader.start, log.end)

    @property
    def next_change_at(self) -> float:
        """When rates change by themselves: a copy ends, a quota turns, a disk is full."""
        return self._next_change

    # -- events -------------------------------------------------------------------------------

    def turn(self) -> None:
        """Something has changed, or is due: work out who moves how fast from now on."""
        if not self._world.flows_changed and self._world.now < self._next_change - 1e-9:
            return
        self._fill_disks()
        self._end_copies()
        self._world.flows_changed = False
        self.pairs = list(self._pairs())
        self._writes = list(self._producing())
        growth = {id(replica): producer.rate for _, replica, producer in self._writes}
        for pair in self.pairs:
            pair.appended = growth.get(id(pair.leader), 0.0)
        self._rate_copies()
        self._next_change = self._world.now + max(self._until_next(), SHORTEST_S)
        for pair in self.pairs:
            if not pair.between_log_dirs and not pair.copying and not self._in_isr(pair):
                self._ask_to_join(pair.replica, pair.node, JOIN_S)

    def _pairs(self) -> Iterator[Pair]:
        for node in self._world.nodes.values():
            if not node.running:
                continue
            for replica in node.replicas.values():
                if not node.hosts(replica):
                    continue
                pair = self._fetching(node, replica)
                if pair is not None:
                    yield pair
                if replica.future is not None and node.disks[replica.future.path].online:
                    yield Pair(node, replica, node, replica, True, 0.0, between_log_dirs=True)

    def _fetching(self, node: Node, replica: Replica) -> Pair | None:
        """The pair of a follower that reaches a leader of the same epoch."""
        leader_node = self._world.nodes.get(replica.fetching_from or -1)
        if leader_node is None or not leader_node.running:
            return None
        leader = leader_node.replicas.get(replica.key)
        if leader is None or leader.fetching_from is not None or not leader_node.hosts(leader):
            return None
        if leader.epoch != replica.epoch:
            return None
        self._connect(node, replica, leader)
        pair = Pair(leader_node, leader, node, replica, False, 0.0)
        pair.copying = pair.behind > NOTHING
        return pair

    def _connect(self, node: Node, replica: Replica, leader: Replica) -> None:
        """What a follower does first: cut off what its leader does not have, or begin anew."""
        log = replica.log
        last = log.epochs[-1].epoch if log.epochs else -1
        if log.end > 0:
            log.truncate(min(leader.log.end, leader.log.end_of_epoch(last)))
        local = max(leader.log.base, leader.log.start)
        if log.end < local:
            values = self._world.effective(node, node.view.image)
            tiered = values.get("follower.fetch.last.tiered.offset.enable") == "true"
            begin = max(local, leader.log.tiered_to) if tiered and log.end == 0 else local
            log.begin_at(begin)
            log.start, log.tiered_to = leader.log.start, leader.log.tiered_to

    def _producing(self) -> Iterator[tuple[Node, Replica, Producer]]:
        """Producers that get through: to a leader, with acks=all to an ISR that is large enough."""
        for key, producer in self._world.producers.items():
            part = self._world.image.partitions.get(key)
            node = self._world.nodes.get(part.leader) if part and part.leader is not None else None
            if part is None or node is None or not node.running or producer.rate <= 0:
                continue
            replica = node.replicas.get(key)
            if replica is None or not node.hosts(replica) or replica.fetching_from is not None:
                continue
            if producer.acks == "all" and not self._all_acknowledge(key, part, replica, producer):
                continue
            yield node, replica, producer

    def _all_acknowledge(
        self, key: PartitionKey, part: Partition, leader: Replica, producer: Producer
    ) -> bool:
        topic = self._world.image.names[key.topic_id]
        min_isr = int(self._world.topic_config(self._world.image, topic, "min.insync.replicas"))
        if len(part.isr) < min(min_isr, len(part.replicas)):
            return False
        following = {pair.node.id for pair in self.pairs if pair.leader is leader}
        waiting = set(part.isr) - following - {part.leader}
        if waiting and not any(self._lacks(key, one, leader) for one in waiting):
            # What was in flight when the ISR stopped answering is written, and never acknowledged.
            leader.log.append(min(producer.rate, 1e6) * 0.1, producer.message_bytes)
        return not waiting

    def _lacks(self, key: PartitionKey, broker: BrokerId, leader: Replica) -> bool:
        node = self._world.nodes.get(broker)
        replica = node.replicas.get(key) if node is not None else None
        return replica is None or replica.log.end < leader.log.end

    def _rate_copies(self) -> None:
        limits: dict[Any, float] = {}
        listed: dict[Any, float] = {}
        for node in self._world.nodes.values():
            for direction in ("in", "out"):
                limits[direction, node.id] = node.spec.network_bytes_per_s
            limits["disk", node.id] = min(node.log_dirs_quota.limit(0.0), DISK_COPY_BYTES_PER_S)
        for pair in self.pairs:
            if pair.between_log_dirs:
                pair.limits = [("disk", pair.node.id)]
                continue
            pair.limits = [("in", pair.node.id), ("out", pair.leader_node.id)]
            for side in self._throttled(pair):
                if pair.copying and not (side[0] == "leader" and self._in_isr(pair)):
                    pair.limits.append(side)
                else:
                    listed[side] = listed.get(side, 0.0) + pair.appended
        self._fetch()
        for node in self._world.nodes.values():
            leads, follows = ("leader", node.id), ("follower", node.id)
            limits[leads] = node.leader_quota.limit(listed.get(leads, 0.0))
            limits[follows] = node.follower_quota.limit(listed.get(follows, 0.0))
        share(self.pairs, limits)
        self._measure(listed)

    def _fetch(self) -> None:
        """What copies under a quota get in one fetch, which passes as a whole."""
        sizes: dict[Any, float] = {}
        for pair in self.pairs:
            for key in pair.limits:
                if pair.copying and key[0] in ("leader", "follower"):
                    sizes[key] = sizes.get(key, 0.0) + min(pair.behind, FETCH_BYTES)
        for (side, broker), size in sizes.items():
            node = self._world.nodes[broker]
            (node.leader_quota if side == "leader" else node.follower_quota).fetch(size)

    def _measure(self, listed: dict[Any, float]) -> None:
        """Traffic that each quota sees from now on."""
        passing = dict(listed)
        for pair in self.pairs:
            for key in pair.limits:
                if key[0] in ("leader", "follower", "disk") and pair.copying:
                    passing[key] = passing.get(key, 0.0) + pair.rate
        for node in self._world.nodes.values():
            node.leader_quota.traffic = passing.get(("leader", node.id), 0.0)
            node.follower_quota.traffic = passing.get(("follower", node.id), 0.0)
            node.log_dirs_quota.traffic = passing.get(("disk", node.id), 0.0)

    def _throttled(self, pair: Pair) -> Iterator[tuple[str, BrokerId]]:
        key, topic = pair.replica.key, pair.replica.topic
        if self._brokers.throttles(pair.leader_node, key, topic, leads=True):
            yield "leader", pair.leader_node.id
        if self._brokers.throttles(pair.node, key, topic, leads=False):
            yield "follower", pair.node.id

    def _in_isr(self, pair: Pair) -> bool:
        part = pair.leader_node.view.image.partitions.get(pair.replica.key)
        return part is not None and pair.node.id in part.isr

    def _until_next(self) -> float:
        soonest = UNLIMITED
        for pair in self.pairs:
            if pair.copying and pair.rate > pair.appended:
                soonest = min(soonest, pair.behind / (pair.rate - pair.appended))
        for node in self._world.nodes.values():
            for quota in (node.leader_quota, node.follower_quota, node.log_dirs_quota):
                soonest = min(soonest, quota.until_next())
            for disk in node.disks.values():
                grows = self._growth(node, disk.path)
                if grows > 0 and disk.online:
                    room = disk.capacity - node.used(disk.path)
                    soonest = min(soonest, max(room, 0.0) / grows)
        return soonest

    def _growth(self, node: Node, path: str) -> float:
        growth = sum(
            producer.rate
            for owner, replica, producer in self._writes
            if owner is node and replica.path == path
        )
        for pair in self.pairs:
            if pair.node is node and pair.path == path:
                growth += pair.rate if pair.copying else pair.appended
        return growth

    def _fill_disks(self) -> None:
        for node in self._world.nodes.values():
            for disk in node.disks.values():
                if disk.online and node.used(disk.path) >= disk.capacity - NOTHING:
                    self._brokers.disk_fails(node, disk)

    def _end_copies(self) -> None:
        for pair in self.pairs:
            if pair.copying and pair.behind <= NOTHING:
                pair.copying = False
                self._world.flows_changed = True
                if pair.between_log_dirs:
                    self._swap(pair)
                else:
                    pair.replica.behind_since = self._world.now

    def _delay_s(self, pair: Pair) -> float:
        """How long quotas keep the follower from fetching anything."""
        quotas = {"leader": pair.leader_node.leader_quota, "follower": pair.node.follower_quota}
        return max((quotas[side].pause_s for side, _ in self._throttled(pair)), default=0.0)

    def _swap(self, pair: Pair) -> None:
        """The copy in the other log dir takes its replica's place."""
        replica, future = pair.replica, pair.replica.future
        if future is not None:
            replica.path, replica.log, replica.future = future.path, future.log, None
            self._controller.assign_dir(replica.key, pair.node.id, replica.path)

    def _ask_to_join(
        self, replica: Replica, node: Node, after_s: float, *, waited: bool = False
    ) -> None:
        asked = (replica.key, node.id)
        if asked not in self._joining:
            self._joining.add(asked)
            join = partial(self._join, replica, node, waited=waited)
            self._world.at(self._world.now + after_s, join)

    def _join(self, replica: Replica, node: Node, *, waited: bool) -> None:
        """The leader asks the controller to take a follower into the ISR, again if need be.

        :param waited: until a quota let fetches pass again. Then it depends on brokers' threads
            whether its own passes before another one's has used the quota up anew.
        """
        self._joining.discard((replica.key, node.id))
        pair = self._fetching(node, replica) if node.replicas.get(replica.key) is replica else None
        if pair is None or pair.behind > max(pair.appended, NOTHING):
            return
        delay_s = self._delay_s(pair)
        if delay_s > 0 and not (waited and self._world.rng.random() < 0.5):
            # A follower that may not fetch does not join, though it lacks nothing.
            self._ask_to_join(replica, node, delay_s + JOIN_S, waited=True)
            return
        leader = pair.leader_node
        part = self._world.image.partitions.get(replica.key)
        if part is None or node.id in part.isr:
            return
        heard = self._world.controller_sees(leader)
        isr = {*part.isr, node.id}
        if not heard or not self._controller.alter_isr(
            replica.key, leader.id, pair.leader.epoch, isr
        ):
            self._ask_to_join(replica, node, RETRY_S)
