"""What a listing of reassignments in flight says, held against what was in flight."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rehome.domain.kafka import BrokerId, Replicas, TopicPartition
from rehome.execution.observation.foreign_reassignments import (
    CancelOutlook,
    Hindrance,
    NeverEnds,
)
from world.history import Alter
from world.judge.flights import Span
from world.judge.living import Alive, between
from world.judge.placement import Partitions, target_of
from world.kafka.metadata import Partition


@dataclass(frozen=True, slots=True)
class Listed:
    """One reassignment as it was described.

    :param ours: of a plan of the installation that describes it.
    :param hindrance: why it cannot end; None = it may. Of one whose ``unread`` partition no broker
        has described, its leader and its in-sync replicas are not known.
    """

    partition: TopicPartition
    adding: Replicas
    removing: Replicas
    ours: bool
    hindrance: Hindrance | None = None
    unread: bool = False

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


def wrong_in_hindrances(
    said: Described, partitions: Partitions, span: Span, alive: Sequence[Alive]
) -> str:
    """What it says of what can never end, and of what ends it, that was at no moment so; and what
    could not end all the time, and was not said to. "" = nothing.

    :param span: within it everything was read, by brokers that lag, too.
    """
    times = {*partitions.times(span.since, span.until)}
    times |= {state.at for state in alive if span.since < state.at < span.until}
    for flight in said.flights:
        states = [
            (state, _live(alive, when))
            for when in sorted(times)
            for state in _states(partitions, flight.partition, [when])
            if flight.is_of(state)
        ]
        if states and (wrong := _wrong_hindrance(flight, states)):
            return f"{flight.partition} {wrong}"
    return ""


def _wrong_hindrance(
    flight: Listed, states: Sequence[tuple[Partition, frozenset[BrokerId]]]
) -> str:
    found, reasons = flight.hindrance, [_reasons(state, live) for state, live in states]
    if found is None:
        known = {NeverEnds.SENT_BACK, NeverEnds.TARGET_AWAY} if flight.unread else set(NeverEnds)
        unsaid = all(known.intersection(each) for each in reasons)
        return f"may end; it could not: {sorted(reasons[-1])}" if unsaid else ""
    if not any(found.kind in each for each in reasons):
        return f"cannot end, {found.kind}; it was never so"
    refused = [set(state.isr) <= set(state.adding) for state, _ in states]
    if found.cancel is CancelOutlook.TAKEN and all(refused):
        return "can be cancelled; no replica of before was in sync"
    if found.cancel is CancelOutlook.REFUSED and not any(refused):
        return "cannot be cancelled; a replica of before was in sync"
    in_sync = {broker for state, _ in states for broker in state.isr}
    never = sorted({*found.in_sync} - in_sync)
    return f"has {never} in sync; they never were" if never else ""


def _reasons(state: Partition, live: frozenset[BrokerId]) -> set[NeverEnds]:
    """Why the controllers do not end a reassignment while the brokers are as they are."""
    found = set()
    if {*state.adding} & {*state.removing}:
        found.add(NeverEnds.SENT_BACK)
    if {*state.adding} - live:
        found.add(NeverEnds.TARGET_AWAY)
    if state.leader is None:
        found.add(NeverEnds.NO_SOURCE)
    shrinks = len(state.adding) < len(state.removing)
    if shrinks and {*state.adding} <= {*state.isr} and {*target_of(state)} - live:
        found.add(NeverEnds.KEPT_AWAY)
    return found


def _live(alive: Sequence[Alive], when: float) -> frozenset[BrokerId]:
    return between(alive, when, when)[-1].live


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
