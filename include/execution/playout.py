"""The rest of a plan played out ahead: the same admission, over copies that share links. Pure.

What the busiest broker lacks, over its rate, is the least that is left. Its copies may have to
wait for other brokers, though: with few moves for each, or a few large ones among them, that is
a tenth of the whole time and more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

from include.cluster.model import BrokerId, ReplicaId
from include.execution.admission import admit
from include.execution.backlog import Admitted, Backlog
from include.execution.copies import Copies, CopyId
from include.execution.model import LedgerView, MoveState, Observation, PlanState, Policy
from include.execution.slots import Direction, InUse, Slot, slots_of
from include.planning.pace import Pace
from include.planning.plan import Move

STEPS = 8
"""So many times at most shares are settled anew between two looks: with thousands of copies, some
of them end all the time."""

BytesPerS = Callable[[Slot], float]
"""What a broker copies in a direction."""


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
        """What it is called among ``Copies``."""
        return self.replica.topic_partition, self.replica.broker

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What it takes of brokers."""
        if self.read_from == self.replica.broker:
            return (Slot(Direction.ACROSS, self.read_from),)
        return Slot(Direction.IN, self.replica.broker), Slot(Direction.OUT, self.read_from)


def copies_of(move: Move, seen: Observation) -> Iterator[Copy]:
    """The copies that a move has made; none over the network while nobody leads the partition."""
    state = seen.partitions.get(move.partition)
    leader = None if state is None else state.leader
    for slot, left_bytes in slots_of(move, seen).items():
        read_from = leader if slot.direction is Direction.IN else slot.broker
        if slot.direction is not Direction.OUT and read_from is not None:
            yield Copy(ReplicaId(*move.partition, slot.broker), read_from, left_bytes)


def time_left_s(
    backlog: Backlog,
    in_flight: Iterable[Admitted],
    seen: Observation,
    policy: Policy,
    pace: Pace,
    bytes_per_s: BytesPerS,
) -> float:
    """Seconds until the last copy is complete, of those that can be made as things stand.

    Takes some tens of microseconds for each move: nothing for plans of many thousands.

    :param in_flight: moves whose copies are not complete.
    :param pace: what `decide` admits moves by.
    :param bytes_per_s: what brokers deliver.
    """
    return _Playout(backlog, in_flight, seen, policy, pace, bytes_per_s).run()


class _Playout:
    """The plan's course from here: window, disks and everybody else are left out."""

    def __init__(
        self,
        backlog: Backlog,
        in_flight: Iterable[Admitted],
        seen: Observation,
        policy: Policy,
        pace: Pace,
        bytes_per_s: BytesPerS,
    ) -> None:
        self._sizes, self._future_sizes = dict(seen.sizes), dict(seen.future_sizes)
        self._seen = replace(
            seen, sizes=self._sizes, future_sizes=self._future_sizes, disks={}, missing={}
        )
        self._policy = replace(policy, window_end=None)
        self._pace = pace
        self._backlog = backlog.copy()
        flying = list(in_flight)
        taken = {slot for found in flying for slot in slots_of(found.move, seen)}
        self._copies = Copies({slot.broker for slot in taken.union(backlog.by_slot) if slot})
        self._copies.set_rates(bytes_per_s)
        self._flying: dict[CopyId, tuple[Admitted, int]] = {}  # with the bytes when complete
        self._now_s = 0.0
        for found in flying:
            self._start(found)

    def run(self) -> float:
        while True:
            started = self._backlog.pending_count and self._look()
            if not self._copies and not started:
                return self._now_s
            self._copy_until(self._next_look_s())

    def _look(self) -> int:
        """Start what may start now; how many moves that are."""
        self._show_sizes()
        in_use = InUse(self._pace.slot_bytes)
        flying = {found.move.partition: found for found, _ in self._flying.values()}
        in_use.add_all(flying.values(), self._seen)
        moves = admit(
            (),
            self._backlog,
            in_use,
            self._seen,
            self._seen.taken_at,
            self._policy,
            self._pace.bytes_per_s,
            lambda move: move.partition in self._seen.partitions,
        ).moves
        states = dict.fromkeys((move.partition for move in moves), MoveState.ADMITTED)
        self._backlog.follow(moves, LedgerView(PlanState.RUNNING, states), self._seen)
        for move in moves:
            self._start(self._backlog.admitted[move.partition])
        return len(moves)

    def _show_sizes(self) -> None:
        for copy, left in self._copies.remaining().items():
            found, whole = self._flying[copy]
            across = copy[1] not in found.move.adding
            sizes = self._future_sizes if across else self._sizes
            sizes[ReplicaId(*copy[0], copy[1])] = whole - left

    def _start(self, found: Admitted) -> None:
        started = []
        for copy in copies_of(found.move, self._seen):
            across = copy.read_from == copy.replica.broker
            has = (self._future_sizes if across else self._sizes).get(copy.replica, 0)
            left_bytes = max(1, copy.left_bytes)  # of an empty partition the broker must hear, too
            self._flying[copy.id] = found, has + left_bytes
            started.append((copy.id, copy.read_from, left_bytes))
        if started:
            self._copies.start(started)

    def _next_look_s(self) -> float:
        """The first look at which something may have become free; infinite if nothing waits."""
        if not self._backlog.pending_count:
            return inf
        # A move takes a whole slot until less than its part of what passes till then is left.
        shrinks_s = self._copies.next_below_s(self._pace.slot_bytes) if self._copies else 0.0
        every_s = self._policy.reaction_s
        if not every_s:
            return self._now_s + shrinks_s
        return ceil((self._now_s + shrinks_s) / every_s + 1e-9) * every_s

    def _copy_until(self, look_s: float) -> None:
        while self._copies:
            end_s = self._copies.next_end_s()
            if self._now_s + end_s > look_s:
                break
            self._run(end_s)
        if look_s < inf:
            self._run(look_s - self._now_s)
            self._now_s = look_s

    def _run(self, seconds: float) -> None:
        for copy in self._copies.run(seconds):
            del self._flying[copy]
        self._now_s += seconds


def granted(copies: Collection[Copy], seconds: float, bytes_per_s: BytesPerS) -> Counter[Slot]:
    """Bytes that pass each broker in that time, with what the other ends of its copies leave.

    :param copies: what is in flight in the beginning.
    """
    if not copies:
        return Counter()
    copying = Copies({slot.broker for copy in copies for slot in copy.slots})
    copying.set_rates(bytes_per_s)
    copying.start([(copy.id, copy.read_from, copy.left_bytes) for copy in copies])
    at_s, at_least_s = 0.0, seconds / STEPS
    while copying and at_s < seconds:
        step_s = min(max(copying.next_end_s(), at_least_s), seconds - at_s)
        copying.run(step_s)
        at_s += step_s
    left: Mapping[CopyId, int] = copying.remaining()
    passed: Counter[Slot] = Counter()
    for copy in copies:
        for slot in copy.slots:
            passed[slot] += copy.left_bytes - left.get(copy.id, 0)
    return passed
