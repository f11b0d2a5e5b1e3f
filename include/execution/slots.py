"""What limits a move: brokers, each in one direction, and the bytes it still sends through them."""

from __future__ import annotations

import enum
from typing import NamedTuple

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


class Slot(NamedTuple):
    """One broker in one direction: what is limited."""

    direction: Direction
    broker: BrokerId


Inbound = tuple[tuple[Slot, ReplicaId], ...]


def inbound(move: Move) -> Inbound:
    """Each copy that a move adds, with the slot of its destination: fixed by the plan."""
    return tuple(
        (Slot(Direction.IN, broker), ReplicaId(*move.partition, broker)) for broker in move.adding
    )


def slots_of(move: Move, seen: Observation, into: Inbound | None = None) -> dict[Slot, int]:
    """The slots that a move takes, with the bytes it still sends through each.

    What is left of a copy is the leader's size, as far as it was measured (else the planned
    one), less what the destination has; between log dirs, that of the replica itself.

    :param into: what :func:`inbound` says of the move, where the caller knows it already.
    """
    slots: dict[Slot, int] = {}
    into = inbound(move) if into is None else into
    sizes = seen.sizes
    if into:
        state = seen.partitions.get(move.partition)
        leader = None if state is None else state.leader
        size, out = move.size_bytes, 0
        if leader is not None:
            size = sizes.get(ReplicaId(*move.partition, leader), size)
        for slot, replica in into:
            left = size - sizes.get(replica, 0)
            slots[slot] = left = left if left > 0 else 0
            out += left
        if leader is not None:
            slots[Slot(Direction.OUT, leader)] = out
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
