"""Copies that share the throttled links of brokers: max-min fair, roughly as TCP shares a link.

The simulated cluster copies by them, and so does the prediction of what a real one will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import Floats, Ints
from rehome.domain.kafka import BrokerId, ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.execution.admission.slots import Direction, Slot, slots_of

CopyId = tuple[TopicPartition, BrokerId]
BytesPerS = Callable[[Slot], float]
"""What a broker copies in a direction."""
DONE_BELOW_BYTES = 1e-3
SETTLEMENTS = 32
"""So many times at most shares are settled anew in :func:`grant`: of thousands of copies some end
all the time."""


class Copy(NamedTuple):
    """One replica that is being made.

    :param read_from: the leader; between log dirs, the broker itself.
    :param left_bytes: what it still lacks.
    """

    replica: ReplicaId
    read_from: BrokerId
    left_bytes: int

    @property
    def id(self) -> CopyId:
        """What it is called among :class:`Copies`."""
        return self.replica.topic_partition, self.replica.broker

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What it takes of brokers."""
        if self.read_from == self.replica.broker:
            return (Slot(Direction.ACROSS, self.read_from),)
        return Slot(Direction.IN, self.replica.broker), Slot(Direction.OUT, self.read_from)


def copies_of(move: Move, observation: Observation) -> Iterator[Copy]:
    """The copies that a move has made, of those that can go on: both ends are alive."""
    live = observation.live_brokers
    for slot, left_bytes in slots_of(move, observation).items():
        if slot.direction is Direction.OUT:
            continue
        source = source_of(move, observation) if slot.direction is Direction.IN else slot.broker
        if slot.direction is Direction.IN and source == slot.broker:
            continue
        if source in live and slot.broker in live:
            yield Copy(ReplicaId(*move.partition, slot.broker), source, left_bytes)


def source_of(move: Move, observation: Observation) -> BrokerId | None:
    """The leader that a move's copies are, or were, read from; None while there is none.

    When all of them are complete and the leader is among the replicas that go, one of the new ones
    is elected at once: nothing was read from that.
    """
    state = observation.partitions.get(move.partition)
    leader = None if state is None else state.leader
    if leader in move.adding and move.partition not in observation.ongoing:
        return next(iter(move.removing), None)
    return leader


def max_min_rates(source: Ints, destination: Ints, capacity: Floats) -> Floats:
    """Rate of each flow over two links, max-min fair (Bertsekas and Gallager, 6.5.2).

    :param source, destination: each flow's links, as indexes into ``capacity``.
    :param capacity: bytes per second of each link.
    """
    rates = np.zeros(len(source))
    left = capacity.astype(np.float64).copy()
    open_flows = np.arange(len(source))
    links = len(capacity)
    while len(open_flows):
        out, into = source[open_flows], destination[open_flows]
        flows = np.bincount(out, minlength=links) + np.bincount(into, minlength=links)
        share = left / np.maximum(flows, 1)
        least = np.minimum(share[out], share[into])
        slack = np.bincount(out, least < share[out], links)
        slack += np.bincount(into, least < share[into], links)
        fixed = (slack[out] == 0) | (slack[into] == 0)
        rates[open_flows[fixed]] = least[fixed]
        left -= np.bincount(out[fixed], least[fixed], links)
        left -= np.bincount(into[fixed], least[fixed], links)
        left = np.maximum(left, 0.0)
        open_flows = open_flows[~fixed]
    return rates


