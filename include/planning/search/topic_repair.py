"""Replicas of topics that lie too many on one broker and too few on another trade brokers.

Small replicas go, for what matters here is their number. Of a large cluster, many at once: in each
round what one broker holds beyond a topic's band is matched with what others lack of it, as long as
all bands are as well met. Of a small one, each by itself, and what it does to the bands is weighed
against what it does for the topic: the polisher makes up for it with replicas of the same topic.
"""

from __future__ import annotations

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask
from include.planning.placement.topic_counts import TopicCounts, rank
from include.planning.search.compatible_moves import compatible
from include.planning.search.state import Search

ONE_BY_ONE_UP_TO = 2_000
"""Slots up to which replicas are moved one by one."""

ONE_BY_ONE = 500
"""Replicas of a small cluster that are moved so at most."""

WEIGHED = 200_000
"""Moves of a small cluster that are weighed at once."""

REPAIR_ROUNDS = 64
IN_VAIN = 4
"""Rounds, and how many one after the other may move less than a hundredth of what is missing."""

LEAST_PROGRESS = 0.01

RETRIED = 3
"""Rounds after which brokers at the edges of their bands are asked again."""

LEAST_CHANGE = 1e-12


class TopicRepair:
    """Brings topics into their bands, as far as that is worth it."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._rounds: _Rounds | None = None

    def run(self) -> bool:
        """Whether any replica moved."""
        search, books = self._search, self._search.books
        if books is None or not books.outside():
            return False
        if search.flat.size <= ONE_BY_ONE_UP_TO:
            return _one_by_one(search, books)
        self._rounds = self._rounds or _Rounds(search, books)
        return self._rounds.run()


def _one_by_one(search: Search, books: TopicCounts) -> bool:
    """The move that gains most, again and again."""
    receivers, moved = search.receivers, False
    slots = np.flatnonzero(
        (search.flat != NONE) & np.repeat(search.problem.partitions, search.width)
    )
    slots = slots[books.banded(slots // search.width)]
    slots = slots[: max(WEIGHED // max(len(receivers), 1), 1)]
    for _ in range(ONE_BY_ONE):
        best = _best_move(search, books, slots, receivers)
        if best is None:
            return moved
        search.move(*best)
        moved = True
    return moved


def _best_move(
    search: Search, books: TopicCounts, slots: Ints, receivers: Ints
) -> tuple[int, int] | None:
    """The slot and broker of the move that brings topics and bands closest together."""
    slots = slots[search.problem.gives[search.flat[slots]]]
    if not len(slots) or not len(receivers):
        return None
    change = books.moving(
        (slots // search.width)[:, None], search.holders(slots)[:, None], receivers[None, :]
    )
    some, there = np.nonzero(change < 0)
    slots, targets, fewer = slots[some], receivers[there], -change[some, there]
    weight = search.weight(slots)
    harm = search.added(search.holders(slots), -weight) + search.added(targets, weight)
    gain = search.unit * fewer - harm
    cost = search.price(slots, targets) / max(float(search.share[0].mean()), 1.0)
    order = np.lexsort((cost, -gain))
    for i in order[gain[order] > LEAST_CHANGE].tolist():
        slot, target = int(slots[i]), int(targets[i])
        if search.valid_one(slot, target):
            return slot, target
    return None


class _Rounds:
    """Many replicas at once, of a large cluster.

    :ivar group: (cells,) the topic and domain of each cell: replicas stay within one.
    :ivar slots: of all replicas that may be moved, the smallest first; ``cells``: where they are.
    :ivar full, empty: (B,) brokers at the edge of a band, of which no move was made in a round:
        they receive, or give, nothing for a while.
    """

    def __init__(self, search: Search, books: TopicCounts) -> None:
        self._search, self._books = search, books
        problem = search.problem
        domain = problem.targets.domain
        domain = domain if search.seats.even() else np.zeros_like(domain)
        _, domain = np.unique(domain, return_inverse=True)
        self._anywhere = search.seats.plain() and bool(domain.any())
        shape = (books.rows, books.brokers)
        row = np.arange(shape[0])[:, None]
        self._group: Ints = (row * (int(domain.max()) + 1) + domain).reshape(-1)
        self._full, self._empty = (np.zeros(books.brokers, bool) for _ in range(2))
        everywhere = np.broadcast_to(problem.gives, shape).reshape(-1)
        self._gives = everywhere.copy()
        self._takes = np.broadcast_to(problem.takes, shape).reshape(-1).copy()
        self._gives[-books.brokers :] = self._takes[-books.brokers :] = False
        movable = problem.partitions & books.banded(np.arange(len(problem.partitions)))
        partitions = np.flatnonzero(movable)
        size = search.weights[0].take(partitions)
        partitions = partitions[np.argsort(size, kind="stable")]
        slots = (partitions[:, None] * search.width + np.arange(search.width)).reshape(-1)
        self._slots: Ints = slots[search.flat[slots] != NONE]

    def run(self) -> bool:
        """Rounds as long as they help."""
        search, books = self._search, self._books
        self._cells = books.cells(self._slots // search.width, search.flat[self._slots])
        moved, in_vain, missing = False, 0, books.outside()
        for number in range(REPAIR_ROUNDS):
            if not missing or in_vain >= IN_VAIN:
                break
            moved |= self._round(number)
            left = books.outside()
            in_vain = in_vain + 1 if missing - left <= LEAST_PROGRESS * missing else 0
            missing = left
        return moved

    def _round(self, number: int) -> bool:
        """Match what is too many with what is too few, once."""
        books = self._books
        if number % RETRIED == 0:
            self._full[:] = self._empty[:] = False
        gives = self._gives & ~np.tile(self._empty, books.rows)
        takes = self._takes & ~np.tile(self._full, books.rows)
        above = np.where(gives, np.maximum(books.held - books.high, 0), 0)
        below = np.where(takes, np.maximum(books.low - books.held, 0), 0)
        groups = int(self._group.max()) + 1
        lack = np.rint(np.bincount(self._group, below - above, groups)).astype(np.int64)
        senders = self._units(above, self._next_best(lack, gives, number, giving=True), number)
        receivers = self._units(below, self._next_best(-lack, takes, number, giving=False), number)
        places = self._replicas(senders, number)
        here, there = _matched(self._group[self._cells[places]], self._group[receivers])
        places, receivers = places[here], receivers[there]
        slots, targets = self._slots[places], receivers % books.brokers
        accepted = self._accepted(slots, targets)
        source = self._search.holders(slots)
        self._empty |= _in_vain(source, accepted, books.brokers)
        self._full |= _in_vain(targets, accepted, books.brokers)
        slots, targets = slots[accepted], targets[accepted]
        self._search.lift(slots)
        self._search.put(slots, targets)
        self._cells[places[accepted]] = receivers[accepted]
        return bool(len(slots))

    def _next_best(self, lack: Ints, among: Mask, number: int, *, giving: bool) -> Ints:
        """Cells inside their bands that can spare a replica, or take one, where a group lacks so
        many on the other side: those furthest from the middle of their bands first.
        """
        books, brokers = self._books, self._books.brokers
        room = books.held - books.low if giving else books.high - books.held
        inside = (books.held >= books.low) & (books.held <= books.high) & (room > 0)
        inside &= (lack > 0)[self._group] & among
        cells = np.flatnonzero(inside)
        middle = books.held[cells] * 2 - books.low[cells] - books.high[cells]
        fullness = self._fullness()[(cells % brokers + number * 7) % brokers]
        sign = -1 if giving else 1
        order = np.lexsort((sign * fullness, sign * middle, self._group[cells]))
        cells = cells[order]
        return cells[rank(self._group[cells]) < lack[self._group[cells]]]

    def _fullness(self) -> Floats:
        search = self._search
        full: Floats = (search.load * search.scale).sum(axis=0)
        return full

    def _units(self, off: Ints, more: Ints, number: int) -> Ints:
        """The cells that are outside of their bands, each as often as it is, and more; in an order
        that differs from round to round.
        """
        cells = np.flatnonzero(off)
        cells = np.roll(cells, number * 31) if number else cells
        return np.concatenate([np.repeat(cells, off[cells]), more])

    def _replicas(self, units: Ints, number: int) -> Ints:
        """A replica for each unit of a cell, by its place among all slots: small ones first, others
        in later rounds.
        """
        search = self._search
        wanted = np.bincount(units, minlength=len(self._group))
        places = np.flatnonzero(wanted.take(self._cells))
        cells = self._cells[places]
        if number % 2 == 0:
            slots = self._slots[places]
            order = np.lexsort((search.at_home(slots, search.holders(slots)), cells))
        else:
            order = np.argsort(cells, kind="stable")
        places, cells = places[order], cells[order]
        count = np.bincount(cells, minlength=len(wanted))
        turn = 0 if self._anywhere else number // 2
        skipped = turn * wanted[cells] % np.maximum(count[cells], 1)
        chosen = (rank(cells) - skipped) % np.maximum(count[cells], 1) < wanted[cells]
        return places[chosen]

    def _accepted(self, slots: Ints, targets: Ints) -> Mask:
        """Which moves are made: allowed, good for their topic, and harmless to bands together with
        those before them.
        """
        search, books = self._search, self._books
        partitions, source = slots // search.width, search.holders(slots)
        accepted = (books.moving(partitions, source, targets) < 0) & search.valid(slots, targets)
        accepted &= ~(search.rows[partitions] == targets[:, None]).any(axis=1)
        accepted &= _first(partitions, accepted)
        accepted = search.fit_together(slots, targets, accepted)
        some = np.flatnonzero(accepted)
        banded = search.scale.any(axis=1)
        bands = (of[banded] for of in (search.load, search.low, search.high))
        weight = search.weight(slots[some])[banded]
        accepted[some] = compatible(source[some], targets[some], weight, *bands)
        return accepted


def _in_vain(brokers: Ints, accepted: Mask, count: int) -> Mask:
    """(B,) brokers with moves of which none was accepted."""
    tried, made = (np.bincount(of, minlength=count) > 0 for of in (brokers, brokers[accepted]))
    return tried & ~made


def _first(values: Ints, among: Mask) -> Mask:
    """(n,) the first of equal values among some."""
    some = np.flatnonzero(among)
    first = np.zeros(len(values), bool)
    first[some[np.unique(values[some], return_index=True)[1]]] = True
    return first


def _matched(groups: Ints, others: Ints) -> tuple[Ints, Ints]:
    """Indexes of pairs: the first of each group with the first of the same group on the other
    side, and so on.
    """
    mine, theirs = (np.argsort(side, kind="stable") for side in (groups, others))
    width = max(len(groups), len(others)) + 1
    keys, other_keys = (
        side[order] * width + rank(side[order])
        for side, order in ((groups, mine), (others, theirs))
    )
    _, left, right = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
    return mine[left], theirs[right]
