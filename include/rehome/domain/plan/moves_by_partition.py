"""Moves found by their partition, each made when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from rehome.domain.kafka import TopicPartition

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
        found = self.made.get(partition)
        if found is None:
            (found,) = self._make([self._places[partition]])
            self.made[partition] = found
        return found

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