class Copies:
    """Every copy in flight, with what it still lacks.

    A copy from one log dir of a broker to another is one that the broker reads from itself.

    :param brokers: ids; each has one link per :class:`Direction`.
    """

    def __init__(self, brokers: Collection[BrokerId]) -> None:
        self._index = {broker: place for place, broker in enumerate(sorted(brokers))}
        self._ids: list[CopyId] = []
        self._source: Ints = np.zeros(0, np.int64)
        self._destination: Ints = np.zeros(0, np.int64)
        self._remaining: Floats = np.zeros(0)
        self._rates: Floats = np.zeros(0)
        self._stale = False
        self.capacity: Floats = np.zeros(3 * len(self._index))

    def __len__(self) -> int:
        return len(self._ids)

    def set_rate(self, rate_bytes_per_s: float, live: Collection[BrokerId]) -> None:
        """Let every live broker copy so much in each direction; dead ones nothing."""
        self.set_rates(lambda slot: rate_bytes_per_s if slot.broker in live else 0.0)

    def set_rates(self, bytes_per_s: BytesPerS) -> None:
        """Let every broker copy so much in each direction."""
        out, into, across = (
            [bytes_per_s(Slot(direction, broker)) for broker in self._index]
            for direction in (Direction.OUT, Direction.IN, Direction.ACROSS)
        )
        # Both ends of a copy between log dirs are the same link: it passes that twice.
        self.capacity = np.array([*out, *into, *(2 * rate for rate in across)], np.float64)
        self._stale = True

    def start(self, copies: Collection[tuple[CopyId, BrokerId, int]]) -> None:
        """Begin copies: id, the broker that they read from, bytes."""
        count = len(self._index)
        source, destination = [], []
        for (_, broker), read_from, _ in copies:
            across = 2 * count + self._index[broker] if read_from == broker else None
            source.append(self._index[read_from] if across is None else across)
            destination.append(count + self._index[broker] if across is None else across)
        self._ids += [copy for copy, _, _ in copies]
        sizes = [size_bytes for _, _, size_bytes in copies]
        self._source = np.append(self._source, np.array(source, np.int64))
        self._destination = np.append(self._destination, np.array(destination, np.int64))
        self._remaining = np.append(self._remaining, np.array(sizes, np.float64))
        self._stale = True

    def stop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the copies of these partitions."""
        gone = set(partitions)
        self._keep(np.array([partition not in gone for partition, _ in self._ids], bool))

    def read_from(self, partition: TopicPartition, leader: BrokerId) -> None:
        """Resume a partition's copies from another leader."""
        for place, (copy_partition, _) in enumerate(self._ids):
            if copy_partition == partition:
                self._source[place] = self._index[leader]
        self._stale = True

    def remaining(self) -> dict[CopyId, int]:
        """Bytes that each copy lacks."""
        return dict(zip(self._ids, np.ceil(self._remaining).astype(int).tolist(), strict=True))

    def next_end_s(self) -> float:
        """Seconds until a copy is complete; infinite when none moves."""
        if self._stale:
            self._rates = max_min_rates(self._source, self._destination, self.capacity)
            self._stale = False
        moving = self._rates > 0
        if not moving.any():
            return float("inf")
        return float((self._remaining[moving] / self._rates[moving]).min())

    def next_below_s(self, size_bytes: float) -> float:
        """Seconds until a copy lacks no more than this; infinite when none moves."""
        self.next_end_s()
        moving = self._rates > 0
        if not moving.any():
            return float("inf")
        before = np.maximum(self._remaining[moving] - size_bytes, 0.0)
        return float((before / self._rates[moving]).min())

    def run(self, seconds: float) -> list[CopyId]:
        """Let so much time pass, at rates of its beginning; the copies that became complete.

        A copy that ends within that time leaves its share unused for the rest of it.
        """
        self.next_end_s()
        self._remaining = self._remaining - self._rates * seconds
        complete = self._remaining <= DONE_BELOW_BYTES
        if not complete.any():
            return []
        ended = [self._ids[place] for place in np.flatnonzero(complete)]
        self._keep(~complete)
        return ended

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self._ids = [self._ids[place] for place in np.flatnonzero(kept)]
        self._source, self._destination = self._source[kept], self._destination[kept]
        self._remaining = self._remaining[kept]
        self._stale = True


def grant(copies: Collection[Copy], seconds: float, bytes_per_s: BytesPerS) -> Counter[Slot]:
    """Bytes that pass each broker in that time, with what the other ends of its copies leave.

    :param copies: what is in flight in the beginning.
    """
    copying = Copies({slot.broker for copy in copies for slot in copy.slots})
    copying.set_rates(bytes_per_s)
    copying.start([(copy.id, copy.read_from, copy.left_bytes) for copy in copies])
    at_s, at_least_s = 0.0, seconds / SETTLEMENTS
    while copying and at_s < seconds:
        step_s = min(max(copying.next_end_s(), at_least_s), seconds - at_s)
        copying.run(step_s)
        at_s += step_s
    left = copying.remaining()
    passed: Counter[Slot] = Counter()
    for copy in copies:
        for slot in copy.slots:
            passed[slot] += copy.left_bytes - left.get(copy.id, 0)
    return passed
