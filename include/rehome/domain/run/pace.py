"""How fast moves can be made: what brokers deliver, and how soon the next ones are started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rehome.domain.broker_rates import RateKey

if TYPE_CHECKING:
    from rehome.domain.array_types import Floats, Ints

MOVES_PER_SLOT = 10
"""Tiny moves share a slot of a broker, never more than this many (see docs/execution.md)."""

SMALL_MOVE_S = 0.0026
"""What four brokers on two cores take for a small move of a topic of up to ``TOPIC_PARTITIONS``,
where thousands are in flight; brokers on cores of their own take ``QUICK_MOVE_S``, or less."""
QUICK_MOVE_S = 0.0005
TOPIC_PARTITIONS = 100
"""A small move of a topic with more partitions costs as many times as much (decision 155)."""


def is_small(left_bytes: int, small_bytes: int) -> bool:
    """Whether what sends so many bytes through a broker takes no slot of it.

    :param small_bytes: the most that it may be; 0 = everything takes a part.
    """
    return 0 < small_bytes >= left_bytes


@dataclass(frozen=True, slots=True)
class Pace:
    """What bounds the time that a plan takes.

    :param bytes_per_s: what brokers deliver of a throttle, per broker and direction.
    :param reaction_s: time until the next step starts the next moves.
    :param max_moves_per_broker: slots per broker and direction.
    :param max_partitions_in_flight: never more than this many at the controller, small ones aside.
    :param small_bytes: what sends no more through a broker takes no slot of it; 0 = everything
        takes a part.
    :param own: what brokers deliver that have a throttle of their own, by direction.
    """

    bytes_per_s: float
    reaction_s: float = 0.0
    max_moves_per_broker: int = 4
    max_partitions_in_flight: int = 200
    small_bytes: int = 0
    own: Mapping[RateKey, float] = field(default_factory=dict, hash=False)

    @property
    def slot_bytes(self) -> float:
        """A slot's share of what the throttle copies until the next step."""
        return self.bytes_per_s * self.reaction_s / self.max_moves_per_broker

    def slot_bytes_of(self, key: RateKey) -> float:
        """The same of a broker and direction."""
        rate = self.own.get(key, self.bytes_per_s)
        return rate * self.reaction_s / self.max_moves_per_broker

    @property
    def least_bytes(self) -> int:
        """What a copy counts for at least, however small: its smallest part of a slot."""
        return int(self.slot_bytes / MOVES_PER_SLOT)

    def copies_s(self, size_bytes: Ints) -> Floats:
        """(N,) seconds that each copy takes of a broker's time: for its bytes, or for its part of a
        slot where that takes longer. A small one takes no part.
        """
        least_s = self.reaction_s / (MOVES_PER_SLOT * self.max_moves_per_broker)
        takes_part = size_bytes > (self.small_bytes or -1)
        copied_s: Floats = size_bytes / self.bytes_per_s
        return copied_s.clip(least_s * takes_part)

    def plan_s(self, busiest_s: float, partitions: int, small_s: float = 0.0) -> float:
        """Time of a plan that changes something, until its end is noticed.

        :param busiest_s: sum of ``copies_s`` at the broker and direction where it is largest.
        :param partitions: how many take a place each until the next step: all but small moves.
        :param small_s: what brokers take for the small ones.
        """
        started_s = partitions * self.reaction_s / self.max_partitions_in_flight
        return max(busiest_s, started_s, small_s) + self.reaction_s
