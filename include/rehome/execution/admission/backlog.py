"""The moves of a plan that have not ended, indexed so that `decide` reads few of them.

Sorting every pending move at every call costs seconds when there are 100,000. A caller of many
steps keeps one backlog and updates it with :meth:`~Backlog.follow`; for a single call, `decide`
builds one. It holds nothing that ledger and cluster do not: after a crash it is built anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import compress, count
from typing import NamedTuple

from rehome.domain.kafka import BrokerId, ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import Pace, is_small
from rehome.domain.run.progress import ReplicaStatus
from rehome.domain.run.states import MoveState
from rehome.execution.admission.slots import Ends, Slot, slots_of
from rehome.execution.observation.bytes_to_copy import LogStarts
from rehome.execution.observation.waiting_metadata import AssumedStates

PLAYED_OUT_PART = 0.02
"""The part of a processor's time that goes into playing out: what takes 0.4 s holds for 20 s."""


class Filed(NamedTuple):
    """A pending move; sorts by size, largest first, then by partition.

    :param slots: those that it takes; moves without any only change the order of replicas.
    :param left_bytes: what it was to send through each of them when it was filed.
    """

    minus_size_bytes: int
    partition: TopicPartition
    slots: tuple[Slot, ...]
    left_bytes: tuple[int, ...]
    move: Move


class Admitted(NamedTuple):
    """A move that was admitted and has not ended, with the ends of its copies."""

    move: Move
    ends: Ends


class Waiting:
    """The pending moves of one slot.

    :ivar moves: largest first.
    :ivar others: of each, another slot that it takes; None where there is none.
    """

    __slots__ = ("_place", "moves", "others")

    def __init__(self, place: Slot | None) -> None:
        self.moves: list[Filed] = []
        self.others: list[Slot | None] = []
        self._place = place

    def copy(self) -> Waiting:
        """One that goes its own way from here."""
        other = Waiting(self._place)
        other.moves, other.others = list(self.moves), list(self.others)
        return other

    def sort(self) -> None:
        """After moves have been appended."""
        self.moves.sort()
        self.others = [self._other(filed) for filed in self.moves]

    def remove(self, filed: Filed) -> None:
        """Take it out."""
        at = bisect_left(self.moves, filed)
        del self.moves[at], self.others[at]

    def from_size(self, size_bytes: float) -> int:
        """Where the moves begin that are no larger."""
        return bisect_left(self.moves, -size_bytes, key=lambda filed: filed.minus_size_bytes)

    def lacking(self, pace: Pace) -> int:
        """By how much those that take a slot together fall short of ``pace.least_bytes`` each."""
        least = pace.least_bytes
        short = bisect_right(self.moves, -least, key=lambda filed: filed.minus_size_bytes)
        small = self.from_size(pace.small_bytes) if pace.small_bytes else len(self.moves)
        return sum(least + filed.minus_size_bytes for filed in self.moves[short:small])

    def small(self, small_bytes: int) -> Sequence[Filed]:
        """Those that take no slot."""
        return self.moves[self.from_size(small_bytes) :] if small_bytes else ()

    def outside(self, open_slots: Set[Slot | None]) -> Iterator[int]:
        """Where those are whose other slot is open when it is their turn."""
        return compress(count(), map(open_slots.__contains__, self.others))

    def _other(self, filed: Filed) -> Slot | None:
        for slot in filed.slots:
            if slot is not self._place:
                return slot
        return None


BySlot = dict[Slot | None, Waiting]
"""Pending moves by each slot that they take; None = those that take none."""

FiledBy = MoveState | BrokerId | None
"""What a move was filed by: its leader while it is pending, else its state."""


