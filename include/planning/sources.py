"""Where copies are read from: leaders that send no more than others receive, and the same zone.

A copy is read from its partition's leader. So of two replicas on one broker that are alike in all
that boxes are about, it matters which one moves: the copy of one may come from a leader that has
too much to send, or from another zone (a branch of the rack tree's top level), that of the other
not. Here a replica that moves trades places with one of its broker that stays.

Boxes leave little room: a plan that copies few bytes ends at their edges, and no two replicas are
of one size. So trades are made broker by broker, largest first, each with the replica that makes up
best for what the trades before it left over; what cannot be made up for is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from include.planning.arrays import NONE, Floats, Ints, Mask
from include.planning.balance import undo
from include.planning.certificate import sources
from include.planning.polish import TINY
from include.planning.search import Problem, Search

SLACK = 0.05
"""Part by which a leader may send more than the busiest broker receives."""

MOST = 1_500
"""Copies that are traded in one sweep, the largest ones."""

ALIKE = 48
"""Replicas, the nearest by size, of which one is taken."""

TRIED = 4
"""Of these, the most fitting that racks and disks are asked about."""

UNLIKE = 0.3
"""Part of a replica's size by which what it trades places with may leave a broker further off."""

MADE_UP = 8
"""Trades of copies that are well as they are, to make up for what others left over."""


def prefer_sources(problem: Problem) -> None:
    """Change in place which replicas move, where that takes load off a leader that sends more
    than the busiest broker receives, or else bytes off the links between zones.

    No broker ends further outside a box, no partition is spread less evenly, and neither the bytes
    nor the number of copies grow.
    """
    if not len(problem.layout.changed()):
        return
    search = Search(problem)
    trader = _Trader(search)
    for at_target in (False, True):
        trader.relieve(at_target)
    if problem.tree.height > 1:
        for at_target in (False, True):
            trader.bring_near(at_target)
    undo(search)
    problem.layout.refresh()


@dataclass
class _Room:
    """What the broker in the middle of some trades may end with.

    :param sign: of the change to its load when more goes out: +1 where it receives.
    :param low, high: (K,) per resource; ``scale``: one over the share.
    :param widest: low and high of its bytes, whatever was saved.
    """

    broker: int
    sign: int
    low: Floats
    high: Floats
    scale: Floats
    widest: tuple[float, float]

    def beyond(self, load: Floats) -> Floats:
        """(n,) how far loads (K, n) are outside, in shares."""
        off = np.maximum(load - self.high[:, None], self.low[:, None] - load)
        beyond: Floats = self.scale @ np.maximum(off, 0)
        return beyond

    def spend(self, load: float, saved: float) -> None:
        """Let no more bytes be copied than were saved."""
        if self.sign > 0:
            self.high[0] = min(self.widest[1], load + saved)
        else:
            self.low[0] = max(self.widest[0], load - saved)


