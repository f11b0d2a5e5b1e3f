"""What brokers do to old data: retention, DeleteRecords, compaction, tiers."""

from __future__ import annotations

from world.kafka.controller import Controller
from world.kafka.metadata import PartitionKey
from world.kafka.nodes import Node, Replica
from world.kafka.world_state import WorldState

CHECK_S = 300.0
"""log.retention.check.interval.ms, leader.imbalance.check.interval.seconds and
unclean.leader.election.interval.ms"""
KEPT_BY_COMPACTION = 0.3
"""Part of the bytes that a segment keeps when it is compacted."""


class Upkeep:
    """The periodic checks of a world's brokers, and of its controller.

    :param balances: auto.leader.rebalance.enable.
    """

    def __init__(self, world: WorldState, controller: Controller, balances: bool) -> None:
        self._world = world
        self._controller = controller
        self._balances = balances
        self._ends: dict[PartitionKey, list[tuple[float, float]]] = {}

    def begin(self) -> None:
        """Check every five minutes from now on."""
        self._world.at(self._world.now + CHECK_S, self._check)

    def _check(self) -> None:
        for node in self._world.nodes.values():
            if node.running and node.replicas:
                for replica in node.replicas.values():
                    if node.hosts(replica):
                        self._look_after(node, replica)
        if self._world.controllers_up:
            self._controller.elect_unclean_where_allowed()
            if self._balances:
                self._controller.elect_preferred_everywhere()
        self._world.at(self._world.now + CHECK_S, self._check)
        self._world.flows_changed = True

    def _look_after(self, node: Node, replica: Replica) -> None:
        log = replica.log
        config = {
            key: self._world.topic_config(node.view.image, replica.topic, key)
            for key in ("cleanup.policy", "segment.bytes", "retention.bytes", "retention.ms")
        }
        log.roll(float(config["segment.bytes"]))
        leads = replica.fetching_from is None
        if leads and "delete" in config["cleanup.policy"]:
            self._retain(replica, float(config["retention.bytes"]), float(config["retention.ms"]))
        if "compact" in config["cleanup.policy"]:
            self._compact(replica)
        self._tier(node, replica, leads)
        log.drop_segments_before(log.start)

    def _retain(self, replica: Replica, most_bytes: float, most_ms: float) -> None:
        """The leader's log start moves up, by whole segments; followers learn of it by fetching."""
        log = replica.log
        ends = self._ends.setdefault(replica.key, [])
        ends.append((self._world.now, log.end))
        for base in log.segments:
            too_large = 0 <= most_bytes <= log.bytes_between(base, log.end)
            oldest = self._world.now - most_ms / 1000
            known = [offset for at, offset in ends if at <= oldest]
            too_old = most_ms >= 0 and bool(known) and known[-1] >= base
            if too_large or too_old:
                log.start = max(log.start, base)

    def _compact(self, replica: Replica) -> None:
        if replica.log.segments:
            replica.log.compact(replica.log.segments[-1], KEPT_BY_COMPACTION)

    def _tier(self, node: Node, replica: Replica, leads: bool) -> None:
        """Whole segments are uploaded by the leader; what is uploaded may leave the disk."""
        image, topic, log = node.view.image, replica.topic, replica.log
        if self._world.topic_config(image, topic, "remote.storage.enable") != "true":
            return
        if leads and log.segments:
            log.tiered_to = max(log.tiered_to, log.segments[-1])
        local = float(self._world.topic_config(image, topic, "local.retention.bytes"))
        if local == -2:
            local = float(self._world.topic_config(image, topic, "retention.bytes"))
        for base in list(log.segments):
            if 0 <= local <= log.bytes_between(base, log.end) and base <= log.tiered_to:
                log.drop_segments_before(base)
