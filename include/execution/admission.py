"""Which moves start next: slots per broker and direction, the busiest broker first. Pure."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from include.cluster.model import BrokerId, ReplicaId, TopicPartition
from include.execution.model import Observation, Policy
from include.execution.outcome import relocating
from include.planning.plan import Move
from include.planning.request import OnWindowEnd


class Direction(enum.Enum):
    """Where a copy loads a broker."""

    OUT = "out"  # the leader that copies are read from
    IN = "in"  # a destination
    ACROSS = "across"  # between two log dirs of one broker


class Slot(NamedTuple):
    """One broker in one direction: what is limited."""

    direction: Direction
    broker: BrokerId


@dataclass(frozen=True)
class Admission:
    """Moves to start now, and why others have to wait.

    :param waiting: reasons, each with the number of moves it holds back.
    """

    moves: tuple[Move, ...]
    waiting: Mapping[str, int] = field(default_factory=dict)

    @property
    def only_waits_for_window(self) -> bool:
        """Whether all that is left does not fit into the window any more."""
        return not self.moves and set(self.waiting) == {WINDOW}


SLOTS = "no free slot"
CAP = "as many partitions in flight as allowed"
NO_LEADER = "the partition has no leader"
WINDOW = "would not end before the window does"


def admit(
    pending: Sequence[Move],
    in_flight: Sequence[Move],
    seen: Observation,
    now: datetime,
    policy: Policy,
    rate_bytes_per_s: int,
) -> Admission:
    """The moves to start now, in the order of their start.

    The broker with the most bytes still to send or to receive decides when the plan ends, so
    its moves go first, the largest of them first.
    """
    loads = _loads((*pending, *in_flight), seen)
    admission = _Admitting(in_flight, seen, now, policy, rate_bytes_per_s)

    def urgency(move: Move) -> tuple[int, int, TopicPartition]:
        slots = slots_of(move, seen)
        return (-max((loads[slot] for slot in slots), default=0), -move.size_bytes, move.partition)

    for move in sorted(pending, key=urgency):
        admission.consider(move)
    return Admission(tuple(admission.moves), dict(admission.waiting))


def slots_of(move: Move, seen: Observation) -> dict[Slot, int]:
    """The slots that a move takes, with the bytes it still sends through each."""
    slots: dict[Slot, int] = {}
    state = seen.partitions.get(move.partition)
    for broker in move.adding:
        replica = ReplicaId(*move.partition, broker)
        slots[Slot(Direction.IN, broker)] = max(0, move.size_bytes - seen.sizes.get(replica, 0))
    if move.adding and state is not None and state.leader is not None:
        slots[Slot(Direction.OUT, state.leader)] = sum(slots.values())
    for broker in relocating(move):
        replica = ReplicaId(*move.partition, broker)
        copied = seen.future_sizes.get(replica, 0)
        slots[Slot(Direction.ACROSS, broker)] = max(0, move.size_bytes - copied)
    return slots


def _loads(moves: Iterable[Move], seen: Observation) -> Counter[Slot]:
    loads: Counter[Slot] = Counter()
    for move in moves:
        loads.update(slots_of(move, seen))
    return loads


class _Admitting:
    """What is taken while moves are considered one after the other."""

    def __init__(
        self,
        in_flight: Sequence[Move],
        seen: Observation,
        now: datetime,
        policy: Policy,
        rate_bytes_per_s: int,
    ) -> None:
        self._seen = seen
        self._now = now
        self._policy = policy
        self._delivered_bytes_per_s = rate_bytes_per_s * policy.throttle_efficiency
        self._room = policy.max_partitions_in_flight - len(in_flight)
        self._taken = Counter(slot for move in in_flight for slot in slots_of(move, seen))
        self._queued = _loads(in_flight, seen)
        self.moves: list[Move] = []
        self.waiting: Counter[str] = Counter()

    def consider(self, move: Move) -> None:
        slots = slots_of(move, self._seen)
        obstacle = self._obstacle(move, slots)
        if obstacle is not None:
            self.waiting[obstacle] += 1
            return
        self.moves.append(move)
        self._room -= 1
        self._taken.update(slots.keys())
        self._queued.update(slots)

    def _obstacle(self, move: Move, slots: Mapping[Slot, int]) -> str | None:
        dead = sorted(set(move.target) - self._seen.live_brokers)
        if dead:
            return f"broker {dead[0]} is not alive"
        if move.adding and self._seen.partitions[move.partition].leader is None:
            return NO_LEADER
        if self._too_late(slots):
            return WINDOW
        if self._room <= 0:
            return CAP
        if any(self._taken[slot] >= self._policy.max_moves_per_broker for slot in slots):
            return SLOTS
        return None

    def _too_late(self, slots: Mapping[Slot, int]) -> bool:
        end = self._policy.window_end
        if end is None or self._policy.on_window_end is not OnWindowEnd.DRAIN:
            return False
        queued = max((self._queued[slot] + size for slot, size in slots.items()), default=0)
        return self._now + timedelta(seconds=queued / self._delivered_bytes_per_s) > end
