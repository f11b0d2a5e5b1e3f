"""What limits a move: brokers, each in one direction, and the bytes it still sends through them."""

from __future__ import annotations

import enum
from typing import ClassVar

from include.cluster.model import BrokerId, ReplicaId
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
    """

    __slots__ = ("broker", "direction")
    direction: Direction
    broker: BrokerId
    _known: ClassVar[dict[tuple[Direction, BrokerId], Slot]] = {}

    def __new__(cls, direction: Direction, broker: BrokerId) -> Slot:
        """The one of this direction and broker."""
        found = cls._known.get((direction, broker))
        if found is None:
            found = super().__new__(cls)
            found.direction, found.broker = direction, broker
            found = cls._known.setdefault((direction, broker), found)
        return found

    def __repr__(self) -> str:
        return f"Slot({self.direction}, {self.broker})"


Inbound = tuple[tuple[Slot, ReplicaId], ...]


class Ends:
    """Where the copies of a move begin and end: made once, for it is asked at every poll.

    :ivar into: each copy that the move adds, with the slot of its destination.
    """

    __slots__ = ("_leader", "_source", "into")

    def __init__(self, move: Move) -> None:
        brokers = [(Slot(Direction.IN, broker), broker) for broker in move.adding]
        self.into: Inbound = tuple([(s, ReplicaId(*move.partition, b)) for s, b in brokers])
        self._leader: BrokerId | None = None
        self._source: tuple[Slot, ReplicaId]

    def source(self, move: Move, leader: BrokerId) -> tuple[Slot, ReplicaId]:
        """What copies are read from while this broker leads."""
        if leader != self._leader:
            self._leader = leader
            self._source = Slot(Direction.OUT, leader), ReplicaId(*move.partition, leader)
        return self._source


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
        size, out, way_out = move.size_bytes, 0, None
        if state is not None and state.leader is not None:
            way_out, replica = ends.source(move, state.leader)
            size = sizes.get(replica, size)
        for slot, replica in ends.into:
            left = size - sizes.get(replica, 0)
            slots[slot] = left = left if left > 0 else 0
            out += left
        if way_out is not None:
            slots[way_out] = out
    if move.target_log_dirs:
        for broker in relocating(move):
            replica = ReplicaId(*move.partition, broker)
            left = sizes.get(replica, move.size_bytes) - seen.future_sizes.get(replica, 0)
            slots[Slot(Direction.ACROSS, broker)] = max(0, left)
    return slots


def part_of_slot(left_bytes: int, whole_bytes: float) -> int:
    """How much of a slot a move takes: all of it until less than ``whole_bytes`` are left.

    What ends before anybody looks again must not keep its successor waiting until then.
    """
    if left_bytes >= whole_bytes:
        return WHOLE_SLOT
    return max(SMALLEST_PART, int(WHOLE_SLOT * left_bytes / whole_bytes))
