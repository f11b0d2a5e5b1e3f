"""What limits a move: brokers, each in one direction, and the bytes it still sends through them."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from include.cluster.model import BrokerId, ReplicaId, TopicPartition
from include.execution.log_dir_copies import wanted_log_dirs
from include.execution.model import Observation
from include.execution.outcome import relocating
from include.planning.pace import MOVES_PER_SLOT
from include.planning.plan import Move

WHOLE_SLOT = 1000
"""Parts of a slot: whole numbers, so that sums do not depend on their order."""
SMALLEST_PART = WHOLE_SLOT // MOVES_PER_SLOT
"""The least that a move takes."""


class Direction(enum.Enum):
    """Where a copy loads a broker."""

    OUT = "out"  # the leader that copies are read from
    IN = "in"  # a destination
    ACROSS = "across"  # between two log dirs of one broker

    __hash__ = object.__hash__  # members are singletons; enum's own hash is written in Python


class Slot:
    """One broker in one direction: what is limited.

    There is one object for each, so that comparing and hashing cost next to nothing: `decide`
    looks thousands up at every call.

    :ivar rank: what slots are sorted by.
    """

    __slots__ = ("broker", "direction", "rank")
    direction: Direction
    broker: BrokerId
    rank: tuple[str, BrokerId]
    _known: ClassVar[dict[tuple[Direction, BrokerId], Slot]] = {}

    def __new__(cls, direction: Direction, broker: BrokerId) -> Slot:
        """The one of this direction and broker."""
        found = cls._known.get((direction, broker))
        if found is None:
            found = super().__new__(cls)
            found.direction, found.broker = direction, broker
            found.rank = direction.value, broker
            found = cls._known.setdefault((direction, broker), found)
        return found

    def __repr__(self) -> str:
        return f"Slot({self.direction}, {self.broker})"


Inbound = tuple[tuple[Slot, ReplicaId], ...]


class Ends:
    """Where the copies of a move begin and end: made once, for it is asked at every poll.

    :ivar into: each copy that the move adds, with the slot of its destination.
    :ivar leader: what copies are read from: :meth:`led_by` says who that is.
    :ivar way_out: the leader's slot; ``read``: its replica.
    """

    __slots__ = ("into", "leader", "read", "way_out")

    def __init__(self, move: Move) -> None:
        topic, number = move.partition
        self.into: Inbound = tuple(
            [(Slot(Direction.IN, b), ReplicaId(topic, number, b)) for b in move.adding]
        )
        self.leader: BrokerId | None = None
        self.way_out: Slot
        self.read: ReplicaId

    def led_by(self, leader: BrokerId, partition: TopicPartition) -> None:
        """From now on copies are read from this broker."""
        self.leader = leader
        self.way_out = Slot(Direction.OUT, leader)
        self.read = ReplicaId(*partition, leader)


def slots_of(move: Move, seen: Observation, ends: Ends | None = None) -> dict[Slot, int]:
    """The slots that a move takes, with the bytes it still sends through each.

    What is left of a copy is the leader's size, as far as it was measured (else the planned
    one), less what the destination has; between log dirs, that of the replica itself.

    :param ends: those of the move, where the caller knows them already.
    """
    slots: dict[Slot, int] = {}
    ends = Ends(move) if ends is None else ends
    sizes = seen.sizes
    if ends.into:
        state = seen.partitions.get(move.partition)
        leader = None if state is None else state.leader
        size, out = move.size_bytes, 0
        if leader is not None:
            if leader != ends.leader:
                ends.led_by(leader, move.partition)
            size = sizes.get(ends.read, size)
        for slot, replica in ends.into:
            left = size - sizes.get(replica, 0)
            slots[slot] = left = left if left > 0 else 0
            out += left
        if leader is not None:
            slots[ends.way_out] = out
    if move.target_log_dirs:
        for broker in relocating(move):
            replica = ReplicaId(*move.partition, broker)
            left = sizes.get(replica, move.size_bytes) - seen.future_sizes.get(replica, 0)
            slots[Slot(Direction.ACROSS, broker)] = max(0, left)
    return slots


@dataclass(slots=True)
class Use:
    """What is taken of a slot: parts of it, and bytes that still have to pass through it."""

    parts: int = 0
    left_bytes: int = 0


class InUse:
    """What the moves that have started take.

    :param whole_bytes: who has less left takes only part of a slot: see :func:`part_of_slot`.
    :ivar slots: by slot; ``to_dir``: bytes to come, by log dir that a plan names.
    """

    def __init__(self, whole_bytes: float) -> None:
        self.moves = 0
        self.slots: defaultdict[Slot, Use] = defaultdict(Use)
        self.to_dir: Counter[tuple[BrokerId, str]] = Counter()
        self._whole_bytes = whole_bytes

    def add(self, move: Move, slots: Mapping[Slot, int]) -> None:
        """Count one in, by the bytes that it still sends through its slots."""
        self.moves += 1
        whole_bytes = self._whole_bytes
        for slot, left_bytes in slots.items():
            use = self.slots[slot]
            use.left_bytes += left_bytes
            whole = left_bytes >= whole_bytes
            use.parts += WHOLE_SLOT if whole else part_of_slot(left_bytes, whole_bytes)
        if move.target_log_dirs:
            for replica, log_dir in wanted_log_dirs(move).items():
                self.to_dir[replica.broker, log_dir] += bytes_onto(replica.broker, slots)


def bytes_onto(broker: BrokerId, slots: Mapping[Slot, int]) -> int:
    """What a move still writes to a broker, over the network or between its log dirs."""
    into, across = (Slot(d, broker) for d in (Direction.IN, Direction.ACROSS))
    return slots.get(into, 0) + slots.get(across, 0)


def part_of_slot(left_bytes: int, whole_bytes: float) -> int:
    """How much of a slot a move takes: all of it until less than ``whole_bytes`` are left.

    What ends before anybody looks again must not keep its successor waiting until then.
    """
    if left_bytes >= whole_bytes:
        return WHOLE_SLOT
    return max(SMALLEST_PART, int(WHOLE_SLOT * left_bytes / whole_bytes))
