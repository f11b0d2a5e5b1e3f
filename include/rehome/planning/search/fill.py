"""Phase 2 of the search: which brokers get the replicas that were given up.

Large replicas are placed one by one, small ones in rounds. Each goes to the valid broker that gains
most over all resources. Replicas without a valid broker stay where they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.effort.work import SEARCH_WORK
from rehome.planning.placement.stable_order import first_ones, stable_order_of_floats
from rehome.planning.placement.topic_counts import TopicCounts
from rehome.planning.search.broker_shed import BYTES_ROW, REPLICAS_ROW, for_rows
from rehome.planning.search.receiver_ranking import ReceiverRanking
from rehome.planning.search.shed import coldest
from rehome.planning.search.state import Search


@dataclass(frozen=True, slots=True)
class FillOptions:
    """In which order brokers are filled, and how far.

    :param large: size, in shares, from which on replicas are placed one at a time.
    :param tight: per resource, how far above its wanted load, towards the edge of its band, a
        broker is filled at first.
    :param picky: how strongly brokers with a small deficit, or one in a single resource, are
        preferred to those that lack much of everything: the latter can take any replica that is
        left.
    :param pickier: the same if some brokers are short (see shed.py): they need the coldest
        replicas.
    :param disfavour: weight of the gain of brokers that are not to be filled now.
    :param turns: in a round, a broker gets one small replica per so many that it lacks, and so many
        at most.
    :param most: quantile of sizes: bands of bytes that have no room for one of these cannot be
        met, and topics keep to theirs. At the median, those of 0.1 % on 20 brokers would not.
    :param importance: weight of a deficit in each resource when the next broker is chosen: bytes
        come first.
    """

    large: float = 1e-3
    tight: tuple[float, ...] = (0.1, 0.7, 0.9)
    picky: float = 0.1
    pickier: float = 0.5
    disfavour: float = 1e-3
    turns: int = 8
    most: float = 0.9
    importance: tuple[float, ...] = (1.0, 0.03, 0.16)


FILL = FillOptions()

TRIED_ALONE = 16
"""Brokers that are asked one by one whether they may take a replica, before all others are asked at
once. It changes no plan.
"""


def fill(
    search: Search, wanted_load: Floats, replicas: Ints, short: Mask, into: Ints | None = None
) -> None:
    """Move replicas to brokers that lack something.

    :param wanted_load: (K, B) loads to fill up to.
    :param short: (B,) brokers that lack bytes but cannot take the rate, see shed.narrow.
    :param into: (n,) the domain that each goes to; None = its own.
    """
    domain = search.problem.targets.domain
    owner = search.flat[replicas]
    must = search.problem.leaving[owner]
    of_slot = domain[owner] if into is None else into
    taking = np.unique(domain[search.receivers])
    of_slot = np.where(must & ~np.isin(of_slot, taking), NONE, of_slot)
    search.lift(replicas)
    for number in np.unique(of_slot):
        brokers = search.receivers
        if number != NONE:
            brokers = brokers[domain[brokers] == number]
        mine = of_slot == number
        _fill_domain(search, wanted_load, brokers, short[brokers], replicas[mine])
    if search.strict and search.topic_counts and not _can_be_met(search):
        _make_room_for_topics(search, search.topic_counts, replicas, owner)


def _can_be_met(search: Search) -> bool:
    """Whether bands of bytes have room for most replicas; else no later part repairs topics."""
    targets, sizes = search.problem.targets, search.problem.weights[BYTES_ROW]
    width = (targets.high - targets.low)[BYTES_ROW, search.receivers]
    return bool(width.max(initial=0.0) >= np.quantile(sizes, FILL.most))


def _make_room_for_topics(
    search: Search, counts: TopicCounts, replicas: Ints, owner: Ints | Rows
) -> None:
    """Where replicas that found no broker came back to one that others of their topic had gone to
    meanwhile, these go back as well: so no topic ends above its band that was not before.
    """
    again = True
    while again:
        again = False
        moved = np.flatnonzero(search.flat[replicas] != owner)
        cells = counts.cells(replicas[moved] // search.width, search.flat[replicas[moved]])
        for n in moved[counts.replicas[cells] > counts.high[cells]].tolist():
            replica, old = int(replicas[n]), int(owner[n])
            cell = counts.cell(replica // search.width, int(search.flat[replica]))
            if counts.replicas[cell] > counts.high[cell] and search.valid_one(replica, old):
                search.move(replica, old)
                again = True


def _fill_domain(
    search: Search, wanted_load: Floats, brokers: Ints, short: Mask, replicas: Ints
) -> None:
    """Fill one domain. Brokers that are short get the coldest replicas first."""
    if not short.any() or not len(replicas):
        _Filler(search, wanted_load, brokers, FILL.picky).run(replicas)
        return
    lack = np.maximum(wanted_load - search.load, 0)[BYTES_ROW, brokers[short]].sum()
    cold, _ = coldest(search, replicas, float(lack))
    for some, served in ((replicas[cold], short), (replicas[~cold], ~short)):
        favour = np.where(served, 1.0, FILL.disfavour)
        _Filler(search, wanted_load, brokers, FILL.pickier, favour).run(some)


class _Filler:
    """Fills the brokers of one domain.

    :param picky: see FILL.picky.
    :param favour: (n,) weight of each broker's gain.
    """

    def __init__(
        self,
        search: Search,
        wanted_load: Floats,
        brokers: Ints,
        picky: float,
        favour: Floats | None = None,
    ) -> None:
        self._search, self._brokers = search, brokers
        self._wanted_load = wanted_load[:, brokers]
        self._high = search.high[:, brokers]
        self._scale = search.scale[:, brokers]
        banded = self._scale > 0
        reach = np.where(banded, self._high, 0) - np.where(banded, self._wanted_load, 0)
        tight = (
            self._wanted_load + np.array(for_rows(FILL.tight, len(search.load)))[:, None] * reach
        )
        self._tight = np.where(banded, tight, np.inf)
        self._everyone = np.ones(len(brokers), bool)
        self._ids: list[int] = brokers.tolist()
        self._picky = picky
        self._favour = np.ones(len(brokers)) if favour is None else favour
        self._value = np.array(for_rows(FILL.importance, len(search.load)))[:, None]

    def run(self, replicas: Ints) -> None:
        """Place the replicas; those without a valid broker stay where they were."""
        search = self._search
        if not len(self._brokers):
            self._put_back(replicas)
            return
        weight = search.weight(replicas)
        scale = np.where(self._scale.any(axis=1), self._scale.max(axis=1), 0)
        relative = np.delete(weight * scale[:, None], REPLICAS_ROW, axis=0).max(axis=0)
        order = stable_order_of_floats(-relative)
        large = int((relative > FILL.large).sum())
        if not self._scale[REPLICAS_ROW].any():
            large = len(replicas)
        replicas = replicas[order]
        self._one_by_one(replicas[:large])
        self._one_by_one(self._in_rounds(replicas[large:]))

    def _put_back(self, replicas: Ints) -> None:
        self._search.lift(replicas, +1)

    # ---------------------------------------------------------------- one at a time

    def _one_by_one(self, replicas: Ints) -> None:
        search, unplaced = self._search, []
        ranking = ReceiverRanking(
            load=search.load[:, self._brokers],
            wanted_load=self._wanted_load,
            tight=self._tight,
            high=self._high,
            scale=self._scale,
            value=self._value[:, 0].tolist(),
            picky=self._picky,
            favour=self._favour,
        )
        weights = search.weight(replicas)[ranking.rows].T.tolist()
        for replica, weight in zip(replicas.tolist(), weights, strict=True):
            search.work.count_beside(SEARCH_WORK.per_filled)
            place = self._best(replica, ranking, weight)
            if place == NONE:
                unplaced.append(replica)
                continue
            search.put_one(replica, self._ids[place])
            ranking.add(place, weight)
        self._put_back(np.array(unplaced, np.int64))

    def _best(self, replica: int, ranking: ReceiverRanking, weight: list[float]) -> int:
        """Index of the best valid broker for one lifted replica; NONE = it should stay."""
        gain = ranking.gain(weight)
        best = int(gain.argmax())
        broker = self._ids[best]
        if ranking.fits_one(best, weight) and self._takes_one(replica, broker):
            return best
        for headroom in (ranking.tight, ranking.high):
            place = self._most_valuable(replica, ranking.fits(headroom, weight), gain)
            if place != NONE:
                return place
        return self._least_harm(replica)

    def _most_valuable(self, replica: int, fits: Mask, gain: Floats) -> int:
        search = self._search
        fits = search.racks.hosting(replica // search.width, self._brokers, fits)
        best = int(np.where(fits, gain, -np.inf).argmax())
        broker = int(self._brokers[best])
        if search.topic_counts and not search.topic_counts.takes_one(
            replica // search.width, broker
        ):
            fits = fits & self._spreading(replica)
            best = int(np.where(fits, gain, -np.inf).argmax())
        if not fits[best]:
            return NONE
        if search.valid_one(replica, int(self._brokers[best])):
            return best
        places = np.flatnonzero(fits)
        return self._first_valid(replica, places[np.argsort(-gain[places], kind="stable")])

    def _least_harm(self, replica: int) -> int:
        search, owner = self._search, int(self._search.flat[replica])
        search.work.count_beside(SEARCH_WORK.per_unplaced)
        weight, load = search.weights[:, replica // search.width], search.load[:, self._brokers]
        harm = search.excess(self._brokers, load + weight[:, None]) - search.excess(
            self._brokers, load
        )
        order = np.argsort(harm, kind="stable")
        if not search.problem.leaving[owner]:
            here = np.array([owner])
            stays = search.excess(here, search.load[:, here] + weight[:, None]) - search.excess(
                here, search.load[:, here]
            )
            order = order[harm[order] < stays[0] - 1e-12]
        hosting = search.racks.hosting(replica // search.width, self._brokers, self._everyone)
        order = order[hosting[order]]
        spreading = self._spreading(replica)[order]
        place = self._first_valid(replica, order[spreading])
        if place == NONE and (search.problem.leaving[owner] or not search.strict):
            place = self._first_valid(replica, order[~spreading])
        return place

    def _takes_one(self, replica: int, broker: int) -> bool:
        """Whether racks, disks and the bands of topics let a lifted replica go to a broker."""
        search = self._search
        if search.topic_counts and not search.topic_counts.takes_one(
            replica // search.width, broker
        ):
            return False
        return search.valid_one(replica, broker)

    def _spreading(self, replica: int) -> Mask:
        """(n,) brokers that may hold one more replica of the topic."""
        search = self._search
        if search.topic_counts is None:
            return self._everyone
        return search.topic_counts.takes(
            search.topic_counts.cells(replica // search.width, self._brokers)
        )

    def _first_valid(self, replica: int, order: Ints) -> int:
        """The first index in this order whose broker may take the replica."""
        for place in order[:TRIED_ALONE].tolist():
            if self._search.valid_one(replica, self._ids[place]):
                return int(place)
        others = order[TRIED_ALONE:]
        if not len(others):
            return NONE
        valid = self._search.valid(np.repeat(replica, len(others)), self._brokers[others])
        return int(others[valid.argmax()]) if valid.any() else NONE

    # ---------------------------------------------------------------- in rounds

    def _in_rounds(self, replicas: Ints) -> Ints:
        """Per round, a few small replicas for each broker with a deficit: the largest to the
        largest deficit.

        First within the tight limits, then within the bands, then wherever the excess does not
        grow.

        :returns: the replicas without a broker.
        """
        bounds = (self._tight, self._tight, self._high, None, None, None)
        for attempt in range(len(bounds)):
            if not len(replicas):
                break
            bound = bounds[attempt]
            retry, start = [], 0
            while start < len(replicas):
                turns = self._turns(attempt)
                some = replicas[start : start + len(turns)]
                if not len(some):
                    break
                start += len(some)
                placed = self._match(some, turns[: len(some)], bound)
                retry.append(some[~placed])
            replicas = np.concatenate([*retry, replicas[start:]])
        return replicas

    def _turns(self, attempt: int) -> Ints:
        """Indexes of brokers that lack at least one replica, largest deficit first; repeated for
        those that lack many.
        """
        load = self._search.load[:, self._brokers]
        lack = self._wanted_load - load
        needy = np.flatnonzero(lack[REPLICAS_ROW] >= 0.5)
        value = np.delete(lack * self._scale**2 * self._value, REPLICAS_ROW, axis=0).sum(axis=0)
        value *= self._favour
        needy = np.roll(needy[np.argsort(-value[needy], kind="stable")], attempt)
        turns = np.minimum(lack[REPLICAS_ROW, needy] // FILL.turns, FILL.turns)
        return np.concatenate([needy, *(needy[turns > n] for n in range(1, FILL.turns))])

    def _match(self, replicas: Ints, targets: Ints, bound: Floats | None) -> Mask:
        search, brokers = self._search, self._brokers[targets]
        load, weight = search.load.take(brokers, axis=1), search.weight(replicas)
        count = len(self._brokers)
        arrives = np.stack([np.bincount(targets, w, count) for w in weight])
        after = load + arrives.take(targets, axis=1)
        if bound is None:
            fits: Mask = search.excess(brokers, after) <= search.excess(brokers, load)
        else:
            fits = np.logical_and.reduce(after <= bound.take(targets, axis=1))
        placed = fits & search.valid(replicas, brokers)
        partitions = replicas // search.width
        if len(set(partitions.tolist())) < len(replicas):
            first = np.zeros(len(replicas), bool)
            first[np.unique(partitions, return_index=True)[1]] = True
            placed &= first
        if search.topic_counts:
            placed &= one_of_each(search, partitions, brokers, placed)
        placed = search.fit_together(replicas, brokers, placed)
        search.put(replicas[placed], brokers[placed])
        return placed


def one_of_each(search: Search, partitions: Ints, brokers: Ints, placed: Mask) -> Mask:
    """(n,) of the moves in ``placed``, those that topic bands allow: one per topic and broker."""
    counts, allowed = search.topic_counts, np.ones(len(placed), bool)
    if counts is None:
        return allowed
    cells = counts.cells(partitions, brokers)
    some = np.flatnonzero(placed & counts.has_bands(partitions))
    allowed[some] = False
    first = some[first_ones(cells[some])]
    allowed[first] = counts.takes(cells[first])
    return allowed
