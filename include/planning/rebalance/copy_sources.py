"""Where copies are read from: leaders that send no more than others receive, and the same zone.

A copy is read from its partition's leader. So of two replicas on one broker that are alike in all
that bands are about, it matters which one moves: the copy of one may come from a leader that has
too much to send, or from another zone (a branch of the rack tree's top level), that of the other
not. Here a replica that moves trades places with one of its broker that stays.

Bands leave little room: a plan that copies few bytes ends at their edges, and no two replicas are
of one size. So trades are made broker by broker, largest first, each with the replica that makes up
best for what the trades before it left over; what cannot be made up for is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask
from include.planning.model.layout import sources
from include.planning.placement.stable_order import stable_order, stable_order_of_floats
from include.planning.rebalance.swap_candidates import SwapCandidates
from include.planning.rebalance.swap_slack import SwapSlack
from include.planning.search.local_search import LEAST_CHANGE
from include.planning.search.state import Problem, Search
from include.planning.search.undo_moves import undo_needless_moves

SLACK = 0.05
"""Part by which a leader may send more than the busiest broker receives."""

TRADED_UP_TO = 300_000
"""Slots up to which copies are traded where bytes alone have bands: of more, a few thousand change
little, and which replicas leave was chosen by leader and zone already.
"""

COPIES_PER_SWEEP = 1_500
"""Copies that are traded in one sweep, the largest ones."""

CANDIDATES_CHECKED = 4
"""Of the replicas that are alike, the most fitting that racks and disks are asked about."""

UNLIKE = 0.3
"""Part of a replica's size by which what it trades places with may leave a broker further off."""

FEWEST_AT_ONCE, MOST_AT_ONCE = 4, 64
"""Copies that partners are looked for together."""

MADE_UP = 8
"""Trades of copies that are well as they are, to make up for what others left over."""


def prefer_sources(problem: Problem) -> None:
    """Change in place which replicas move, where that takes load off a leader that sends more
    than the busiest broker receives, or else bytes off the links between zones.

    No broker ends further outside a band, no partition is spread less evenly, and neither the bytes
    nor the number of copies grow.
    """
    only_bytes = bool(np.isinf(problem.targets.high[1:]).all())
    if only_bytes and problem.layout.rows.size > TRADED_UP_TO:
        return
    if not len(problem.layout.changed()):
        return
    search = Search(problem)
    trader = _Trader(search)
    if problem.parts.relieve_leaders:
        for at_target in (False, True):
            trader.relieve(at_target)
    if problem.parts.near_sources and problem.tree.height > 1:
        for at_target in (False, True):
            trader.bring_near(at_target)
    undo_needless_moves(search)
    problem.layout.refresh()


