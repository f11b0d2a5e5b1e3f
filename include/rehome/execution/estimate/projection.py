"""The rest of a plan played out ahead: the same admission, over copies that share links. Pure.

What the busiest broker lacks, over its rate, is the least that is left. Its copies may have to
wait for other brokers, though: with few moves for each, or a few large ones among them, that is
a tenth of the whole time and more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import SMALL_MOVE_S, Pace
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.admission.admit import admit
from rehome.execution.admission.backlog import Admitted, Backlog, is_small_move
from rehome.execution.admission.fair_share import BytesPerS, Copies, Copy, CopyId, copies_of
from rehome.execution.admission.slots import Direction, InUse, Slot, slots_of
from rehome.execution.admission.small_costs import mean_cost

WORK = 1_000_000
"""So much is played out, in about microseconds of a processor; the rest follows from that."""
STEP_WORK = 150
"""What settling the shares anew takes, and one more for each copy."""
START_WORK = 40
"""What starting a move takes besides; it bounds nothing, and decides how soon to play out anew."""
SMALL_STEP_S = 1.0
"""About so long after one step the next one starts small moves: see ``execution.rolling``."""


@dataclass(frozen=True, slots=True)
class Course:
    """How the rest of a plan goes, of those copies that can be made as things stand.

    :param seconds: until the last of them is complete.
    :param whole: whether that is all of the plan.
    :param work: what playing it out has taken, in about microseconds of a processor.
    """

    seconds: float
    whole: bool
    work: int = field(default=0, compare=False)


def play_out(
    backlog: Backlog,
    in_flight: Iterable[Admitted],
    observation: Observation,
    policy: Policy,
    pace: Pace,
    bytes_per_s: BytesPerS,
    small_move_s: float = SMALL_MOVE_S,
) -> Course:
    """Let everything that is left be copied, or so much of it that the rest can be estimated from
    that.

    :param in_flight: moves whose copies are not complete.
    :param policy: its reaction is the time until the next step, as measured.
    :param pace: what `decide` admits moves by; its reaction is that of the settings.
    :param bytes_per_s: what brokers deliver.
    :param small_move_s: what they take for a small move, of a topic that is not large.
    """
    course = _Playout(backlog, in_flight, observation, policy, pace, bytes_per_s, small_move_s)
    return course.run()


class _Flying(NamedTuple):
    """A copy in flight, of which move it is, and its size when it is complete.

    :param since_s: when it was started, or found in flight.
    :param move_bytes: what its move lacked then, at the end where most of that passes.
    """

    admitted_move: Admitted
    copy: Copy
    whole_bytes: int
    since_s: float
    move_bytes: int


class _Playout:
    """The plan's course from here: window, disks and everybody else are left out."""

    def __init__(
        self,
        backlog: Backlog,
        in_flight: Iterable[Admitted],
        observation: Observation,
        policy: Policy,
        pace: Pace,
        bytes_per_s: BytesPerS,
        small_move_s: float,
    ) -> None:
        self._sizes, self._future_sizes = dict(observation.sizes), dict(observation.future_sizes)
        self._observation = replace(
            observation, sizes=self._sizes, future_sizes=self._future_sizes, disks={}, missing={}
        )
        self._policy = replace(policy, window_end=None)
        self._pace = pace
        self._looked_at = replace(pace, reaction_s=policy.reaction_s)
        self._backlog = backlog.copy()
        self._copies = Copies(observation.live_brokers)
        self._copies.set_rates(bytes_per_s)
        self._bytes_per_s = bytes_per_s
        self._flying: dict[CopyId, _Flying] = {}
        self._waiting_moves: dict[
            TopicPartition, Admitted
        ] = {}  # who waits for a dead broker or a leader
        self._now_s = self._small_until_s = 0.0
        in_flight, small_bytes = list(in_flight), policy.small_bytes
        open_moves = (*(each.move for each in in_flight), *backlog.pending_moves())
        small = [move for move in open_moves if is_small_move(move, small_bytes)]
        self._small_move_s = small_move_s * mean_cost(small)
        self._work = self._starts = 0
        self._ended: list[tuple[float, int]] = []  # seconds and bytes of each such move
        for admitted_move in in_flight:
            self._start(admitted_move)
        waiting = [move for move in self._backlog.pending_moves() if not self._may_start(move)]
        self._take_out(waiting)
        self._all_may_start = not waiting

    def run(self) -> Course:
        began_with = sum(map(_bytes_where_made, self._bytes_left().items()))
        while self._work < WORK:
            started = self._backlog.pending_count and self._decide()
            if not started and self._copies.next_end_s() == inf:
                whole = self._whole and not self._backlog.pending_count
                ends_s = max(self._now_s, self._small_until_s)
                return Course(ends_s, whole, self._work_taken())
            self._copy_until(self._next_poll_s())
        return Course(self._now_s + self._rest_s(began_with), self._whole, self._work_taken())

    def _work_taken(self) -> int:
        return self._work + START_WORK * self._starts

    def _rest_s(self, began_with: int) -> float:
        """Of what was not played: the pace of what was, the busiest broker, or places decide."""
        left = self._bytes_left()
        busiest_s = max((self._takes_s(*each) for each in left.items()), default=0.0)
        size = sum(map(_bytes_where_made, left.items()))
        copied = began_with - size
        pace_s = size / copied * self._now_s if copied > 0 else 0.0
        return max(busiest_s, pace_s, self._turns_s())

    def _takes_s(self, slot: Slot, left_bytes: int) -> float:
        """Time that a broker takes at least: for bytes, and for each move its part of a slot."""
        waiting, looked_at = self._backlog.by_slot.get(slot), self._looked_at
        lacking = waiting.lacking(looked_at) if waiting is not None else 0
        return left_bytes / self._bytes_per_s(slot) + lacking / looked_at.bytes_per_s

    def _turns_s(self) -> float:
        """What is left takes about this where only so many partitions may be in flight at once.

        Each keeps its place as long as its bytes take, and then until the next step.
        """
        if not self._ended:
            return 0.0
        took_s, took_bytes = np.array(self._ended).T
        every_s = self._policy.reaction_s
        sizes = np.array(list(self._backlog.pending_sizes()), np.float64)
        small = sizes <= self._policy.small_bytes if self._policy.small_bytes else sizes < 0
        small_s = np.count_nonzero(small) * self._small_move_s
        sizes = sizes[~small]
        places_s = sizes * np.resize(took_s / took_bytes, len(sizes))
        if every_s:
            places_s = np.maximum(np.ceil(places_s / every_s), 1) * every_s
        # Large ones mostly: tiny ones run by the dozen, and take long for their bytes.
        flying_s = sum(self._copies.remaining().values()) * took_s.sum() / took_bytes.sum()
        return small_s + float(places_s.sum() + flying_s) / self._policy.max_partitions_in_flight

    @property
    def _whole(self) -> bool:
        return self._all_may_start and not self._waiting_moves

    def _may_start(self, move: Move) -> bool:
        """Whether admission may ever choose it as things stand."""
        state = self._observation.partitions.get(move.partition)
        if state is None or (state.leader is None and move.adding):
            return False
        return self._observation.live_brokers.issuperset(move.target)

    def _bytes_left(self) -> Counter[Slot]:
        left = Counter(self._backlog.pending_bytes)
        for copy, size in self._copies.remaining().items():
            for slot in self._flying[copy].copy.slots:
                left[slot] += size
        return left

    def _decide(self) -> int:
        """Start what may start now; how many moves that are."""
        self._show_sizes()
        in_use = InUse(self._pace)
        flying = {
            each.admitted_move.move.partition: each.admitted_move for each in self._flying.values()
        }
        in_use.add_all({**flying, **self._waiting_moves}.values(), self._observation)
        moves = admit(
            (),
            self._backlog,
            in_use,
            self._observation,
            self._observation.taken_at,
            self._policy,
            self._pace.bytes_per_s,
        ).moves
        self._take_out(moves)
        for move in moves:
            self._start(self._backlog.admitted[move.partition])
        return len(moves)

    def _take_out(self, moves: Sequence[Move]) -> None:
        states = dict.fromkeys((move.partition for move in moves), MoveState.ADMITTED)
        self._backlog.follow(moves, LedgerView(PlanState.RUNNING, states), self._observation)

    def _show_sizes(self) -> None:
        for copy, left_bytes in self._copies.remaining().items():
            self._show_size(copy, left_bytes)

    def _show_size(self, copy: CopyId, left_bytes: int) -> None:
        flying = self._flying[copy]
        self._sizes_of(flying.copy)[flying.copy.replica] = flying.whole_bytes - left_bytes

    def _sizes_of(self, copy: Copy) -> dict[ReplicaId, int]:
        across = copy.read_from == copy.replica.broker
        return self._future_sizes if across else self._sizes

    def _start(self, admitted_move: Admitted) -> None:
        self._starts += 1
        move, slots = admitted_move.move, slots_of(admitted_move.move, self._observation)
        if is_small_move(move, self._policy.small_bytes):  # brokers make one after the other
            self._small_until_s = max(self._small_until_s, self._now_s) + self._small_move_s
        copies = list(copies_of(move, self._observation))
        if len(copies) < sum(slot.direction is not Direction.OUT for slot in slots):
            self._waiting_moves[move.partition] = admitted_move
        move_bytes = max(slots.values(), default=0) or 1
        started = []
        for copy in copies:
            has = self._sizes_of(copy).get(copy.replica, 0)
            left_bytes = max(1, copy.left_bytes)  # an empty partition takes a fetch, too
            self._flying[copy.id] = _Flying(
                admitted_move, copy, has + left_bytes, self._now_s, move_bytes
            )
            started.append((copy.id, copy.read_from, left_bytes))
        if started:
            self._copies.start(started)

    def _next_poll_s(self) -> float:
        """The first poll at which something may have become free; infinite if nothing waits."""
        if not self._backlog.pending_count:
            return inf
        # A move takes a whole slot until less than its part of what passes till then is left.
        shrinks_s = self._copies.next_below_s(self._pace.slot_bytes) if self._copies else 0.0
        every_s = self._policy.reaction_s
        if not every_s:
            return self._now_s + shrinks_s
        if self._backlog.small_is_pending(self._policy.small_bytes):
            return max(self._now_s + min(every_s, SMALL_STEP_S), self._small_until_s)
        due = ceil((self._now_s + shrinks_s) / every_s + 1e-9)
        return max(due, round(self._now_s / every_s) + 1) * every_s

    def _copy_until(self, poll_s: float) -> None:
        while self._copies and self._work < WORK:
            end_s = self._copies.next_end_s()
            self._work += STEP_WORK + len(self._copies)
            if self._now_s + end_s > poll_s:
                break
            self._run(end_s)
        if poll_s < inf and self._work < WORK:
            self._run(poll_s - self._now_s)
            self._now_s = poll_s

    def _run(self, seconds: float) -> None:
        ended = self._copies.run(seconds)
        self._now_s += seconds
        for copy in ended:
            self._show_size(copy, 0)
            flying = self._flying.pop(copy)
            if not self._is_flying(flying.admitted_move.move):
                self._ended.append((self._now_s - flying.since_s, flying.move_bytes))

    def _is_flying(self, move: Move) -> bool:
        return any((move.partition, broker) in self._flying for broker in move.target)


def _bytes_where_made(left: tuple[Slot, int]) -> int:
    """Bytes left of a slot where copies are made: so each counts once."""
    slot, size = left
    return 0 if slot.direction is Direction.OUT else size