class _Trader:
    """Trades, and the books on who sends what.

    :ivar leader: (P,) the broker that copies are read from.
    :ivar sent: (B,) bytes that each broker sends; ``most``: that it is to send.
    :ivar saved: bytes that trades have taken off the plan so far.
    """

    def __init__(self, search: Search) -> None:
        layout, tree = search.problem.layout, search.problem.tree
        self._search = search
        self._leader = sources(layout)
        self._zone = tree.node[1] if tree.height > 1 else np.zeros(len(tree.hosts), np.int64)
        self._home = search.home.reshape(-1)
        self._size = search.weights[0]
        partition = self._copies() // search.width
        self._sent = np.bincount(self._leader[partition], self._size[partition], len(tree.hosts))
        self._most = (1 + SLACK) * float(layout.incoming.max())
        self._saved = 0.0
        self._low = np.minimum(search.low, search.load)
        self._high = np.maximum(search.high, search.load)
        self._even = search.seats.even()
        self._pools: dict[tuple[int, int], tuple[Ints, Floats]] = {}

    def relieve(self, at_target: bool) -> None:
        """Trade copies of leaders that send too much for copies of others."""
        hot = self._sent > self._most
        if hot.any():
            away = self._tradable()
            self._sweep(away, hot[self._leader_of(away)], at_target, near=False)

    def bring_near(self, at_target: bool) -> None:
        """Trade copies that come from another zone for copies that do not."""
        away = self._tradable()
        far = self._zone[self._leader_of(away)] != self._zone[self._search.holders(away)]
        self._sweep(away, far, at_target, near=True)

    # ---------------------------------------------------------------- what there is

    def _copies(self) -> Ints:
        """Slots of the replicas that are where their partition had none."""
        search = self._search
        away = np.flatnonzero((search.flat != self._home) & (search.flat != NONE))
        copied: Ints = away[~search.at_home(away, search.holders(away))]
        return copied

    def _tradable(self) -> Ints:
        """Slots of the copies whose home may have them back, largest first."""
        problem, away = self._search.problem, self._copies()
        home = self._home[away]
        away = away[(home != NONE) & (problem.gives & ~problem.leaving)[home]]
        order = np.argsort(-self._size[away // self._search.width], kind="stable")
        largest_first: Ints = away[order]
        return largest_first

    def _leader_of(self, slots: Ints) -> Ints:
        leaders: Ints = self._leader[slots // self._search.width]
        return leaders

    def _pool(self, source: int, zone: int) -> tuple[Ints, Floats]:
        """Replicas that could move off a broker instead, by size, and their sizes.

        :param zone: in which their leaders are; NONE = anywhere. Partitions that are unevenly
            spread stay where they are: they would have to be made even.
        """
        if (source, zone) not in self._pools:
            search = self._search
            slots = search.on(source)
            slots = slots[self._home[slots] == source]
            slots = slots[self._size[slots // search.width] > 0]
            if zone != NONE:
                slots = slots[self._zone[self._leader_of(slots)] == zone]
            if not self._even:
                rows = search.rows[slots // search.width]
                slots = slots[search.problem.tree.violations(rows) == 0]
            size = self._size[slots // search.width]
            order = np.argsort(size, kind="stable")
            self._pools[source, zone] = slots[order], size[order]
        return self._pools[source, zone]

    # ---------------------------------------------------------------- trades

    def _sweep(self, away: Ints, wrong: Mask, at_target: bool, *, near: bool) -> None:
        """Trade the largest of the copies that are wrong, one broker after the other.

        :param at_target: whether trades of one receiver make up for each other, or of one giver.
        """
        search = self._search
        middle = search.holders(away) if at_target else self._home[away].astype(np.int64)
        chosen = wrong & (np.cumsum(wrong) <= MOST)
        order = np.argsort(middle, kind="stable")
        ends = np.searchsorted(middle[order], np.unique(middle[chosen]), side="right")
        starts = np.searchsorted(middle[order], np.unique(middle[chosen]))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            group = order[start:end]
            broker = int(middle[group[0]])
            first, others = away[group[chosen[group]]], away[group[~wrong[group]]]
            self._trade(broker, first.tolist(), others[:MADE_UP].tolist(), at_target, near)

    def _trade(
        self, broker: int, wrong: list[int], right: list[int], at_target: bool, near: bool
    ) -> None:
        """Trade the wrong copies to or from a broker; then right ones, to make up for it."""
        room = self._room(broker, at_target)
        made: list[tuple[int, int]] = []
        made = self._trade_each(wrong, room, near, made, making_up=False)
        if made:
            made = self._trade_each(right, room, near, made, making_up=True)
        for back, out in reversed(made):
            self._swap(out, back)

    def _trade_each(
        self,
        slots: Iterable[int],
        room: _Room,
        near: bool,
        made: list[tuple[int, int]],
        *,
        making_up: bool,
    ) -> list[tuple[int, int]]:
        """The trades that are left to be made up for."""
        search = self._search
        for slot in slots:
            if making_up and not made:
                break
            leader = self._leader[slot // search.width]
            if not (making_up or near or self._sent[leader] > self._most):
                continue
            other = self._partner(slot, room, near, making_up)
            if other == NONE:
                continue
            made.append((slot, other))
            if room.beyond(search.load[:, [room.broker]])[0] <= 0:
                made = self._settled(made, room)
        return made

    def _settled(self, made: list[tuple[int, int]], room: _Room) -> list[tuple[int, int]]:
        """Nothing is left to be made up for: count what was saved."""
        width = self._search.width
        gained = sum(self._size[back // width] - self._size[out // width] for back, out in made)
        self._saved += float(gained)
        room.spend(float(self._search.load[0, room.broker]), self._saved)
        return []

    def _room(self, broker: int, at_target: bool) -> _Room:
        load = float(self._search.load[0, broker])
        low, high = self._low[:, broker].copy(), self._high[:, broker].copy()
        scale = self._search.scale[:, broker].copy()
        scale[0] = max(scale[0], 1 / max(1.0, load))
        room = _Room(broker, 1 if at_target else -1, low, high, scale, (low[0], high[0]))
        room.spend(load, self._saved)
        return room

    def _partner(self, back: int, room: _Room, near: bool, making_up: bool) -> int:
        """Trade places of a copy with the replica that fits best; its slot, or NONE."""
        search, width = self._search, self._search.width
        source, target = int(self._home[back]), int(search.flat[back])
        partition = back // width
        if source in search.rows[partition].tolist():
            return NONE
        pool, sizes = self._pool(source, int(self._zone[target]) if near else NONE)
        here = search.load[:, room.broker]
        off = max(here[0] - room.high[0], 0.0) - max(room.low[0] - here[0], 0.0)
        size = float(self._size[partition])
        middle = int(np.searchsorted(sizes, size - room.sign * off))
        some = pool[max(0, middle - ALIKE // 2) : middle + ALIKE // 2]
        more = room.sign * (search.weight(some) - search.weights[:, [partition]])
        beyond = room.beyond(here[:, None] + more)
        before = float(room.beyond(here[:, None])[0])
        allowed = before - TINY if making_up else before + UNLIKE * size * room.scale[0]
        fits = (beyond <= allowed) & (search.flat[some] == source)
        other = source if room.sign > 0 else target
        fits &= ((load := search.load[:, [other]] - more) <= self._high[:, [other]]).all(axis=0)
        fits &= (load >= self._low[:, [other]]).all(axis=0)
        leaders = self._leader_of(some)
        sent = self._sent[leaders] - size * (leaders == self._leader[partition])
        fits &= sent + self._size[some // width] <= self._most
        some = some[fits]
        order = np.lexsort((np.abs(more[0, fits]), beyond[fits]))[:TRIED]
        return next((slot for slot in some[order].tolist() if self._allowed(back, slot)), NONE)

    def _allowed(self, slot: int, other: int) -> bool:
        """Trade places if racks, disk and willingness allow; whether they did."""
        search, width = self._search, self._search.width
        source, target = int(self._home[slot]), int(search.flat[slot])
        if slot // width == other // width or target in search.home[other // width].tolist():
            return False
        if not search.seats.admits_one(slot // width, slot % width, source):
            return False
        search.move(slot, source)
        if not search.valid_one(other, target):
            search.move(slot, target)
            return False
        search.move(slot, target)
        self._swap(slot, other)
        return True

    def _swap(self, back: int, out: int) -> None:
        """Send one replica home and another of its home in its place."""
        search, width = self._search, self._search.width
        source, target = int(self._home[back]), int(search.flat[back])
        search.move(back, source)
        search.move(out, target)
        for slot, sign in ((back, -1), (out, 1)):
            self._sent[self._leader[slot // width]] += sign * self._size[slot // width]
