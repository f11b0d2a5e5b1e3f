"""Which brokers are alive, by the controllers' log, and what is away as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from rehome.domain.kafka import BrokerId
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Registration

MOST_DEAD = 0.4
"""While a larger part of the brokers is dead, it is an outage of more than brokers."""


@dataclass(frozen=True, slots=True)
class Alive:
    """The brokers at a time.

    :param live: those that are not fenced; ``racks``: of all that were ever registered.
    :param holding: those that hold replicas; ``lacking``: those of which a partition's replica is
        not in sync.
    """

    at: float
    live: frozenset[BrokerId]
    racks: Mapping[BrokerId, str | None]
    holding: frozenset[BrokerId]
    lacking: frozenset[BrokerId]


def states_of(log: MetadataLog) -> list[Alive]:
    """After each change of the log."""
    return list(_states(log))


def _states(log: MetadataLog) -> Iterator[Alive]:
    known: dict[BrokerId, Registration] = {}
    partitions: dict[PartitionKey, Partition] = {}
    for entry in log.entries:
        for record in entry.records:
            if record.name == "brokers" and record.value is not None:
                known[record.key] = record.value
            elif record.name == "partitions" and record.value is None:
                partitions.pop(record.key, None)
            elif record.name == "partitions":
                partitions[record.key] = record.value
        yield Alive(
            entry.at,
            frozenset(broker for broker, one in known.items() if not one.fenced),
            {broker: one.rack for broker, one in known.items()},
            frozenset(broker for one in partitions.values() for broker in one.replicas),
            frozenset(
                broker
                for one in partitions.values()
                for broker in one.replicas
                if broker not in one.isr
            ),
        )


def between(states: Sequence[Alive], since: float, until: float) -> list[Alive]:
    """States that held at some time in between."""
    before = [state for state in states if state.at < since]
    return [*before[-1:], *(state for state in states if since <= state.at <= until)]


def longest_alive(states: Sequence[Alive], broker: BrokerId, since: float, until: float) -> float:
    """Seconds for which a broker was alive without a break, at the longest, and died again."""
    longest, began = 0.0, None
    for state in between(states, since, until):
        if broker in state.live:
            began = max(state.at, since) if began is None else began
        elif began is not None:
            longest, began = max(longest, state.at - began), None
    return longest


def absences(states: Sequence[Alive], broker: BrokerId) -> list[float]:
    """Seconds of each time that a broker was away and came back."""
    found, since = list[float](), None
    for state in states:
        if broker not in state.live and broker in state.racks:
            since = state.at if since is None else since
        elif since is not None:
            found.append(state.at - since)
            since = None
    return found


def stays(states: Sequence[Alive], broker: BrokerId) -> Iterator[tuple[float, float]]:
    """From when until when a broker was alive, each time; the last one may never end."""
    since: float | None = None
    for state in states:
        if broker in state.live:
            since = state.at if since is None else since
        elif since is not None:
            yield since, state.at
            since = None
    if since is not None:
        yield since, inf


def away_all_the_time(states: Sequence[Alive], since: float, until: float) -> set[str]:
    """What was away as a whole from one time to another."""
    found = [_away(state) for state in between(states, since, until)]
    return set.intersection(*found) if found else set()


def _away(state: Alive) -> set[str]:
    """Racks at any level that hold replicas, and of which no broker is alive; of a level that says
    more than the brokers do.
    """
    paths = {broker: (rack or "").strip("/").split("/") for broker, rack in state.racks.items()}
    found = set()
    for level in range(1, max(map(len, paths.values()), default=0) + 1):
        nodes: dict[str, set[BrokerId]] = {}
        for broker, path in paths.items():
            if len(path) >= level and path[0]:
                nodes.setdefault("/".join(path[:level]), set()).add(broker)
        if max(map(len, nodes.values()), default=0) < 2:
            continue
        found |= {
            node
            for node, brokers in nodes.items()
            if not brokers & state.live and brokers & state.holding
        }
    brokers = state.live | state.holding
    if len(brokers - state.live) > MOST_DEAD * len(brokers):
        found.add("many brokers")
    return found