class _Trader:
    """Trades, and the books on who sends what.

    :ivar leader: (P,) the broker that copies are read from.
    :ivar sent: (B,) bytes that each broker sends; ``most``: that it is to send.
    :ivar saved: bytes that trades have taken off the plan so far.
    :ivar banded: the k resources that have bands, bytes in any case; ``weights``: (k, P).
    """

    def __init__(self, search: Search) -> None:
        layout, tree = search.problem.layout, search.problem.tree
        self._search = search
        self._leader = sources(layout)
        self._zone = tree.node[1] if tree.height > 1 else np.zeros(len(tree.hosts), np.int64)
        self._origin = search.origin.reshape(-1)
        self._size = search.weights[0]
        partition = self._all_copies() // search.width
        self._sent = np.bincount(self._leader[partition], self._size[partition], len(tree.hosts))
        self._most = (1 + SLACK) * float(layout.incoming.max())
        self._saved = 0.0
        banded = np.asarray(search.scale.any(axis=1))
        banded[0] = True
        self._banded: Ints = np.flatnonzero(banded)
        self._weights = search.weights[self._banded]
        self._low = np.minimum(search.low, search.load)[self._banded]
        self._high = np.maximum(search.high, search.load)[self._banded]
        self._pools = SwapCandidates(search, self._leader, self._zone)

    def relieve(self, at_target: bool) -> None:
        """Trade copies of leaders that send too much for copies of others."""
        hot = self._sent > self._most
        if hot.any():
            copies = self._tradable()
            self._sweep(copies, hot[self._leader_of(copies)], at_target, near=False)

    def bring_near(self, at_target: bool) -> None:
        """Trade copies that come from another zone for copies that do not."""
        copies = self._tradable()
        far = self._zone[self._leader_of(copies)] != self._zone[self._search.holders(copies)]
        self._sweep(copies, far, at_target, near=True)

    # ---------------------------------------------------------------- what there is

    def _all_copies(self) -> Ints:
        """Slots of the replicas that are where their partition had none."""
        search = self._search
        copies = np.flatnonzero((search.flat != self._origin) & (search.flat != NONE))
        copied: Ints = copies[~search.held_before(copies, search.holders(copies))]
        return copied

    def _tradable(self) -> Ints:
        """Slots of the copies whose home may have them back, largest first."""
        problem, copies = self._search.problem, self._all_copies()
        origin = self._origin[copies]
        copies = copies[(origin != NONE) & (problem.gives & ~problem.leaving)[origin]]
        order = stable_order_of_floats(-self._size[copies // self._search.width])
        largest_first: Ints = copies[order]
        return largest_first

    def _leader_of(self, replicas: Ints) -> Ints:
        leaders: Ints = self._leader[replicas // self._search.width]
        return leaders

    # ---------------------------------------------------------------- trades

    def _sweep(self, copies: Ints, wrong: Mask, at_target: bool, *, near: bool) -> None:
        """Trade the largest of the copies that are wrong, one broker after the other: those
        brokers of which some copy has a partner to begin with.

        :param at_target: whether trades of one receiver make up for each other, or of one giver.
        """
        search = self._search
        middle = search.holders(copies) if at_target else self._origin[copies].astype(np.int64)
        chosen = wrong & (np.cumsum(wrong) <= COPIES_PER_SWEEP)
        some = np.flatnonzero(chosen)
        if not len(some):
            return
        slack = self._slack(middle[some], at_target)
        places, *_, fits = self._candidates(copies[some], slack, near)
        hopeful = np.unique(middle[some[places[fits.any(axis=1)]]])
        order = stable_order(middle)
        ends = np.searchsorted(middle[order], hopeful, side="right")
        starts = np.searchsorted(middle[order], hopeful)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            group = order[start:end]
            broker = int(middle[group[0]])
            first, others = copies[group[chosen[group]]], copies[group[~wrong[group]]]
            self._trade(broker, first.tolist(), others[:MADE_UP].tolist(), at_target, near)

    def _trade(
        self, broker: int, wrong: list[int], right: list[int], at_target: bool, near: bool
    ) -> None:
        """Trade the wrong copies to or from a broker; then right ones, to make up for it."""
        slack = self._slack(np.array([broker]), at_target)
        made: list[tuple[int, int]] = []
        made = self._trade_each(wrong, slack, near, made, making_up=False)
        if made:
            made = self._trade_each(right, slack, near, made, making_up=True)
        for back, out in reversed(made):
            self._swap(out, back)

    def _trade_each(
        self,
        replicas: Sequence[int],
        slack: SwapSlack,
        near: bool,
        made: list[tuple[int, int]],
        *,
        making_up: bool,
    ) -> list[tuple[int, int]]:
        """The trades that are left to be made up for.

        Partners of a few copies are looked for together: most have none, and only a trade changes
        what the next copies could be traded for.
        """
        start, count = 0, FEWEST_AT_ONCE
        while start < len(replicas) and (made or not making_up):
            some = replicas[start : start + count]
            place, other = self._first_trade(np.array(some), slack, near, making_up)
            start, count = start + place + 1, min(2 * count, MOST_AT_ONCE)
            if other == NONE:
                continue
            count = FEWEST_AT_ONCE
            made.append((some[place], other))
            if slack.beyond(self._held(slack.broker)[:, :, None])[0, 0] <= 0:
                made = self._settled(made, slack)
        return made

    def _settled(self, made: list[tuple[int, int]], slack: SwapSlack) -> list[tuple[int, int]]:
        """Nothing is left to be made up for: count what was saved."""
        width = self._search.width
        gained = sum(self._size[back // width] - self._size[out // width] for back, out in made)
        self._saved += float(gained)
        slack.spend(self._search.load[0, slack.broker], self._saved)
        return []

    def _held(self, brokers: Ints) -> Floats:
        """(k, …) what the brokers hold."""
        held: Floats = self._search.load.take(brokers, axis=1)[self._banded]
        return held

    def _slack(self, brokers: Ints, at_target: bool) -> SwapSlack:
        load = self._search.load[0, brokers]
        low, high = self._low.take(brokers, axis=1), self._high.take(brokers, axis=1)
        scale = self._search.scale.take(brokers, axis=1)[self._banded]
        scale[0] = np.maximum(scale[0], 1 / np.maximum(1.0, load))
        widest = np.stack([low[0], high[0]])
        slack = SwapSlack(brokers, 1 if at_target else -1, low, high, scale, widest)
        slack.spend(load, self._saved)
        return slack

    def _first_trade(
        self, backs: Ints, slack: SwapSlack, near: bool, making_up: bool
    ) -> tuple[int, int]:
        """Trade places of the first of n copies that has a partner with the one that fits best.

        :returns: the copy's place among the n, and its partner's slot; the last one, and NONE,
            where no copy has a partner.
        """
        places, some, more, beyond, fits = self._candidates(backs, slack, near, making_up)
        for i in np.flatnonzero(fits.any(axis=1)).tolist():
            mine, back = fits[i], int(backs[places[i]])
            order = np.lexsort((np.abs(more[i, mine]), beyond[i, mine]))[:CANDIDATES_CHECKED]
            for replica in some[i, mine][order].tolist():
                if self._allowed(back, replica):
                    return int(places[i]), replica
        return len(backs) - 1, NONE

    def _candidates(
        self, backs: Ints, slack: SwapSlack, near: bool, making_up: bool = False
    ) -> tuple[Ints, Ints, Floats, Floats, Mask]:
        """Replicas, the nearest by size, that could be copied instead of some copies.

        :param room: of the one broker in the middle of these trades, or of each copy's own.
        :returns: (n,) places of the copies that may be traded at all; (n, ALIKE) slots; the bytes
            that the broker in the middle holds more after a trade; how far it is outside its room
            then; which of the trades all loads allow.
        """
        search, width = self._search, self._search.width
        places = (search.rows[backs // width] != self._origin[backs, None]).all(axis=1)
        if not (near or making_up):
            places &= self._sent[self._leader_of(backs)] > self._most
        chosen = np.flatnonzero(places)
        backs, slack = backs[chosen], slack.of(chosen)
        partition, here = backs // width, self._held(slack.broker)
        size = self._size[partition]
        off = np.maximum(here[0] - slack.high[0], 0) - np.maximum(slack.low[0] - here[0], 0)
        some, fits = self._pools.nearest(backs, size - slack.sign * off, near)
        weight = self._weights.take(some // width, axis=1)
        more = slack.sign * (weight - self._weights.take(partition, axis=1)[:, :, None])
        beyond, before = slack.beyond(here[:, :, None] + more), slack.beyond(here[:, :, None])
        unlike = -LEAST_CHANGE if making_up else (UNLIKE * size * slack.scale[0])[:, None]
        fits &= (beyond <= before + unlike) & (search.flat[some] == self._origin[backs, None])
        other = (self._origin if slack.sign > 0 else search.flat)[backs].astype(np.int64)
        load = self._held(other)[:, :, None] - more
        fits &= (load <= self._high.take(other, axis=1)[:, :, None]).all(axis=0)
        fits &= (load >= self._low.take(other, axis=1)[:, :, None]).all(axis=0)
        leaders = self._leader_of(some)
        sent = self._sent[leaders] - size[:, None] * (leaders == self._leader[partition, None])
        fits &= sent + weight[0] <= self._most
        copy, place = np.nonzero(fits)
        give, take = backs[copy], some[copy, place]
        brokers, origins = search.holders(give), self._origin[give].astype(np.int64)
        fits[copy, place] = search.trade_spreads(give, take, brokers, origins)
        return chosen, some, more[0], beyond, fits

    def _allowed(self, replica: int, other: int) -> bool:
        """Trade places if racks, disk and willingness allow; whether they did."""
        search, width = self._search, self._search.width
        source, target = int(self._origin[replica]), int(search.flat[replica])
        if replica // width == other // width or target in search.origin[other // width].tolist():
            return False
        if not search.racks.admits_one(replica // width, replica % width, source):
            return False
        if not search.trade_spreads_one(replica, other, target, source):
            return False
        search.move(replica, source)
        if not search.valid_one(other, target):
            search.move(replica, target)
            return False
        search.move(replica, target)
        self._swap(replica, other)
        return True

    def _swap(self, back: int, out: int) -> None:
        """Send one replica home and another of its home in its place."""
        search, width = self._search, self._search.width
        source, target = int(self._origin[back]), int(search.flat[back])
        search.move(back, source)
        search.move(out, target)
        for replica, sign in ((back, -1), (out, 1)):
            self._sent[self._leader[replica // width]] += sign * self._size[replica // width]
