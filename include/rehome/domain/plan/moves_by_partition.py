"""Moves found by their partition, each made when it is first used."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from rehome.domain.kafka import BrokerId, TopicPartition

if TYPE_CHECKING:
    from rehome.domain.plan.move import Move


class MovesByPartition(Mapping[TopicPartition, "Move"]):
    """Of a hundred thousand moves in columns, a poll of a running plan needs those in flight.

    :param partitions: of the moves, in their order.
    :param make: makes the moves at these places.
    """

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        make: Callable[[Sequence[int]], Sequence[Move]],
    ) -> None:
        self._places = dict(zip(partitions, count(), strict=False))
        self._make = make
        self.made: dict[TopicPartition, Move] = {}

    def __getitem__(self, partition: TopicPartition) -> Move:
        move = self.made.get(partition)
        if move is None:
            (move,) = self._make([self._places[partition]])
            self.made[partition] = move
        return move

    def __contains__(self, partition: object) -> bool:
        return partition in self._places

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """Make these at once, which takes a tenth of the time that one after the other does."""
        new = [partition for partition in partitions if partition not in self.made]
        moves = self._make([self._places[partition] for partition in new])
        self.made.update(zip(new, moves, strict=True))


class IndexedMoves(Sequence["Move"]):
    """Moves that know their sums and places without an object of each; code that only has a plan
    imports no columns for it.
    """

    @property
    @abstractmethod
    def by_partition(self) -> MovesByPartition:
        """Partition → its move."""

    @property
    @abstractmethod
    def brokers(self) -> frozenset[BrokerId]:
        """Every broker that a replica is moved from or to, or stays on."""

    @property
    @abstractmethod
    def bytes_to_copy(self) -> int:
        """Bytes that all of them write anew, between brokers and between log dirs."""
