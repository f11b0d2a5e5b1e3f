"""Choose copies by their source: no leader sends too much, and fewer bytes cross zones.

A copy is read from its partition's leader. So it matters which of two similar replicas of a broker
moves: the copy of one may come from a busy leader, or from another zone (a branch of the rack
tree's top level), the copy of the other not. This step exchanges a replica that moves for one of
the same broker that stays.

A plan that copies few bytes ends at the edges of the bands, and no two replicas have the same size.
So exchanges are made broker by broker, largest first, each with the replica that best compensates
the difference left by the exchanges before it. Exchanges whose difference cannot be compensated are
taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.planning.effort.rebalance_options import REBALANCE
from rehome.planning.model.layout import sources
from rehome.planning.placement.stable_order import stable_order, stable_order_of_floats
from rehome.planning.rebalance.swap_candidates import SwapCandidates, SwapSlack
from rehome.planning.search.state import LEAST_CHANGE, Problem, Search
from rehome.planning.search.undo_moves import undo_needless_moves


@dataclass(frozen=True, slots=True)
class CopySourcesOptions:
    """How many copies are exchanged, and what an exchange may change.

    :param slack: fraction by which a leader may send more than the busiest broker receives.
    :param copies_per_sweep: the largest copies that are exchanged in one sweep.
    :param alike: candidates per copy, nearest by size.
    :param candidates: similar replicas that are checked against racks and disks, best fit first.
    :param most_difference: difference, as a fraction of the replica's size, by which an exchange
        may increase the excess until it is compensated.
    :param most_compensating: exchanges of other copies that only compensate a difference, at most.
    """

    slack: float = 0.05
    copies_per_sweep: int = 1_500
    alike: int = 48
    candidates: int = 4
    most_difference: float = 0.3
    most_compensating: int = 8


COPY_SOURCES = CopySourcesOptions()


def prefer_sources(problem: Problem) -> None:
    """Change in place which replicas move: first to relieve leaders that send more than the busiest
    broker receives, then to reduce bytes between zones.

    No broker ends further outside a band, no partition is spread less evenly, and neither the bytes
    nor the number of copies grow.
    """
    only_bytes = bool(np.isinf(problem.targets.high[1:]).all())
    if only_bytes and problem.layout.rows.size > REBALANCE.large:
        return
    if not len(problem.layout.changed_partitions()):
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
    """Makes the exchanges, and tracks the bytes that each broker sends.

    :ivar leader: (P,) the broker that copies are read from.
    :ivar sent: (B,) bytes that each broker sends; ``most``: the limit.
    :ivar saved: bytes that exchanges have saved so far.
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
        self._most = (1 + COPY_SOURCES.slack) * float(layout.incoming.max())
        self._saved = 0.0
        banded = np.asarray(search.scale.any(axis=1))
        banded[0] = True
        self._banded: Ints = np.flatnonzero(banded)
        self._weights = search.weights[self._banded]
        self._low = np.minimum(search.low, search.load)[self._banded]
        self._high = np.maximum(search.high, search.load)[self._banded]
        self._similar = SwapCandidates(search, self._leader, self._zone, COPY_SOURCES.alike)

    def relieve(self, at_target: bool) -> None:
        """Exchange copies of leaders that send too much for copies of others."""
        hot = self._sent > self._most
        if hot.any():
            copies = self._tradable()
            self._sweep(copies, hot[self._leader_of(copies)], at_target, near=False)

    def bring_near(self, at_target: bool) -> None:
        """Exchange copies that come from another zone for copies that do not."""
        copies = self._tradable()
        far = self._zone[self._leader_of(copies)] != self._zone[self._search.holders(copies)]
        self._sweep(copies, far, at_target, near=True)

    # ---------------------------------------------------------------- what there is

    def _all_copies(self) -> Ints:
        """All replicas that are copies."""
        search = self._search
        copies = np.flatnonzero((search.flat != self._origin) & (search.flat != NONE))
        copied: Ints = copies[~search.held_before(copies, search.holders(copies))]
        return copied

    def _tradable(self) -> Ints:
        """The copies that may return to their origin, and others take their place; largest
        first.
        """
        problem, copies = self._search.problem, self._all_copies()
        copies = copies[problem.takes[self._search.holders(copies)]]
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
        """Exchange the largest of the ``wrong`` copies, broker by broker; only brokers with a copy
        that has a partner.

        :param at_target: exchanges of one receiver compensate each other; False: of one giver.
        """
        search = self._search
        middle = search.holders(copies) if at_target else self._origin[copies].astype(np.int64)
        chosen = wrong & (np.cumsum(wrong) <= COPY_SOURCES.copies_per_sweep)
        some = np.flatnonzero(chosen)
        if not len(some):
            return
        slack = self._slack(middle[some], at_target)
        places, others, *_, fits = self._candidates(copies[some], slack, near)
        fits = self._spreading(copies[some[places]], others, fits)
        hopeful = np.unique(middle[some[places[fits.any(axis=1)]]])
        order = stable_order(middle)
        ends = np.searchsorted(middle[order], hopeful, side="right")
        starts = np.searchsorted(middle[order], hopeful)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            group = order[start:end]
            broker = int(middle[group[0]])
            first, others = copies[group[chosen[group]]], copies[group[~wrong[group]]]
            self._trade(
                broker,
                first.tolist(),
                others[: COPY_SOURCES.most_compensating].tolist(),
                at_target,
                near,
            )

    def _trade(
        self, broker: int, wrong: list[int], right: list[int], at_target: bool, near: bool
    ) -> None:
        """Exchange the wrong copies of a broker; then right ones, to compensate the difference."""
        slack = self._slack(np.array([broker]), at_target)
        made: list[tuple[int, int]] = []
        made = self._trade_each(wrong, slack, near, made, compensating=False)
        if made:
            made = self._trade_each(right, slack, near, made, compensating=True)
        for back, out in reversed(made):
            self._swap(out, back)

    def _trade_each(
        self,
        replicas: Sequence[int],
        slack: SwapSlack,
        near: bool,
        made: list[tuple[int, int]],
        *,
        compensating: bool,
    ) -> list[tuple[int, int]]:
        """Returns the exchanges that are not compensated yet.

        Partners of several copies are searched together, as candidates change only when an exchange
        is made: of ever more wrong copies, of which half have none, and of all compensating ones,
        of which nearly all have none.
        """
        first = len(replicas) if compensating else 1
        start, count = 0, first
        while start < len(replicas) and (made or not compensating):
            some = replicas[start : start + count]
            place, other = self._first_trade(np.array(some), slack, near, compensating)
            start, count = start + place + 1, 2 * count
            if other == NONE:
                continue
            count = first
            made.append((some[place], other))
            if slack.beyond(self._held_loads(slack.broker)[:, :, None])[0, 0] <= 0:
                made = self._compensate(made, slack)
        return made

    def _compensate(self, made: list[tuple[int, int]], slack: SwapSlack) -> list[tuple[int, int]]:
        """The difference is compensated: add up what was saved."""
        width = self._search.width
        gained = sum(self._size[back // width] - self._size[out // width] for back, out in made)
        self._saved += float(gained)
        slack.spend(self._search.load[0, slack.broker], self._saved)
        return []

    def _held_loads(self, brokers: Ints) -> Floats:
        """(k, …) what the brokers hold."""
        loads: Floats = self._search.load.take(brokers, axis=1)[self._banded]
        return loads

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
        self, backs: Ints, slack: SwapSlack, near: bool, compensating: bool
    ) -> tuple[int, int]:
        """Exchange the first of n copies that has a partner, with the partner that fits best.

        :returns: index of the copy, and its partner; the last index and NONE if no copy has a
            partner.
        """
        places, some, more, beyond, fits = self._candidates(backs, slack, near, compensating)
        for i in np.flatnonzero(fits.any(axis=1)).tolist():
            mine, back = fits[i], int(backs[places[i]])
            order = np.lexsort((np.abs(more[i, mine]), beyond[i, mine]))
            spreading = filter(partial(self._spreads, back), some[i, mine][order].tolist())
            for replica in islice(spreading, COPY_SOURCES.candidates):
                if self._exchange(back, replica):
                    return int(places[i]), replica
        return len(backs) - 1, NONE

    def _spreads(self, back: int, out: int) -> bool:
        """Whether the exchange of a copy for another replica spreads no topic worse."""
        target, source = int(self._search.flat[back]), int(self._origin[back])
        return self._search.trade_spreads_one(back, out, target, source)

    def _spreading(self, backs: Ints, some: Ints, fits: Mask) -> Mask:
        """(n, alike) the same for candidates (n, alike) of n copies, of those that ``fit``."""
        copy, place = np.nonzero(fits)
        give, spreading = backs[copy], np.zeros_like(fits)
        brokers, origins = self._search.holders(give), self._origin[give].astype(np.int64)
        spreading[copy, place] = self._search.trade_spreads(
            give, some[copy, place], brokers, origins
        )
        return spreading

    def _candidates(
        self, backs: Ints, slack: SwapSlack, near: bool, compensating: bool = False
    ) -> tuple[Ints, Ints, Floats, Floats, Mask]:
        """Replicas of similar size that could be copied instead of these copies.

        :param slack: of the one broker that all these exchanges share, or of each copy's broker.
        :returns: (n,) indexes of the copies that may be exchanged at all; (n, alike) candidates;
            the bytes that the shared broker gains by an exchange; its distance outside its slack
            then; which exchanges all loads allow. Topics are not looked at.
        """
        search, width = self._search, self._search.width
        places = (search.rows[backs // width] != self._origin[backs, None]).all(axis=1)
        if not (near or compensating):
            places &= self._sent[self._leader_of(backs)] > self._most
        chosen = np.flatnonzero(places)
        backs, slack = backs[chosen], slack.of(chosen)
        partition, here = backs // width, self._held_loads(slack.broker)
        size = self._size[partition]
        off = np.maximum(here[0] - slack.high[0], 0) - np.maximum(slack.low[0] - here[0], 0)
        some, fits = self._similar.nearest(backs, size - slack.sign * off, near)
        weight = self._weights.take(some // width, axis=1)
        more = slack.sign * (weight - self._weights.take(partition, axis=1)[:, :, None])
        beyond, before = slack.beyond(here[:, :, None] + more), slack.beyond(here[:, :, None])
        unlike = (
            -LEAST_CHANGE
            if compensating
            else (COPY_SOURCES.most_difference * size * slack.scale[0])[:, None]
        )
        fits &= (beyond <= before + unlike) & (search.flat[some] == self._origin[backs, None])
        other = (self._origin if slack.sign > 0 else search.flat)[backs].astype(np.int64)
        load = self._held_loads(other)[:, :, None] - more
        fits &= (load <= self._high.take(other, axis=1)[:, :, None]).all(axis=0)
        fits &= (load >= self._low.take(other, axis=1)[:, :, None]).all(axis=0)
        leaders = self._leader_of(some)
        sent = self._sent[leaders] - size[:, None] * (leaders == self._leader[partition, None])
        fits &= sent + weight[0] <= self._most
        return chosen, some, more[0], beyond, fits

    def _exchange(self, replica: int, other: int) -> bool:
        """Make an exchange if racks and disks allow it. Returns whether they did."""
        search, width = self._search, self._search.width
        source, target = int(self._origin[replica]), int(search.flat[replica])
        if replica // width == other // width or target in search.origin[other // width].tolist():
            return False
        if not search.racks.admits_one(replica // width, replica % width, source):
            return False
        search.move(replica, source)
        if not search.valid_one(other, target):
            search.move(replica, target)
            return False
        search.move(replica, target)
        self._swap(replica, other)
        return True

    def _swap(self, back: int, out: int) -> None:
        """Undo the move of one replica, and move another one of its origin instead."""
        search, width = self._search, self._search.width
        source, target = int(self._origin[back]), int(search.flat[back])
        search.move(back, source)
        search.move(out, target)
        for replica, sign in ((back, -1), (out, 1)):
            self._sent[self._leader[replica // width]] += sign * self._size[replica // width]