class Backlog:
    """Pending moves by each slot they take, largest first, and the admitted ones.

    Leaders are those of the time a move was filed: they decide where it is looked for, never
    whether it may start.

    :ivar by_danger: those that have an order by it (``Move.danger``), once more, apart by it.
    :ivar view: the ledger's, as of the last poll: the next one reads only what is new.
    :ivar foreseen: the end as it was last predicted.
    :ivar statuses: of replicas, as the last poll has recorded them, and when; None = it has not.
    :ivar assumed: metadata of the pending moves that polls need not read.
    :ivar log_starts: where leaders' logs begin, of what is in flight.
    :ivar filling: brokers that pending moves copy to, and how many of them do.
    """

    def __init__(self) -> None:
        self.view: LedgerView | None = None
        self.assumed = AssumedStates()
        self.log_starts = LogStarts()
        self.foreseen: Foreseen | None = None
        self.statuses: tuple[datetime, Mapping[ReplicaId, ReplicaStatus]] | None = None
        self.admitted: dict[TopicPartition, Admitted] = {}
        self.by_slot: BySlot = {}
        self.by_danger: dict[int, BySlot] = {}
        self.pending_bytes: Counter[Slot] = Counter()
        self.filling: Counter[BrokerId] = Counter()
        self._pending: dict[TopicPartition, Filed] = {}
        self._ordered = 0  # of the pending ones, those with a danger
        self._filed_by: dict[TopicPartition, FiledBy] = {}

    @classmethod
    def of(cls, plan: Plan, view: LedgerView, observation: Observation) -> Backlog:
        """A new backlog of a plan."""
        backlog = cls()
        backlog.follow(plan.moves, view, observation)
        return backlog

    def copy(self) -> Backlog:
        """One that goes its own way from here."""
        other = Backlog()
        other.admitted = dict(self.admitted)
        other.by_slot = _copy(self.by_slot)
        other.by_danger = {danger: _copy(some) for danger, some in self.by_danger.items()}
        other._ordered = self._ordered
        other.pending_bytes = Counter(self.pending_bytes)
        other.filling = Counter(self.filling)
        other._pending = dict(self._pending)
        other._filed_by = dict(self._filed_by)
        return other

    @property
    def pending_count(self) -> int:
        """How many moves have not been admitted."""
        return len(self._pending)

    def in_order(self) -> Iterator[BySlot]:
        """The pending moves in the groups in which they are to start: the most endangered first."""
        yield from (self.by_danger[danger] for danger in sorted(self.by_danger))
        if self._ordered < len(self._pending):
            yield self.by_slot

    def pending_moves(self) -> Iterator[Move]:
        """The moves that have not been admitted."""
        return (filed.move for filed in self._pending.values())

    def pending_sizes(self) -> Iterator[int]:
        """Bytes of each move that has not been admitted, at the end where most of them pass."""
        return (max(filed.left_bytes, default=0) for filed in self._pending.values())

    def has_small(self, small_bytes: int) -> bool:
        """Whether any move that has not ended takes no slot; 0 = none does."""
        if self.small_is_pending(small_bytes):
            return True
        return any(is_small_move(each.move, small_bytes) for each in self.admitted.values())

    def small_is_pending(self, small_bytes: int) -> bool:
        """Whether any move that takes no slot has not been admitted; 0 = none does."""
        places = self.by_slot.items()
        return small_bytes > 0 and any(
            place is None or waiting.small(small_bytes) for place, waiting in places
        )

    def pending(self, partition: TopicPartition) -> Move | None:
        """The pending move of a partition; None when it has none."""
        entry = self._pending.get(partition)
        return entry.move if entry is not None else None

    def follow(self, moves: Iterable[Move], view: LedgerView, observation: Observation) -> None:
        """File anew each of these moves whose state, or (if pending) leader, has changed.

        :param moves: those that may have changed; all of the plan's where that is not known.
        """
        changed = [move for move in moves if self._has_changed(move, view, observation)]
        touched = {waiting for move in changed for waiting in self._file(move, observation)}
        for waiting in touched:
            waiting.sort()

    def _has_changed(self, move: Move, view: LedgerView, observation: Observation) -> bool:
        """Whether a move is to be filed anew; takes it out then, and remembers what by."""
        partition = move.partition
        now: FiledBy = view.moves.get(partition, MoveState.DONE)  # left out: it has ended
        if now is MoveState.PENDING:
            shown = observation.partitions.get(partition)
            now = None if shown is None else shown.leader
        if partition not in self._filed_by:
            self._filed_by[partition] = now
            return True
        if self._filed_by[partition] == now:
            return False
        self._filed_by[partition] = now
        self._take_out(partition)
        return True

    def _file(self, move: Move, observation: Observation) -> list[Waiting]:
        """Append it to the lists it belongs to, which are to be sorted then."""
        state = self._filed_by[move.partition]
        if state is MoveState.ADMITTED:
            self.admitted[move.partition] = Admitted(move, Ends(move))
        if isinstance(state, MoveState):
            return []
        slots = slots_of(move, observation)
        taken, left_bytes = tuple(slots), tuple(slots.values())
        filed = Filed(-move.size_bytes, move.partition, taken, left_bytes, move)
        self._pending[move.partition] = filed
        self.filling.update((*move.adding, *move.relocating))
        for slot, left in slots.items():
            self.pending_bytes[slot] += left
        groups = [self.by_slot]
        if move.danger is not None:
            self._ordered += 1
            groups.append(self.by_danger.setdefault(move.danger, {}))
        places = [_waiting(group, place) for group in groups for place in taken or (None,)]
        for waiting in places:
            waiting.moves.append(filed)
        return places

    def _take_out(self, partition: TopicPartition) -> None:
        self.admitted.pop(partition, None)
        filed = self._pending.pop(partition, None)
        if filed is None:
            return
        self.filling.subtract((*filed.move.adding, *filed.move.relocating))
        for slot, left_bytes in zip(filed.slots, filed.left_bytes, strict=True):
            self.pending_bytes[slot] -= left_bytes
        _remove(self.by_slot, filed)
        danger = filed.move.danger
        if danger is not None:
            self._ordered -= 1
            _remove(self.by_danger[danger], filed)
            if not self.by_danger[danger]:
                del self.by_danger[danger]


