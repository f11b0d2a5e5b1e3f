"""Topic repair: brings replica counts of topics per broker into their bands.

Small replicas move, because only their number matters. Large clusters move many at once: each round
matches surplus replicas of a topic with brokers that lack it, as long as all load bands are met as
well as before. Small clusters move one at a time, and weigh the change of load bands against the
gain for the topic; local search then repairs the load with replicas of the same topic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import NONE, CellCounts, Floats, Ints, Mask
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.placement.compatible_moves import compatible
from rehome.planning.placement.stable_order import (
    first_ones,
    rank,
    stable_order,
    stable_order_of_floats,
    turn,
)
from rehome.planning.placement.topic_counts import TopicCounts
from rehome.planning.search.state import LEAST_CHANGE, Search


@dataclass(frozen=True, slots=True)
class TopicRepairOptions:
    """How many moves are scored and tried, and when the repair gives up.

    :param most_single_moves: in a small cluster, the most moves, one by one.
    :param scored_at_once: moves that are scored at once.
    :param swapped: moves that are tried together with one in the other direction.
    :param rounds: the most rounds.
    :param futile_rounds: rounds in a row that may each move less than ``least_progress`` of what is
        missing.
    :param least_progress: see ``futile_rounds``.
    :param retried: rounds after which brokers at the edges of their bands are tried again.
    """

    most_single_moves: int = 500
    scored_at_once: int = 200_000
    swapped: int = 200
    rounds: int = 64
    futile_rounds: int = 4
    least_progress: float = 0.01
    retried: int = 3


TOPIC_REPAIR = TopicRepairOptions()


class TopicRepair:
    """Brings topics into their bands, as far as the objective improves."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._rounds: _Rounds | None = None

    def run(self) -> bool:
        """Returns whether any replica moved."""
        search, counts = self._search, self._search.topic_counts
        outside = np.zeros(0, np.int64) if counts is None else counts.cells_outside()
        if counts is None or not len(outside):
            return False
        if search.flat.size <= REBALANCE.small:
            return _one_by_one(search, counts)
        self._rounds = self._rounds or _Rounds(search, counts)
        return self._rounds.run(outside)


