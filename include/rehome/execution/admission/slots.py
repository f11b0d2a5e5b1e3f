"""What limits a move: brokers, each in one direction, and the bytes it still sends through them."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from rehome.domain.array_types import Floats, Ints
from rehome.domain.kafka import BrokerId, ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import MOVES_PER_SLOT, Pace, is_small
from rehome.execution.observation.log_dir_copies import wanted_log_dirs
from rehome.execution.observation.move_status import relocating

WHOLE_SLOT = 1000
"""Parts of a slot: whole numbers, so that sums do not depend on their order."""
SMALLEST_PART = WHOLE_SLOT // MOVES_PER_SLOT
"""The least that a move takes which is not small."""


class Direction(enum.Enum):
    """Where a copy loads a broker."""

    OUT = "out"  # the leader that copies are read from
    IN = "in"  # a destination
    ACROSS = "across"  # between two log dirs of one broker

    __hash__ = object.__hash__  # members are singletons; enum's own hash is written in Python


class Slot:
    """One broker in one direction: what is limited.

    There is one object for each, so that comparing and hashing cost next to nothing: `decide`
    reads thousands at every call.

    :ivar rank: what slots are sorted by; ``number``: its place in :data:`_SLOTS_BY_NUMBER`.
    """

    __slots__ = ("broker", "direction", "number", "rank")
    direction: Direction
    broker: BrokerId
    rank: tuple[str, BrokerId]
    number: int

    def __new__(cls, direction: Direction, broker: BrokerId) -> Slot:
        """The one of this direction and broker."""
        return _SLOT_OF[direction][broker]

    def __repr__(self) -> str:
        return f"Slot({self.direction}, {self.broker})"


class _SlotsOfDirection(dict[BrokerId, Slot]):
    """By broker; made when they are first asked for."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction

    def __missing__(self, broker: BrokerId) -> Slot:
        slot = object.__new__(Slot)
        slot.direction, slot.broker = self._direction, broker
        slot.rank = self._direction.value, broker
        with _NUMBERING:
            if broker not in self:
                slot.number = len(_SLOTS_BY_NUMBER)
                _SLOTS_BY_NUMBER.append(slot)
                self[broker] = slot
        return self[broker]


_NUMBERING = Lock()
_SLOTS_BY_NUMBER: list[Slot] = []
"""Every slot that was asked for: arrays hold their numbers."""
_SLOT_OF = {direction: _SlotsOfDirection(direction) for direction in Direction}
_IN, _OUT = _SLOT_OF[Direction.IN], _SLOT_OF[Direction.OUT]


Replica = tuple[str, int, BrokerId]
"""Equal to its ReplicaId, and made in a fraction of the time: `decide` asks for thousands."""


def slots_of(move: Move, observation: Observation) -> dict[Slot, int]:
    """The slots that a move takes, with the bytes it still sends through each.

    What is left of a copy is the leader's size, as far as it was measured (else the planned
    one), less what the destination has; between log dirs, that of the replica itself. A replica
    that is in the log dir wanted takes none.
    """
    slots: dict[Slot, int] = {}
    topic, number = partition = move.partition
    sizes: Mapping[Any, int] = observation.sizes  # by ReplicaId, which equals the tuple asked for
    state = observation.partitions.get(partition)
    leader = None if state is None else state.leader
    size, out, current = move.size_bytes, 0, move.current
    if leader is not None:
        size = sizes.get((topic, number, leader), size)
    for broker in move.target:
        if broker not in current:
            left = size - sizes.get((topic, number, broker), 0)
            slots[_IN[broker]] = left = left if left > 0 else 0
            out += left
    if slots and leader is not None:
        slots[_OUT[leader]] = out
    if move.target_log_dirs:
        target_dirs = wanted_log_dirs(move)
        for broker in relocating(move):
            replica = ReplicaId(*move.partition, broker)
            left = observation.sizes.get(replica, move.size_bytes) - observation.future_sizes.get(
                replica, 0
            )
            if observation.log_dirs.get(replica) != target_dirs[replica]:
                slots[Slot(Direction.ACROSS, broker)] = max(0, left)
    return slots


class Ends:
    """Where the copies of a move begin and end: made once, for it is asked at every poll.

    :ivar size_bytes: of one replica, as planned.
    :ivar into: each destination's slot, by number; ``added``: the copies, in the same order.
    :ivar leader: what copies are read from: :meth:`led_by` says who that is.
    :ivar way_out: the number of the leader's slot; ``read``: its replica.
    """

    __slots__ = ("added", "into", "leader", "read", "size_bytes", "way_out")

    def __init__(self, move: Move) -> None:
        topic, number = move.partition
        adding = move.adding
        self.size_bytes = move.size_bytes
        self.into = tuple([_IN[broker].number for broker in adding])
        self.added: tuple[Replica, ...] = tuple([(topic, number, broker) for broker in adding])
        self.leader: BrokerId | None = None
        self.way_out: int
        self.read: Replica

    def led_by(self, leader: BrokerId, partition: TopicPartition) -> None:
        """From now on copies are read from this broker."""
        self.leader = leader
        self.way_out = _OUT[leader].number
        self.read = (partition.topic, partition.partition, leader)


class BytesLeft(NamedTuple):
    """Slots that moves take, by number, and the bytes still to be sent through each: aligned."""

    slots: Ints
    left_bytes: Ints


