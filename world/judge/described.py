"""What a listing of reassignments in flight says, held against what was in flight."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rehome.domain.kafka import Replicas, TopicPartition
from world.history import Alter
from world.judge.flights import Span
from world.judge.placement import Partitions, target_of
from world.kafka.metadata import Partition


@dataclass(frozen=True, slots=True)
class Listed:
    """One reassignment as it was described.

    :param ours: of a plan of the installation that describes it.
    """

    partition: TopicPartition
    adding: Replicas
    removing: Replicas
    ours: bool

    def is_of(self, state: Partition) -> bool:
        """Whether a partition's state is what was described."""
        return state.reassigning and (state.adding, state.removing) == (self.adding, self.removing)


@dataclass(frozen=True, slots=True)
class Described:
    """These are in flight, and so many more that were not asked about.

    :param all: all was asked about.
    """

    flights: tuple[Listed, ...]
    others: int
    all: bool


def wrong_in_listing(
    said: Described,
    partitions: Partitions,
    span: Span,
    asked: Collection[Alter],
    planned: Collection[tuple[TopicPartition, Replicas]],
) -> str:
    """What of it was at no moment true; "" = nothing.

    :param span: from the first reading to what was said.
    :param asked: by whom says so, and nobody else has asked for it: those are its own.
    :param planned: where plans lead partitions to; what is adopted is a plan's.
    """
    times = partitions.times(span.since, span.until)
    for flight in said.flights:
        states = _states(partitions, flight.partition, times)
        of_it = [state for state in states if flight.is_of(state)]
        if not of_it:
            return f"{flight.partition} adds {flight.adding}; it was never so"
        led_to = flight.partition, target_of(of_it[-1])
        if not flight.ours and led_to in {(each.partition, each.target) for each in asked}:
            return f"{flight.partition} is another client's; a plan has begun it"
        if flight.ours and led_to not in planned:
            return f"{flight.partition} is of a plan; no plan leads it to {led_to[1]}"
    lasting = set(_in_flight_all_the_time(partitions, times))
    listed = {flight.partition for flight in said.flights}
    if len(listed) + said.others < len(lasting) or (said.all and lasting - listed):
        return f"{len(listed)} and {said.others} more are in flight; it was {len(lasting)}"
    return ""


def _states(
    partitions: Partitions, name: TopicPartition, times: Collection[float]
) -> Iterator[Partition]:
    for key in partitions.named(name):
        for when in times:
            state = partitions.at(key, when)
            if state is not None:
                yield state


def _in_flight_all_the_time(
    partitions: Partitions, times: Collection[float]
) -> Iterator[TopicPartition]:
    for key in partitions.states:
        states = [partitions.at(key, when) for when in times]
        if all(state is not None and state.reassigning for state in states):
            yield TopicPartition(partitions.names[key.topic_id], key.number)
