"""The cluster of the simulation: partitions, leaders, reassignments and disks."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from benchmarks.simulation.quota import ThrottledCopies
from rehome.domain.disks import Disk
from rehome.domain.kafka import (
    BrokerId,
    OngoingReassignment,
    PartitionState,
    ReplicaId,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.execution.admission.fair_share import Copies
from rehome.execution.admission.slots import Direction, Slot


@dataclass(frozen=True, slots=True)
class BrokerDies:
    """From now on the broker neither sends, receives nor leads."""

    broker: BrokerId


@dataclass(frozen=True, slots=True)
class BrokerReturns:
    """The broker goes on with what it had on disk."""

    broker: BrokerId


@dataclass(frozen=True, slots=True)
class ForeignStarts:
    """Another client reassigns a partition, ours or not; its bytes are not modelled."""

    partition: TopicPartition
    target: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class ForeignEnds:
    """What another client has started is complete."""

    partition: TopicPartition


LOOKS_REMEMBERED = 4
"""So many polls show the size of a replica that has arrived: until its move is settled."""


ClusterEvent = BrokerDies | BrokerReturns | ForeignStarts | ForeignEnds


class ModelledCluster:
    """Brokers that copy at equal rates. No log-dir moves; only the plan's partitions exist.

    :param moves: the partitions that exist, with the replicas they start from.
    :param usable_bytes: free disk per broker; brokers left out have no limit.
    :param refused: partitions whose reassignment the controller refuses.
    :param copies: how bytes are copied; None = evenly, at the rate that is set.
    """

    def __init__(
        self,
        brokers: Collection[BrokerId],
        moves: Iterable[Move],
        usable_bytes: Mapping[BrokerId, int] | None = None,
        refused: Collection[TopicPartition] = (),
        copies: Copies | ThrottledCopies | None = None,
    ) -> None:
        self.live = set(brokers)
        self.copies = Copies(brokers) if copies is None else copies
        self.replicas: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.ongoing: dict[TopicPartition, OngoingReassignment] = {}
        self._sizes: dict[TopicPartition, int] = {}
        self._ours: dict[TopicPartition, Move] = {}
        self._lacking: dict[TopicPartition, set[BrokerId]] = {}
        self._arrived: deque[dict[ReplicaId, int]] = deque([{}], maxlen=LOOKS_REMEMBERED)
        self._usable = dict(usable_bytes or {})
        self._refused = frozenset(refused)
        for move in moves:
            self.replicas[move.partition] = move.current
            self._sizes[move.partition] = move.size_bytes
            self._show(move.partition)

    def set_rate(self, rate_bytes_per_s: float) -> None:
        """The rate that a broker delivers, per direction."""
        self._rate = rate_bytes_per_s
        self.copies.set_rate(rate_bytes_per_s, self.live)

    def observe(self, now: datetime) -> Observation:
        """What a poll sees. Its mappings change as the cluster does: use it at once."""
        sizes = {
            ReplicaId(*partition, broker): self._sizes[partition] - lacks
            for (partition, broker), lacks in self.copies.remaining().items()
        }
        for partition, move in self._ours.items():
            for broker in move.adding:
                if broker not in self._lacking[partition]:
                    sizes[ReplicaId(*partition, broker)] = move.size_bytes
        for arrived in self._arrived:
            sizes |= arrived
        self._arrived.append({})
        return Observation(
            now,
            self.partitions,
            self.ongoing,
            frozenset(self.live),
            sizes=sizes,
            disks={b: (Disk("/d", free, free),) for b, free in self.usable_bytes().items()},
        )

    def usable_bytes(self) -> dict[BrokerId, int]:
        """Free disk per broker that has a limit."""
        usable = dict(self._usable)
        lacking = self.copies.remaining()
        for partition, move in self._ours.items():
            for broker in move.adding:
                if broker in usable:
                    usable[broker] -= move.size_bytes - lacking.get((partition, broker), 0)
        return usable

    def reassign(self, moves: Iterable[Move]) -> list[TopicPartition]:
        """Start these; what the controller refuses is returned. Starting twice changes nothing."""
        refused, copies = [], []
        for move in moves:
            partition = move.partition
            if partition in self._refused:
                refused.append(partition)
                continue
            if partition in self.ongoing or self.replicas[partition] == move.target:
                continue
            if not move.adding and not move.removing:
                self.replicas[partition] = move.target
                self._show(partition)
                continue
            leader = self.partitions[partition].leader
            self._ours[partition] = move
            self._lacking[partition] = set(move.adding)
            self.ongoing[partition] = OngoingReassignment(
                (*move.target, *move.removing), move.adding, move.removing
            )
            source = move.current[0] if leader is None else leader
            copies += [((partition, b), source, move.size_bytes) for b in move.adding]
            if not move.adding:
                self._complete(partition)
        if copies:
            self.copies.start(copies)
        return refused

    def cancel(self, moves: Iterable[Move]) -> None:
        """Take back what is ours in flight; the old order of replicas stays."""
        stopped = [move.partition for move in moves if move.partition in self._ours]
        for partition in stopped:
            del self._ours[partition], self._lacking[partition], self.ongoing[partition]
        if stopped:
            self.copies.stop(stopped)

    def run(self, seconds: float) -> bool:
        """Let so much time pass; whether any bytes could move."""
        moving = self.copies.next_end_s() != float("inf")
        for partition, broker in self.copies.run(seconds):
            self._lacking[partition].discard(broker)
            self._complete(partition)
        return moving

    def happen(self, event: ClusterEvent) -> set[TopicPartition]:
        """Let it happen; the partitions whose leader it changed."""
        match event:
            case BrokerDies(broker):
                self.live.discard(broker)
            case BrokerReturns(broker):
                self.live.add(broker)
            case ForeignStarts(partition, target):
                self._foreign(partition, target)
                return set()
            case ForeignEnds(partition):
                return self._foreign_ends(partition)
        self.copies.set_rate(self._rate, self.live)
        led = {partition: state.leader for partition, state in self.partitions.items()}
        for partition in self.partitions:
            self._show(partition)
        changed = {p for p, state in self.partitions.items() if state.leader != led[p]}
        for partition in changed & set(self._ours):
            leader = self.partitions[partition].leader
            if leader is not None:
                self.copies.read_from(partition, leader)
        for partition in list(self._ours):
            self._complete(partition)
        return changed

    @property
    def ours(self) -> Mapping[TopicPartition, Move]:
        """Moves of ours that are in flight."""
        return self._ours

    def left_bytes(self) -> dict[Slot, dict[TopicPartition, int]]:
        """What each move of ours in flight still sends, per broker and direction."""
        lacking = self.copies.remaining()
        left: dict[Slot, dict[TopicPartition, int]] = {}
        for partition, move in self._ours.items():
            into = {b: lacking.get((partition, b), 0) for b in move.adding}
            for broker, size in into.items():
                left.setdefault(Slot(Direction.IN, broker), {})[partition] = size
            leader = self.partitions[partition].leader
            if into and leader is not None:
                left.setdefault(Slot(Direction.OUT, leader), {})[partition] = sum(into.values())
        return left

    def _complete(self, partition: TopicPartition) -> None:
        """End a reassignment once every target replica is in sync, as the controller does."""
        move = self._ours[partition]
        if self._lacking[partition] or not self.live.issuperset(move.target):
            return
        for broker in move.adding:
            if broker in self._usable:
                self._usable[broker] -= move.size_bytes
        for broker in move.removing:
            if broker in self._usable:
                self._usable[broker] += move.size_bytes
        del self._ours[partition], self._lacking[partition], self.ongoing[partition]
        self.replicas[partition] = move.target
        whole = {ReplicaId(*partition, broker): move.size_bytes for broker in move.adding}
        self._arrived[-1].update(whole)
        self._show(partition)

    def _foreign(self, partition: TopicPartition, target: tuple[BrokerId, ...]) -> None:
        before = self.replicas.get(partition, ())
        if partition in self._ours:
            self.cancel([self._ours[partition]])
        removing = tuple(broker for broker in before if broker not in target)
        adding = tuple(broker for broker in target if broker not in before)
        self.ongoing[partition] = OngoingReassignment((*target, *removing), adding, removing)

    def _foreign_ends(self, partition: TopicPartition) -> set[TopicPartition]:
        entry = self.ongoing.get(partition)
        if entry is None or partition in self._ours:
            return set()
        del self.ongoing[partition]
        if partition not in self.replicas:
            return set()
        self.replicas[partition] = entry.target
        self._show(partition)
        return {partition}

    def _show(self, partition: TopicPartition) -> None:
        replicas = self.replicas[partition]
        shown = self.partitions.get(partition)
        in_sync = frozenset(replicas) & self.live
        leader = shown.leader if shown is not None and shown.leader in in_sync else None
        if leader is None:
            leader = next((broker for broker in replicas if broker in in_sync), None)
        self.partitions[partition] = PartitionState(leader, replicas, in_sync)
