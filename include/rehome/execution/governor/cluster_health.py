"""Strain of the cluster: whether partitions on the plan's brokers, its own among them, fall behind
or leave the ISR. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from rehome.domain.kafka import ReplicaId, TopicDescription, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import FlowSample, Strain
from rehome.domain.run.observation import Observation
from rehome.domain.text import count_text

WATCHED = 200
"""Partitions of others that are watched, and as many of the plan's own; their offsets come with
those of the replicas that are copied.
"""
RISING_READINGS = 3
LAG_FACTOR, LAG_MESSAGES = 2.0, 100
"""In-sync followers fall behind when they lack more and more, and this much more than usual."""
KNOWN_FOR = timedelta(seconds=60)
"""How long a reading of the trigger counts for the worker, which does not watch other partitions.
"""


def bystanders(plan: Plan, topics: Mapping[str, TopicDescription]) -> tuple[TopicPartition, ...]:
    """Partitions to watch: of those that have two replicas on the plan's brokers, evenly chosen,
    others' first and then its own. They stay the same for as long as the plan runs, whatever has
    ended of it: so polls can be compared.

    Their brokers are read for the plan anyway.
    """
    involved = plan.brokers
    partitions = sorted(
        partition
        for name, topic in topics.items()
        for number, state in topic.partitions.items()
        if len(involved.intersection(state.replicas)) > 1
        for partition in (TopicPartition(name, number),)
    )
    own = [partition for partition in partitions if partition in plan.by_partition]
    others = [partition for partition in partitions if partition not in plan.by_partition]
    return (*_some(others), *_some(own))


def _some(partitions: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
    step = -(-len(partitions) // WATCHED) or 1
    return partitions[::step]


def strain_of(observation: Observation) -> Strain | None:
    """How the partitions that an observation has watched are; None = it has watched none.

    The leader of a partition is ahead of all others, so what they lack of the farthest counts.
    A replica that is being added, by the plan or another client, has not left the ISR: it was never
    in it.
    """
    if not observation.bystanders:
        return None
    outside = behind = 0
    for partition, state in observation.bystanders.items():
        entry = observation.ongoing.get(partition)
        members = set(state.replicas).difference(entry.adding if entry else ())
        outside += len(observation.live_brokers & members - state.isr)
        offsets = (
            observation.log_end_offsets.get(ReplicaId(*partition, broker)) for broker in state.isr
        )
        ends = [end for end in offsets if isinstance(end, int)]
        behind += sum(max(ends) - end for end in ends)
    return Strain(outside, behind)


@dataclass(frozen=True, slots=True)
class LeftIsr:
    """Replicas of watched partitions have left the ISR: so many more than there were outside."""

    replicas: int

    def __str__(self) -> str:
        left = count_text(
            self.replicas,
            "replica of watched partitions has",
            "replicas of watched partitions have",
        )
        return f"{left} left the ISR"


@dataclass(frozen=True, slots=True)
class FallingBehind:
    """In-sync followers of watched partitions lack more messages of their leaders in each reading,
    and far more than usual.
    """

    messages: int
    usual_messages: float

    def __str__(self) -> str:
        return (
            f"in-sync followers of watched partitions fall behind: {self.messages} messages, "
            f"usually {self.usual_messages:.0f}"
        )


def newest_harm(flows: Sequence[FlowSample]) -> LeftIsr | FallingBehind | None:
    """What watched partitions suffer by the newest reading of them; None = nothing is known.

    :param flows: all of them, oldest first; what the older ones show is what is usual. Not every
        poll, and never a worker's, is at watched partitions. The ISR comes with the metadata, also
        while a broker gives no answer; how far followers are behind is not known then.
    """
    readings = _readings(flows)
    if not readings or flows[-1].at - readings[-1].at > KNOWN_FOR:
        return None
    return _harm_of(readings)


def well_since(flows: Sequence[FlowSample], since: datetime) -> bool:
    """Whether no poll after a moment shows strain, and by the newest one followers are up again.

    :param flows: as for :func:`newest_harm`.
    """
    readings = _readings(flows)
    before = sum(reading.at <= since for reading in readings)
    later = (_harm_of(readings[: end + 1]) for end in range(before, len(readings)))
    if any(harm is not None for harm in later):
        return False
    if readings and readings[-1].messages_behind is None:
        return False
    return not _far_behind(_lags(readings))


class _Reading(NamedTuple):
    """A :class:`Strain`; ``messages_behind`` is None where a broker gave no answer."""

    at: datetime
    outside_isr: int
    messages_behind: int | None


def _readings(flows: Sequence[FlowSample]) -> list[_Reading]:
    return [
        _Reading(
            sample.at,
            sample.strain.outside_isr,
            None if sample.silent else sample.strain.messages_behind,
        )
        for sample in flows
        if sample.strain is not None
    ]


def _lags(readings: Sequence[_Reading]) -> list[int]:
    return [item.messages_behind for item in readings if item.messages_behind is not None]


def _harm_of(readings: Sequence[_Reading]) -> LeftIsr | FallingBehind | None:
    if len(readings) < RISING_READINGS:
        return None
    out = readings[-1].outside_isr - min(item.outside_isr for item in readings)
    if out > 0:
        return LeftIsr(out)
    if readings[-1].messages_behind is None:
        return None
    lags = _lags(readings)
    rising = all(one < other for one, other in pairwise(lags[-RISING_READINGS:]))
    if not rising or not _far_behind(lags):
        return None
    return FallingBehind(lags[-1], _usual_lag(lags))


def _far_behind(lags: Sequence[int]) -> bool:
    if len(lags) < RISING_READINGS:
        return False
    return lags[-1] >= LAG_FACTOR * _usual_lag(lags) + LAG_MESSAGES


def _usual_lag(lags: Sequence[int]) -> float:
    return median(lags[: 1 - RISING_READINGS])
