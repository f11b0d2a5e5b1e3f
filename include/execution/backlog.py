"""The moves of a plan that have not ended, indexed so that `decide` looks at few of them.

Sorting every pending move at every call costs seconds when there are 100,000. Who makes many
calls keeps one backlog and lets it :meth:`~Backlog.follow`; who makes one has `decide` build it.
It holds nothing that ledger and cluster do not: after a crash it is built anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from include.cluster.model import BrokerId, TopicPartition
from include.execution.model import LedgerView, MoveState, Observation
from include.execution.slots import Ends, Slot, slots_of
from include.planning.plan import Move, Plan


class Filed(NamedTuple):
    """A pending move; sorts by size, largest first, then by partition.

    :param taken: the slots that it takes; moves without any only change the order of replicas.
    :param ends: those of its copies.
    """

    minus_size_bytes: int
    partition: TopicPartition
    taken: tuple[Slot, ...]
    move: Move
    ends: Ends


class Admitted(NamedTuple):
    """A move that was admitted and has not ended, with the ends of its copies."""

    move: Move
    ends: Ends


class Waiting:
    """The pending moves of one slot.

    :ivar moves: largest first.
    :ivar by_other: the same by another slot that they take; None where there is none.
    """

    def __init__(self) -> None:
        self.moves: list[Filed] = []
        self.by_other: dict[Slot | None, dict[TopicPartition, Filed]] = {}

    def add(self, filed: Filed, place: Slot | None) -> None:
        """Append it; ``moves`` is to be sorted then."""
        self.moves.append(filed)
        self.by_other.setdefault(_other(filed, place), {})[filed.partition] = filed

    def remove(self, filed: Filed, place: Slot | None) -> None:
        """Take it out."""
        del self.moves[bisect_left(self.moves, filed)]
        other = _other(filed, place)
        del self.by_other[other][filed.partition]
        if not self.by_other[other]:
            del self.by_other[other]

    def lacking(self, least_bytes: int) -> int:
        """By how much these moves together fall short of ``least_bytes`` each."""
        small = bisect_right(self.moves, -least_bytes, key=lambda filed: filed.minus_size_bytes)
        return sum(least_bytes + filed.minus_size_bytes for filed in self.moves[small:])

    def beside(self, open_slots: Set[Slot | None]) -> Sequence[Filed]:
        """At least those whose other slots are open, largest first."""
        others = self.by_other.keys() & open_slots
        if len(others) > len(self.by_other) // _FEW:
            return self.moves
        return sorted(filed for other in others for filed in self.by_other[other].values())


_FEW = 3
"""Where fewer of the other slots than one in so many are open, picking beats going through all."""


def _other(filed: Filed, place: Slot | None) -> Slot | None:
    return next((slot for slot in filed.taken if slot != place), None)


class _Known(NamedTuple):
    """What a move was filed by: where that changes, it is filed again."""

    state: MoveState
    leader: BrokerId | None


class Backlog:
    """Pending moves by each slot they take, largest first, and the admitted ones.

    Leaders are those of the time a move was filed: they decide where it is looked for, never
    whether it may start.
    """

    def __init__(self) -> None:
        self.admitted: dict[TopicPartition, Admitted] = {}
        self.by_slot: dict[Slot | None, Waiting] = {}
        self.pending_bytes: Counter[Slot] = Counter()
        self._pending: dict[TopicPartition, tuple[Filed, dict[Slot, int]]] = {}
        self._known: dict[TopicPartition, _Known] = {}

    @classmethod
    def of(cls, plan: Plan, view: LedgerView, seen: Observation) -> Backlog:
        """Built from nothing."""
        backlog = cls()
        backlog.follow(plan.moves, view, seen)
        return backlog

    @property
    def pending_count(self) -> int:
        """How many moves have not been admitted."""
        return len(self._pending)

    def pending(self, partition: TopicPartition) -> Move | None:
        """The pending move of a partition; None when it has none."""
        found = self._pending.get(partition)
        return found[0].move if found is not None else None

    def follow(self, moves: Iterable[Move], view: LedgerView, seen: Observation) -> None:
        """File anew each of these moves whose state, or (if pending) leader, has changed.

        :param moves: those that may have changed; all of the plan's where nobody knows.
        """
        changed = [move for move in moves if self._has_changed(move, view, seen)]
        for move in changed:
            self._take_out(move.partition)
        touched = {place for move in changed for place in self._put(move, seen)}
        for place in touched:
            self.by_slot[place].moves.sort()

    def _has_changed(self, move: Move, view: LedgerView, seen: Observation) -> bool:
        """Whether a move is to be filed anew; remembers what by."""
        partition = move.partition
        state = view.moves.get(partition, MoveState.PENDING)
        shown = seen.partitions.get(partition) if state is MoveState.PENDING else None
        now = _Known(state, None if shown is None else shown.leader)
        if self._known.get(partition) == now:
            return False
        self._known[partition] = now
        return True

    def _put(self, move: Move, seen: Observation) -> tuple[Slot | None, ...]:
        """Append it to the lists it belongs to, which are to be sorted then."""
        state = self._known[move.partition].state
        if state is MoveState.ADMITTED:
            self.admitted[move.partition] = Admitted(move, Ends(move))
        if state is not MoveState.PENDING:
            return ()
        ends = Ends(move)
        sizes = slots_of(move, seen, ends)
        filed = Filed(-move.size_bytes, move.partition, tuple(sizes), move, ends)
        self._pending[move.partition] = filed, sizes
        self.pending_bytes.update(sizes)
        places = filed.taken or (None,)
        for place in places:
            self.by_slot.setdefault(place, Waiting()).add(filed, place)
        return places

    def _take_out(self, partition: TopicPartition) -> None:
        self.admitted.pop(partition, None)
        found = self._pending.pop(partition, None)
        if found is None:
            return
        filed, sizes = found
        self.pending_bytes.subtract(sizes)
        for place in filed.taken or (None,):
            waiting = self.by_slot[place]
            waiting.remove(filed, place)
            if not waiting.moves:
                del self.by_slot[place]