def left_of(ends: Sequence[Ends], observation: Observation) -> BytesLeft:
    """The same as :func:`slots_of`, of many moves at once.

    :param ends: those of moves that copy to other brokers, from the leaders that they have now.
    """
    sizes: Mapping[Any, int] = observation.sizes
    into = [each.into for each in ends]
    slots, replicas = list(chain.from_iterable(into)), [each.added for each in ends]
    slots_out = [each.way_out for each in ends]
    measured = map(sizes.get, [each.read for each in ends], [each.size_bytes for each in ends])
    copied = map(sizes.get, chain.from_iterable(replicas), repeat(0))
    copies = np.fromiter(map(len, into), np.int64, len(ends))
    size = np.repeat(np.fromiter(measured, np.int64, len(ends)), copies)
    left = np.maximum(size - np.fromiter(copied, np.int64, len(slots)), 0)
    out = np.add.reduceat(left, np.cumsum(copies) - copies) if ends else left
    return BytesLeft(np.array(slots + slots_out, np.int64), np.append(left, out))


@dataclass(slots=True)
class Use:
    """What is taken of a slot: parts of it, and bytes that still have to pass through it."""

    parts: int = 0
    left_bytes: int = 0


class InUse:
    """What the moves that have started take.

    :param pace: a move with fewer bytes left than a slot's share takes only part of a slot, see
        :func:`part_of_slot`, and a small one none.
    :ivar moves: how many those are; ``small``: and of them, how many are small at each end.
    :ivar slots: by slot; ``to_dir``: bytes to come, by log dir that a plan names.
    """

    def __init__(self, pace: Pace) -> None:
        self.moves = self.small = 0
        self.slots: defaultdict[Slot, Use] = defaultdict(Use)
        self.to_dir: Counter[tuple[BrokerId, str]] = Counter()
        self.pace = pace
        self._whole_bytes, self._small_bytes = pace.slot_bytes, pace.small_bytes

    def add(self, move: Move, slots: Mapping[Slot, int]) -> None:
        """Count one in, by the bytes that it still sends through its slots."""
        self.moves += 1
        self.small += is_small(max(slots.values(), default=0), self._small_bytes)
        counted, part = -1, WHOLE_SLOT
        for slot, left_bytes in slots.items():
            # Mostly the leader sends what one destination receives.
            if left_bytes != counted or self.pace.own:
                part = part_of_slot(left_bytes, self._whole_of(slot), self._small_bytes)
                counted = left_bytes
            use = self.slots[slot]
            use.left_bytes += left_bytes
            use.parts += part
        if move.target_log_dirs:
            for replica, log_dir in wanted_log_dirs(move).items():
                self.to_dir[replica.broker, log_dir] += bytes_onto(replica.broker, slots)

    def add_all(
        self, moves_with_ends: Iterable[tuple[Move, Ends]], observation: Observation
    ) -> None:
        """Count in what is on its way: many moves at once, as far as they are alike."""
        partitions = observation.partitions
        led = []
        for move, ends in moves_with_ends:
            state = partitions.get(move.partition)
            leader = None if state is None else state.leader
            if leader is None or not ends.into or move.target_log_dirs:
                self.add(move, slots_of(move, observation))
                continue
            if leader != ends.leader:
                ends.led_by(leader, move.partition)
            led.append(ends)
        self.moves += len(led)
        slots, left = left_of(led, observation)
        if self._small_bytes:
            sent = left[len(left) - len(led) :]  # no destination receives more than is sent
            self.small += int(np.count_nonzero(sent <= self._small_bytes))
        taken, at = np.unique(slots, return_inverse=True)
        sums = np.zeros((2, len(taken)), np.int64)
        np.add.at(sums[0], at, left)
        whole: float | Floats = self._whole_bytes
        if self.pace.own:
            whole = np.array([self._whole_of(_SLOTS_BY_NUMBER[n]) for n in taken.tolist()])[at]
        np.add.at(sums[1], at, parts_of_slot(left, whole, self._small_bytes))
        for number, left_bytes, parts in zip(taken.tolist(), *sums.tolist(), strict=True):
            use = self.slots[_SLOTS_BY_NUMBER[number]]
            use.left_bytes += left_bytes
            use.parts += parts

    def _whole_of(self, slot: Slot) -> float:
        return self.pace.slot_bytes_of((slot.direction.value, slot.broker))


def bytes_onto(broker: BrokerId, slots: Mapping[Slot, int]) -> int:
    """What a move still writes to a broker, over the network or between its log dirs."""
    into, across = (Slot(d, broker) for d in (Direction.IN, Direction.ACROSS))
    return slots.get(into, 0) + slots.get(across, 0)


def part_of_slot(left_bytes: int, whole_bytes: float, small_bytes: int = 0) -> int:
    """How much of a slot a move takes: all of it until less than ``whole_bytes`` are left.

    A move that ends before the next step would otherwise leave its slot unused until then.

    :param small_bytes: with no more left it takes nothing; 0 = it always takes some.
    """
    if is_small(left_bytes, small_bytes):
        return 0
    if left_bytes >= whole_bytes:
        return WHOLE_SLOT
    return max(SMALLEST_PART, int(WHOLE_SLOT * left_bytes / whole_bytes))


def parts_of_slot(left_bytes: Ints, whole_bytes: float | Floats, small_bytes: int = 0) -> Ints:
    """:func:`part_of_slot` of each.

    :param whole_bytes: of all, or (n,) of each.
    """
    parts = np.full(len(left_bytes), WHOLE_SLOT)
    whole = np.broadcast_to(np.asarray(whole_bytes, np.float64), left_bytes.shape)
    small = left_bytes < whole
    shares = WHOLE_SLOT * left_bytes[small] / whole[small]
    parts[small] = np.maximum(SMALLEST_PART, shares.astype(np.int64))
    if small_bytes:
        parts[left_bytes <= small_bytes] = 0
    return parts
