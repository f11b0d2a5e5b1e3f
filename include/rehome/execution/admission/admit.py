"""Which moves start next: slots per broker and direction, places by what is left. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heapreplace
from itertools import chain
from math import inf

from rehome.domain.disks import broker_room_bytes
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.request.request import OnWindowEnd
from rehome.domain.run.causes.waits import (
    FOR_IN_FLIGHT_LIMIT,
    FOR_LEADER,
    FOR_SLOT,
    FOR_WINDOW,
    Wait,
    WaitKind,
)
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import is_small
from rehome.domain.run.run_policy import Policy
from rehome.execution.admission.backlog import Backlog, BySlot, Filed, Waiting
from rehome.execution.admission.slots import (
    WHOLE_SLOT,
    Direction,
    InUse,
    Slot,
    bytes_onto,
    slots_of,
)
from rehome.execution.observation.log_dir_copies import wanted_log_dirs


@dataclass(frozen=True)
class Admission:
    """Moves to start now, and why others have to wait.

    :param waiting: how many others there are.
    :param waits: what they wait for: all that holds any of them back.
    """

    moves: tuple[Move, ...]
    waiting: int = 0
    waits: frozenset[Wait] = frozenset()

    @property
    def only_waits_for_window(self) -> bool:
        """Whether all that is left does not fit into the window any more."""
        return not self.moves and self.waits == {FOR_WINDOW}


def admit(
    unsent: Sequence[Move],
    backlog: Backlog,
    in_use: InUse,
    observation: Observation,
    now: datetime,
    policy: Policy,
    bytes_per_s: float,
    still_pending: Callable[[Move], bool] = lambda move: True,
) -> Admission:
    """The moves to start now, in the order of their start.

    The broker with the most bytes still to send or to receive decides when the plan ends, so it
    comes first, with its largest move. The next place is its own again only if it has more left for
    each of its slots than others have: places go to brokers by what they have left (the method of
    D'Hondt). Where replicas are offline, partitions with fewer replicas in sync go before all of
    those with more. So those that copy side by side are many, each at its full rate, where only so
    many partitions may be in flight. Of a broker's moves, only those are considered that a free
    slot, its disk and the window allow.

    :param unsent: admitted before, and to be sent once more: they come first, but since then
        leaders, disks, the window and what is in flight may have changed.
    :param in_use: what has started takes; what starts is added.
    :param bytes_per_s: what a broker delivers in each direction.
    :param still_pending: asked once of each move that would be next; False passes it over.
    """
    admission = _Admitting(backlog, in_use, observation, now, policy, bytes_per_s)
    for move in unsent:
        admission.consider_again(move)
    passed_over = admission.share_out(still_pending)
    return admission.result(len(unsent) + backlog.pending_count - passed_over)


class _Admitting:
    """What is taken while moves are considered one after the other."""

    def __init__(
        self,
        backlog: Backlog,
        in_use: InUse,
        observation: Observation,
        now: datetime,
        policy: Policy,
        bytes_per_s: float,
    ) -> None:
        self._backlog = backlog
        self._observation = observation
        self._policy = policy
        self._window_bytes = _bytes_until_window_end(now, policy, bytes_per_s)
        self._in_use = in_use
        self._used = in_use.slots
        self._slots = policy.max_moves_per_broker * WHOLE_SLOT
        self._small_apart = policy.max_small_in_flight is not None
        self._most_small = policy.most_small
        self._usable = {
            broker: broker_room_bytes(disks, policy.kept_free(broker))
            for broker, disks in observation.disks.items()
        }
        self._bounded = bool(self._usable) or self._window_bytes < inf
        self._open: set[Slot | None] = {None, *backlog.by_slot}
        self._shut: dict[Slot, Wait] = {}  # and why
        self._moves: list[Move] = []
        self._waits: set[Wait] = set()
        self._shut_where_full(in_use.slots)
        for slot in backlog.by_slot:
            if slot is not None and slot.direction is not Direction.OUT:
                self._shut_unless_it_answers(slot)

    def share_out(self, still_pending: Callable[[Move], bool]) -> int:
        """Choose among all pending moves; how many of them were passed over."""
        looked_at: set[TopicPartition] = set()
        passed_over = 0
        for filed in chain(self._in_turn(), self._small()):
            if filed.partition in looked_at:
                continue
            looked_at.add(filed.partition)
            if still_pending(filed.move):
                self.consider(filed.move)
            else:
                passed_over += 1
        return passed_over

    def _small(self) -> Iterator[Filed]:
        """Pending moves that take no slot, for which a full one is no obstacle: the most
        endangered first.
        """
        small_bytes = self._policy.small_bytes
        for group in self._backlog.in_order() if small_bytes else ():
            for slot, waiting in group.items():
                if slot is not None and self._shut.get(slot, FOR_SLOT) != FOR_SLOT:
                    continue
                for filed in waiting.moves if slot is None else waiting.small(small_bytes):
                    if self._small_in_use >= self._most_small:
                        self._waits.add(FOR_IN_FLIGHT_LIMIT)
                        return
                    yield filed

    def _in_turn(self) -> Iterator[Filed]:
        """Pending moves: the most endangered group first, and of a group the next one of the free
        slot with most bytes left for what it has taken.
        """
        for group in self._backlog.in_order():
            yield from self._of_group(group)

    def _of_group(self, group: BySlot) -> Iterator[Filed]:
        backlog, used = self._backlog, self._used
        free = [slot for slot in group if slot is not None and slot not in self._shut]
        worth_a_look = {slot: self._worth_a_look(slot, group[slot]) for slot in free}
        left = {slot: backlog.pending_bytes[slot] + used[slot].left_bytes for slot in free}
        turns = [_turn(slot, left[slot], used[slot].parts) for slot in free]
        heapify(turns)
        while turns:
            _, _, parts_then, slot = turns[0]
            parts = used[slot].parts
            if slot in self._shut:
                heappop(turns)
            elif parts != parts_then:  # it has taken more since then, so it comes later
                heapreplace(turns, _turn(slot, left[slot], parts))
            elif (filed := next(worth_a_look[slot], None)) is None:
                heappop(turns)
            else:
                yield filed
        if None in group and not self._policy.small_bytes:
            yield from self._worth_a_look(None, group[None])

    def _worth_a_look(self, place: Slot | None, waiting: Waiting) -> Iterator[Filed]:
        """Pending moves of a slot, largest first, that their slots allow as far as is known."""
        fitting, small_bytes = 0, self._policy.small_bytes
        small = waiting.from_size(small_bytes) if small_bytes else len(waiting.moves)
        for at in waiting.outside(self._open):
            if self._are_enough:
                self._waits.add(FOR_IN_FLIGHT_LIMIT)
                return
            if at < fitting:
                continue
            if at >= small:
                return
            filed = waiting.moves[at]
            if not self._shut.keys().isdisjoint(filed.slots):
                continue
            obstacle = None
            if place is not None and self._bounded:
                obstacle = self._too_large(place, -filed.minus_size_bytes)
            if place is None or obstacle is None:
                yield filed
                continue
            self._waits.add(obstacle)
            fitting = waiting.from_size(min(self._window_left(place), self._usable_bytes(place)))

    @property
    def _are_enough(self) -> bool:
        """Whether no more may be in flight, small ones aside."""
        in_use = self._in_use
        small = in_use.small if self._small_apart else 0
        return in_use.moves - small >= self._policy.max_partitions_in_flight

    @property
    def _small_in_use(self) -> int:
        """Moves in flight that take places which small ones may have."""
        return self._in_use.small if self._small_apart else self._in_use.moves

    def consider_again(self, move: Move) -> None:
        """:meth:`consider` a move that is not in the backlog any more."""
        slots = slots_of(move, self._observation)
        small = is_small(max(slots.values(), default=0), self._policy.small_bytes)
        own_places = small and self._small_apart
        if self._small_in_use >= self._most_small if own_places else self._are_enough:
            self._waits.add(FOR_IN_FLIGHT_LIMIT)
            return
        for slot in slots:
            if slot.direction is not Direction.OUT:
                self._shut_unless_it_answers(slot)
        self.consider(move)

    def consider(self, move: Move) -> None:
        """Choose the move, or note what it waits for."""
        slots = slots_of(move, self._observation)
        obstacle = self._obstacle(move, slots)
        if obstacle is not None:
            self._waits.add(obstacle)
            return
        self._moves.append(move)
        self._in_use.add(move, slots)
        self._shut_where_full(slots)

    def result(self, moves: int) -> Admission:
        """What was chosen.

        :param moves: how many there were to choose from.
        """
        waiting = moves - len(self._moves)
        if waiting <= 0:
            return Admission(tuple(self._moves))
        by_slot = self._backlog.by_slot
        closed = {wait for slot, wait in self._shut.items() if slot in by_slot}
        return Admission(tuple(self._moves), waiting, frozenset(self._waits | closed))

    def _shut_where_full(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            if self._used[slot].parts >= self._slots:
                self._shut_for(slot, FOR_SLOT)

    def _shut_unless_it_answers(self, slot: Slot) -> None:
        broker = slot.broker
        if broker not in self._observation.live_brokers:
            self._shut_for(slot, Wait(WaitKind.BROKER_ALIVE, broker))
        elif broker in self._observation.missing:
            error = self._observation.missing[broker]
            self._shut_for(slot, Wait(WaitKind.BROKER_READ, broker, error=error))

    def _shut_for(self, slot: Slot, wait: Wait) -> None:
        self._shut[slot] = wait
        self._open.discard(slot)

    def _obstacle(self, move: Move, slots: Mapping[Slot, int]) -> Wait | None:
        topic = move.partition.topic
        if topic in self._observation.unreadable:
            return Wait(WaitKind.TOPIC_READ, name=topic, error=self._observation.unreadable[topic])
        live = self._observation.live_brokers
        needed = move.needs_alive
        if not live.issuperset(needed):
            dead = min(broker for broker in needed if broker not in live)
            return Wait(WaitKind.BROKER_ALIVE, dead)
        if self._observation.partitions[move.partition].leader is None and move.adding:
            return FOR_LEADER
        for slot, left_bytes in slots.items():
            obstacle = self._shut.get(slot)
            if obstacle == FOR_SLOT and is_small(left_bytes, self._policy.small_bytes):
                obstacle = None
            if obstacle is None and self._bounded:
                obstacle = self._too_large(slot, left_bytes)
            if obstacle is not None:
                return obstacle
        return self._log_dir_is_full(move, slots) if move.target_log_dirs else None

    def _too_large(self, slot: Slot, left_bytes: int) -> Wait | None:
        if left_bytes > self._window_left(slot):
            return FOR_WINDOW
        if left_bytes > self._usable_bytes(slot):
            return Wait(WaitKind.DISK_ROOM, slot.broker)
        return None

    def _window_left(self, slot: Slot) -> float:
        """Bytes that can still pass before the window ends, after what is queued already."""
        pace = self._in_use.pace
        own = pace.own.get((slot.direction.value, slot.broker)) if pace.own else None
        window = self._window_bytes if own is None else self._window_bytes * own / pace.bytes_per_s
        return window - self._used[slot].left_bytes

    def _usable_bytes(self, slot: Slot) -> float:
        """Bytes that all copies in flight will leave free: nothing is deleted before they end."""
        usable = self._usable.get(slot.broker)
        if usable is None or slot.direction is Direction.OUT:
            return inf
        into, across = (self._used[Slot(d, slot.broker)] for d in (Direction.IN, Direction.ACROSS))
        return usable - into.left_bytes - across.left_bytes

    def _log_dir_is_full(self, move: Move, slots: Mapping[Slot, int]) -> Wait | None:
        for replica, log_dir in wanted_log_dirs(move).items():
            left_bytes = bytes_onto(replica.broker, slots)
            for disk in self._observation.disks.get(replica.broker, ()) if left_bytes else ():
                usable = disk.headroom_bytes(self._policy.kept_free(replica.broker))
                queued = self._in_use.to_dir[replica.broker, log_dir]
                if disk.path == log_dir and queued + left_bytes > usable:
                    return Wait(WaitKind.LOG_DIR_ROOM, replica.broker, log_dir)
        return None


_Turn = tuple[float, tuple[str, BrokerId], int, Slot]
"""When a slot comes next, sorted by that; the parts are what it had taken at that time."""


def _turn(slot: Slot, left_bytes: int, parts: int) -> _Turn:
    """By what it has left, started or not, for each that it has taken and for one more."""
    return -left_bytes / (parts + WHOLE_SLOT), slot.rank, parts, slot


def _bytes_until_window_end(now: datetime, policy: Policy, bytes_per_s: float) -> float:
    if policy.window_end is None or policy.on_window_end is not OnWindowEnd.FINISH:
        return inf
    return (policy.window_end - now).total_seconds() * bytes_per_s