def is_small_move(move: Move, small_bytes: int) -> bool:
    """Whether a move takes no slot, by its planned size; one that copies nothing takes none."""
    return is_small(move.size_bytes if move.bytes_to_copy else 0, small_bytes)


def _waiting(group: BySlot, place: Slot | None) -> Waiting:
    waiting = group.get(place)
    if waiting is None:
        waiting = group[place] = Waiting(place)
    return waiting


def _remove(group: BySlot, filed: Filed) -> None:
    for place in filed.slots or (None,):
        waiting = group[place]
        waiting.remove(filed)
        if not waiting.moves:
            del group[place]


def _copy(group: BySlot) -> BySlot:
    return {place: waiting.copy() for place, waiting in group.items()}


@dataclass(frozen=True, slots=True)
class Foreseen:
    """An end that was predicted by playing the rest out, for the polls until that is done again.

    :param work: what it has taken, in about microseconds of a processor.
    :param target_bytes_per_s, live_brokers: what else it was predicted by.
    """

    at: datetime
    eta_s: float
    work: int
    target_bytes_per_s: int | None
    live_brokers: frozenset[BrokerId]

    def holds(self, view: LedgerView, observation: Observation) -> bool:
        """Whether playing out anew is not due yet, and nothing that decides has changed."""
        age_s = (observation.taken_at - self.at).total_seconds()
        return (
            age_s < self.work * 1e-6 / PLAYED_OUT_PART
            and age_s < self.eta_s
            and self.target_bytes_per_s == view.target_bytes_per_s
            and self.live_brokers == observation.live_brokers
        )

    def eta_at(self, observation: Observation) -> float:
        """Seconds from this poll to the end."""
        return max(self.eta_s - (observation.taken_at - self.at).total_seconds(), 0.0)