def _one_by_one(search: Search, counts: TopicCounts) -> bool:
    """Make the best move, repeatedly; if none helps, the best swap. Returns whether any was
    made.
    """
    receivers, moved = search.receivers, False
    replicas = np.flatnonzero(
        (search.flat != NONE) & np.repeat(search.problem.partitions, search.width)
    )
    replicas = replicas[counts.has_bands(replicas // search.width)]
    for _ in range(TOPIC_REPAIR.most_single_moves):
        if search.work.is_spent():
            break
        uneven = replicas[counts.uneven(replicas // search.width)]
        uneven = uneven[: max(TOPIC_REPAIR.scored_at_once // max(len(receivers), 1), 1)]
        moves = _Moves.towards_bands(search, counts, uneven, receivers)
        best = moves.best() or moves.best_swap(counts)
        if not best:
            return moved
        for replica, target in best:
            search.move(replica, target)
        moved = True
    return moved


class _Moves:
    """n moves that each bring a topic closer to its band.

    :ivar closer: (n,) by how much, in replicas; ``gain``: (n,) excess removed, of topics and loads.
    """

    def __init__(
        self, search: Search, replicas: Ints, targets: Ints, closer: Ints, gain: Floats
    ) -> None:
        self._search, self._replicas, self._targets = search, replicas, targets
        self._closer, self._gain = closer, gain

    @classmethod
    def towards_bands(
        cls, search: Search, counts: TopicCounts, replicas: Ints, receivers: Ints
    ) -> _Moves:
        """All moves of these replicas to receivers, or home, that help their topic."""
        replicas = replicas[search.problem.gives[search.flat[replicas]]]
        home = search.origin.reshape(-1)[replicas].astype(np.int64)
        away = _away_from_donors(search, replicas, home)
        targets = np.concatenate([np.tile(receivers, len(replicas)), home[away]])
        replicas = np.concatenate([np.repeat(replicas, len(receivers)), replicas[away]])
        change = counts.moving(replicas // search.width, search.holders(replicas), targets)
        some = np.flatnonzero(change < 0)
        replicas, targets, closer = replicas[some], targets[some], -change[some]
        weight = search.weight(replicas)
        harm = search.excess_change(search.holders(replicas), -weight) + search.excess_change(
            targets, weight
        )
        return cls(search, replicas, targets, closer, search.unit * closer - harm)

    def best(self) -> list[tuple[int, int]]:
        """The replica and target of the valid move with the largest gain; empty if none helps."""
        search, gain = self._search, self._gain
        cost = search.price(self._replicas, self._targets)
        order = np.lexsort((cost / max(float(search.share[0].mean()), 1.0), -gain))
        for i in order[gain[order] > LEAST_CHANGE].tolist():
            replica, target = int(self._replicas[i]), int(self._targets[i])
            if search.valid_one(replica, target):
                return [(replica, target)]
        return []

    def best_swap(self, counts: TopicCounts) -> list[tuple[int, int]]:
        """The same for a move together with one in the other direction: of the moves that do least
        harm.
        """
        search = self._search
        first = np.argsort(-self._gain, kind="stable")[: TOPIC_REPAIR.swapped]
        first = first[search.valid(self._replicas[first], self._targets[first])]
        some = [np.zeros((2, 0), np.int64)]
        for i in first.tolist():
            back = search.on(int(self._targets[i]))
            some.append(np.stack([np.full(len(back), i), back]))
        move, back = np.concatenate(some, axis=1)
        give, there = self._replicas[move], self._targets[move]
        here, width = search.holders(give), search.width
        change = counts.trading(give // width, back // width, here, there)
        returns = search.problem.takes[here] | search.held_before(back, here)
        kept = np.flatnonzero((change < 0) & returns & (give // width != back // width))
        move, back, here, there = move[kept], back[kept], here[kept], there[kept]
        more = search.weight(back) - search.weight(give[kept])
        harm = search.excess_change(here, more) + search.excess_change(there, -more)
        gain = -search.unit * change[kept] - harm
        cost = search.price(back, here) + search.price(give[kept], there)
        for i in np.lexsort((cost, -gain))[: int((gain > LEAST_CHANGE).sum())].tolist():
            if search.valid_one(int(back[i]), int(here[i])):
                return [(int(give[kept][i]), int(there[i])), (int(back[i]), int(here[i]))]
        return []


def _away_from_donors(search: Search, replicas: Ints, home: Ints) -> Mask:
    """(n,) replicas that have left a broker that only gives: they may go back to it."""
    problem = search.problem
    only_gives = problem.gives & ~problem.takes & ~problem.leaving
    away: Mask = (search.flat[replicas] != home) & (home != NONE) & only_gives[home]
    return away


class _Rounds:
    """Rounds of many moves, for large clusters.

    :ivar domain: (B,) domain of each broker: replicas stay within a *group*, a topic in a domain.
    :ivar topic_replicas, low, high: (T, B) counts and bands of topics with bands.
    :ivar movable: replicas that may be moved; ``cells``: their cells; ``by_size``: their indexes,
        smallest first.
    :ivar outside: cells outside their bands, ascending: only moves change that.
    :ivar full, empty: (B,) brokers at the edge of a band whose moves were all rejected in a round:
        they receive, or give, nothing for a while.
    """

    def __init__(self, search: Search, counts: TopicCounts) -> None:
        self._search, self._counts = search, counts
        problem = search.problem
        domain = problem.targets.domain
        domain = domain if search.racks.even() else np.zeros_like(domain)
        _, domain = np.unique(domain, return_inverse=True)
        self._anywhere = search.racks.plain() and bool(domain.any())
        self._domain: Ints = domain
        self._domains = int(domain.max()) + 1
        self._topic_replicas, self._low, self._high = (
            side.reshape(counts.rows, -1)[:-1]
            for side in (counts.replicas, counts.low, counts.high)
        )
        self._full, self._empty = (np.zeros(counts.brokers, bool) for _ in range(2))
        movable = problem.partitions & counts.has_bands(np.arange(len(problem.partitions)))
        partitions = np.flatnonzero(movable)
        replicas = (partitions[:, None] * search.width + np.arange(search.width)).reshape(-1)
        self._movable: Ints = replicas[search.flat[replicas] != NONE]
        self._by_size = self._smallest_first(partitions)
        self._size_place = np.empty_like(self._by_size)
        self._size_place[self._by_size] = np.arange(len(self._by_size))

    def run(self, outside: Ints) -> bool:
        """Rounds, as long as they help.

        :param outside: cells outside their bands, ascending.
        """
        search, counts = self._search, self._counts
        self._cells = counts.cells(self._movable // search.width, search.flat[self._movable])
        self._outside = outside
        moved, in_vain, missing = False, 0, int(counts.beyond(self._outside).sum())
        for number in range(TOPIC_REPAIR.rounds):
            if not missing or in_vain >= TOPIC_REPAIR.futile_rounds:
                break
            moved |= self._round(number)
            left = int(counts.beyond(self._outside).sum())
            in_vain = in_vain + 1 if missing - left <= TOPIC_REPAIR.least_progress * missing else 0
            missing = left
        return moved

    def _round(self, number: int) -> bool:
        """Match surplus with deficit, once."""
        counts, problem = self._counts, self._search.problem
        if number % TOPIC_REPAIR.retried == 0:
            self._full[:] = self._empty[:] = False
        gives, takes = problem.gives & ~self._empty, problem.takes & ~self._full
        outside, broker = self._outside, self._outside % counts.brokers
        is_above = counts.replicas[outside] > counts.high[outside]
        above, below = outside[is_above & gives[broker]], outside[~is_above & takes[broker]]
        too_many, too_few = (counts.beyond(cells) for cells in (above, below))
        off, cells = np.concatenate([too_few, -too_many]), np.concatenate([below, above])
        lack = np.zeros(len(self._topic_replicas) * self._domains)
        np.add.at(lack, self._groups(cells), off)
        givers = self._next_best(lack, gives, number, giving=True)
        takers = self._next_best(-lack, takes, number, giving=False)
        senders = np.concatenate([_units(above, too_many, number), givers])
        receivers = np.concatenate([_units(below, too_few, number), takers])
        places = self._replicas(senders, number)
        here, there = _match_pairs(self._groups(self._cells[places]), self._groups(receivers))
        places, receivers = places[here], receivers[there]
        replicas, targets = self._movable[places], receivers % counts.brokers
        accepted = self._accept(replicas, targets)
        source = self._search.holders(replicas)
        self._empty |= _all_rejected(source, accepted, counts.brokers)
        self._full |= _all_rejected(targets, accepted, counts.brokers)
        replicas, targets = replicas[accepted], targets[accepted]
        self._search.lift(replicas)
        self._search.put(replicas, targets, few=False)
        changed = self._cells[places[accepted]], receivers[accepted]
        self._cells[places[accepted]] = receivers[accepted]
        some = np.unique(np.concatenate([outside, *changed]))
        self._outside = some[counts.beyond(some) > 0]
        return bool(len(replicas))

    def _groups(self, cells: Ints) -> Ints:
        """(n,) topic and domain of these cells."""
        topic, broker = np.divmod(cells, self._counts.brokers)
        groups: Ints = topic * self._domains + self._domain[broker]
        return groups

    def _smallest_first(self, partitions: Ints) -> Ints:
        """Indexes of the movable replicas, smallest first: those of these partitions, in order."""
        width, movable = self._search.width, self._movable
        order = stable_order_of_floats(self._search.weights[0].take(partitions))
        if len(movable) == len(partitions) * width:
            every: Ints = order[:, None] * width + np.arange(width)
            return every.reshape(-1)
        starts = np.searchsorted(movable, partitions * width)
        replicas_each = np.diff(starts, append=len(movable))
        return np.repeat(starts[order], replicas_each[order]) + rank(
            np.repeat(order, replicas_each[order])
        )

    def _next_best(self, lack: Floats, among: Mask, number: int, *, giving: bool) -> Ints:
        """Cells inside their bands that can give a replica, or take one, for groups with a
        remaining deficit or surplus; those furthest from the middle of their bands first.

        :param lack: (groups,) whole numbers; ``among``: (B,) candidate brokers.
        """
        counts, brokers = self._counts, self._counts.brokers
        lacking = (lack > 0).reshape(-1, self._domains)
        rows = np.flatnonzero(lacking.any(axis=1))
        replicas, low, high = (of[rows] for of in (self._topic_replicas, self._low, self._high))
        inside = lacking[rows][:, self._domain] & among
        inside &= (
            (replicas > low) & (replicas <= high)
            if giving
            else (replicas < high) & (replicas >= low)
        )
        row, broker = np.nonzero(inside)
        cells: Ints = rows[row] * brokers + broker
        if not len(cells):
            return cells
        sign = -1 if giving else 1
        middle = sign * (counts.replicas[cells] * 2 - counts.low[cells] - counts.high[cells])
        middle -= middle.min()
        place = self._emptiest_first(sign)[(cells % brokers + number * 7) % brokers]
        group = self._groups(cells)
        order = stable_order((group * (middle.max() + 1) + middle) * brokers + place)
        cells, group = cells[order], group[order]
        return cells[rank(group) < lack[group]]

    def _emptiest_first(self, sign: int) -> Ints:
        """(B,) rank of each broker by its load, emptiest first (sign -1: fullest first); equal
        loads share a rank.
        """
        search = self._search
        load = sign * (search.load * search.scale).sum(axis=0)
        places: Ints = np.unique(load, return_inverse=True)[1]
        return places

    def _replicas(self, units: Ints, number: int) -> Ints:
        """A replica for each unit of a cell, as an index: small ones first; every other round
        starts with replicas that have moved already; later rounds take others.
        """
        search = self._search
        has_units = np.zeros(self._topic_replicas.size, bool)
        has_units[units] = True
        places = np.flatnonzero(has_units[self._cells])
        key = self._cells[places]
        if number % 2 == 0:
            replicas = self._movable[places]
            key = key * 2 + search.held_before(replicas, search.holders(replicas))
        bits = len(self._movable).bit_length()
        key = (key << bits) + self._size_place[places]
        key.sort()
        places = self._by_size[key & ((1 << bits) - 1)]
        cells = self._cells[places]
        place, later = rank(cells), 0 if self._anywhere else number // 2
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        replicas_each = np.diff(starts, append=len(cells))
        unit_cells, units_each = np.unique(units, return_counts=True)
        due = np.repeat(units_each[np.searchsorted(unit_cells, cells[starts])], replicas_each)
        if later:
            place = (place - later * due) % np.repeat(replicas_each, replicas_each)
        chosen: Ints = places[place < due]
        return chosen

    def _accept(self, replicas: Ints, targets: Ints) -> Mask:
        """Which moves are made: valid, good for their topic, and together harmless to load
        bands.
        """
        search, counts = self._search, self._counts
        partitions, source = replicas // search.width, search.holders(replicas)
        accepted = (counts.moving(partitions, source, targets) < 0) & search.valid(
            replicas, targets
        )
        accepted &= ~(search.rows[partitions] == targets[:, None]).any(axis=1)
        some = np.flatnonzero(accepted)
        accepted[some] = first_ones(partitions[some])
        accepted = search.fit_together(replicas, targets, accepted)
        some = np.flatnonzero(accepted)
        banded = search.scale.any(axis=1)
        bands = (of[banded] for of in (search.load, search.low, search.high))
        weight = search.weight(replicas[some])[banded]
        accepted[some] = compatible(source[some], targets[some], weight, *bands)
        return accepted


def _units(cells: Ints, off: CellCounts, number: int) -> Ints:
    """Cells outside their bands, each repeated by its distance, in an order that differs by
    round.
    """
    return np.repeat(np.roll(cells, number * 31), np.roll(off, number * 31))


def _all_rejected(brokers: Ints, accepted: Mask, count: int) -> Mask:
    """(B,) brokers whose moves were all rejected."""
    tried, made = (np.bincount(of, minlength=count) > 0 for of in (brokers, brokers[accepted]))
    return tried & ~made


def _match_pairs(groups: Ints, others: Ints) -> tuple[Ints, Ints]:
    """Index pairs: the i-th of each group with the i-th of the same group on the other side."""
    sides = groups, others
    count = max(int(side.max(initial=0)) for side in sides) + 1
    fewest = np.minimum(*(np.bincount(side, minlength=count) for side in sides))
    mine, theirs = (np.flatnonzero(turn(side) < fewest[side]) for side in sides)
    return mine[stable_order(groups[mine])], theirs[stable_order(others[theirs])]
