"""Local search: trades between brokers that reduce the excess of the worst broker.

A trade moves one replica to another broker (push), fetches one (pull), or both (swap). Trades are
ranked by excess removed per byte copied, a move's overhead included. A few promising trades are
checked first; then all, or a fixed sample of too many. There is no randomness.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.planning.effort.local_search_options import LOCAL_SEARCH, LONG_STEP, USUAL_STEP
from rehome.planning.effort.work import SEARCH_WORK
from rehome.planning.placement.stable_order import stable_order_of_floats
from rehome.planning.search.state import LEAST_CHANGE, Search
from rehome.planning.search.trades import Trades, join_trades


class LocalSearch:
    """Improves a layout until no trade brings a broker closer to its bands."""

    def __init__(self, search: Search) -> None:
        self._search = search
        problem = search.problem
        self._all: Ints = np.arange(len(problem.gives))
        domain = problem.targets.domain
        if not search.racks.even():
            domain = np.zeros_like(domain)
        givers = np.flatnonzero(problem.gives)
        takers = search.receivers
        self._takers = {n: takers[domain[takers] == n] for n in np.unique(domain).tolist()}
        self._givers = {n: givers[domain[givers] == n] for n in np.unique(domain).tolist()}
        self._donors = np.flatnonzero(problem.gives & ~problem.takes & ~problem.leaving)
        self._domain: list[int] = domain.tolist()
        self._samples: dict[int, Ints] = {}
        self._origins: dict[int, Ints] = {}
        share = max(1.0, float(search.share[0].mean()))
        self._byte = 1 / share
        self._step = LONG_STEP if problem.further else USUAL_STEP

    def run(self, hopeless: float = np.inf) -> None:
        """Trade for the worst broker, again and again, until no broker has a trade that helps.

        :param hopeless: end at once when brokers without a helpful trade have more excess than
            this.
        """
        search, gives = self._search, self._search.problem.gives
        excess = np.where(gives, search.excess(slice(None), search.load), 0.0)
        stuck = np.zeros(len(excess), bool)
        helped, before, window = False, np.inf, max(LOCAL_SEARCH.window, len(excess))
        for step in itertools.count(1):
            if search.work.is_spent():
                return
            if step % window == 0:
                if excess.sum() > LOCAL_SEARCH.most_left * before:
                    return
                before = excess.sum()
            worst = int(np.where(stuck, 0.0, excess).argmax())
            if stuck[worst] or excess[worst] <= 0:
                if not helped or not excess.any():
                    return
                stuck[:], helped = False, False
                continue
            touched = self._help(worst)
            stuck[worst] = not touched
            helped |= bool(touched)
            some = np.array(sorted({worst, *touched}), np.int64)
            excess[some] = np.where(gives[some], search.excess(some, search.load[:, some]), 0.0)
            if excess[stuck].sum() > hopeless:
                return

    def _help(self, broker: int) -> list[int]:
        """Make trades for a broker. Returns the brokers that changed; empty if no trade helps."""
        waiting: list[Trades] = []
        for stage, count, is_quick in self._stages():
            if waiting and not is_quick:
                touched = self._make(broker, max(waiting, key=Trades.most))
                if touched:
                    return touched
                waiting.clear()
            for trades in stage(broker):
                if self._search.problem.further:
                    trades = trades.vary()
                trades = self._valid_ones(broker, trades.best(count))
                if is_quick and trades.most() < self._enough(broker):
                    waiting.append(trades)
                    continue
                touched = self._make(broker, trades)
                if touched:
                    return touched
        return []

    def _enough(self, broker: int) -> float:
        """Excess that trades have to remove at least, or swaps are tried before they are made: with
        further resources, a broker above one band is often at the lower end of another, where only
        swaps help much.
        """
        search, here = self._search, np.array([broker])
        if not search.problem.further:
            return 0.0
        return LOCAL_SEARCH.least_part * float(search.excess(here, search.load[:, here])[0])

    def _stages(self) -> Iterator[tuple[Callable[[int], Iterator[Trades]], int, bool]]:
        """Each with how many of its trades are checked, and whether it takes little time."""
        yield self._quick, LOCAL_SEARCH.candidates, True
        yield partial(self._swaps, sample=LOCAL_SEARCH.first_sample), LOCAL_SEARCH.candidates, True
        yield self._thorough, LOCAL_SEARCH.checked, False
        yield partial(self._swaps, sample=LOCAL_SEARCH.sample), LOCAL_SEARCH.checked, False

    def _make(self, broker: int, trades: Trades) -> list[int]:
        """Make the best trade, and those nearly as good that still help after it."""
        search, touched, here = self._search, [broker], np.array([broker])
        enough = self._step.least_of_best * trades.score.max(initial=0.0)
        while len(trades.give):
            gain = trades.gain
            if len(touched) > 1:
                gain = self._gain(broker, trades.give, trades.take, trades.other)
            helpful = gain >= self._step.least_of_own * trades.gain
            score = np.where(helpful, gain / trades.cost, 0.0)
            best = int(score.argmax())
            if score[best] < enough or score[best] <= 0:
                break
            give, take, other = (
                int(column[best]) for column in (trades.give, trades.take, trades.other)
            )
            left = np.arange(len(score)) != best
            if len(touched) == 1 or self._valid(broker, give, take, other):
                if give != NONE:
                    search.move(give, other)
                if take != NONE:
                    search.move(take, broker)
                touched.append(other)
                if search.excess(here, search.load[:, here])[0] <= 0:
                    break
                left &= ((trades.give != give) | (give == NONE)) & (
                    (trades.take != take) | (take == NONE)
                )
            trades = trades.only(np.flatnonzero(left))
        return touched if len(touched) > 1 else []

    def _valid_ones(self, broker: int, trades: Trades) -> Trades:
        """The first few trades that racks and disks allow now."""
        kept, start, valid_count, count = [np.zeros(0, np.int64)], 0, 0, LOCAL_SEARCH.candidates
        while start < len(trades.give) and valid_count < self._step.trades:
            some = trades.only(np.arange(start, min(start + count, len(trades.give))))
            self._search.work.count_beside(SEARCH_WORK.per_checked * len(some.give))
            kept.append(start + np.flatnonzero(self._may_make(broker, some)))
            valid_count += len(kept[-1])
            start += count
            count = start
        return trades.only(np.concatenate(kept)[: self._step.trades])

    def _may_make(self, broker: int, trades: Trades) -> Mask:
        """(n,) which trades racks, disks and topics allow now."""
        search, give, take, other = self._search, trades.give, trades.take, trades.other
        allowed: Mask = (give // search.width != take // search.width) | (take == NONE)
        for replicas, target in ((give, other), (take, np.full(len(take), broker))):
            real = np.flatnonzero((replicas != NONE) & allowed)
            allowed[real] = search.valid(replicas[real], target[real])
        allowed &= search.trade_spreads(give, take, broker, other)
        return allowed

    def _valid(self, broker: int, give: int, take: int, other: int) -> bool:
        search = self._search
        if give != NONE and take != NONE and give // search.width == take // search.width:
            return False
        if not search.trade_spreads_one(give, take, broker, other):
            return False
        if give != NONE and not search.valid_one(give, other):
            return False
        return take == NONE or search.valid_one(take, broker)

    # ---------------------------------------------------------------- what trades there are

    def _quick(self, broker: int) -> Iterator[Trades]:
        """The replicas whose departure helps the broker most, and those that the brokers with the
        largest surplus could give it.
        """
        search, near = self._search, self._takers[self._domain[broker]]
        replicas, relief = self._relieving(broker)
        trades = []
        if len(replicas):
            some = _largest(relief / self._price(replicas), LOCAL_SEARCH.quick_replicas)
            trades.append(self._pushes(broker, replicas[some], self._roomiest(near)))
        else:  # counts as ever, so that a budget ends where it did
            search.work.score(0)
            search.work.score(0)
        if broker in near and (search.load[:, broker] < search.low[:, broker]).any():
            rich = self._largest_surplus(self._givers[self._domain[broker]])
            trades.append(self._pulls(broker, np.concatenate([search.on(b) for b in rich])))
        elif broker not in near:
            trades.append(self._pulls(broker, self._given_replicas(broker)))
        if trades:
            yield join_trades(trades)

    def _relieving(self, broker: int) -> tuple[Ints, Floats]:
        """The replicas of a broker whose departure reduces its excess, and by how much."""
        search, replicas = self._search, self._search.on(broker)
        own = search.excess(np.array([broker]), search.load[:, [broker]])[0]
        rest = search.load[:, broker, None] - search.weight(replicas)
        relief = own - search.excess(broker, rest) if len(replicas) else np.zeros(0)
        useful = np.flatnonzero(relief > LEAST_CHANGE)
        return replicas[useful], relief[useful]

    def _roomiest(self, near: Ints) -> Ints:
        """The takers with the most headroom, and those that lack most."""
        search, most = self._search, LOCAL_SEARCH.quick_brokers // 2
        load, high, scale = (
            part.take(near, axis=1) for part in (search.load, search.high, search.scale)
        )
        high, scale = np.where(scale > 0, high, np.inf), np.where(scale > 0, scale, 1.0)
        headroom = ((high - load) * scale).min(axis=0)
        lack = search.excess(near, load)
        return np.union1d(near[_largest(headroom, most)], near[_largest(lack, most)])

    def _largest_surplus(self, givers: Ints) -> Ints:
        """The brokers with the largest surplus over all resources."""
        search = self._search
        load, low, scale = (
            part.take(givers, axis=1) for part in (search.load, search.low, search.scale)
        )
        slack = np.where(scale > 0, (load - low) * scale, np.inf)
        spare = slack.min(axis=0) + search.excess(givers, load)
        return givers[_largest(spare, LOCAL_SEARCH.first_donors)]

    def _thorough(self, broker: int) -> Iterator[Trades]:
        search, near = self._search, self._takers[self._domain[broker]]
        replicas = search.on(broker)
        yield self._pushes(
            broker, self._sample(replicas, LOCAL_SEARCH.most_weighed // max(1, len(near))), near
        )
        if broker in near and (search.load[:, broker] < search.low[:, broker]).any():
            yield self._pulls(broker, self._of_domain(self._domain[broker]))

    def _of_domain(self, domain: int) -> Ints:
        """A sample of the replicas in a domain: chosen once, because none leaves its domain."""
        if domain not in self._samples:
            replicas = self._search.held_by(self._givers[domain])
            self._samples[domain] = self._sample(replicas, LOCAL_SEARCH.most_weighed)
        return self._samples[domain]

    def _swaps(self, broker: int, sample: int) -> Iterator[Trades]:
        near = self._takers[self._domain[broker]]
        mine = self._search.on(broker)
        if broker not in near:
            theirs = self._sample(self._given_replicas(broker), sample)
            yield self._cross(broker, self._sample(mine, sample), theirs)
            return
        partners = self._partners(broker, near[near != broker])
        for start in range(0, len(partners), LOCAL_SEARCH.partners):
            some = partners[start : start + LOCAL_SEARCH.partners].tolist()
            samples = [self._sample(self._search.on(other), sample) for other in some]
            yield self._cross(broker, self._sample(mine, sample), np.concatenate(samples))
        home = self._search.origin.reshape(-1)[mine]
        for donor in self._donors[np.isin(self._donors, home)].tolist()[
            : LOCAL_SEARCH.partners_in_all
        ]:
            theirs = self._sample(self._search.on(donor), sample)
            yield self._cross(broker, self._sample(mine[home == donor], sample), theirs)

    def _cross(self, broker: int, mine: Ints, theirs: Ints) -> Trades:
        """Swaps of each of a broker's replicas with each of the others."""
        search, other = self._search, self._search.holders(theirs)
        out, back = search.weight(mine)[:, :, None], search.weight(theirs)[:, None, :]
        gain = -(
            search.excess_change(broker, back - out)
            + search.excess_change(other[None, :], out - back)
        )
        some = np.flatnonzero(gain > LEAST_CHANGE)
        give, columns = mine[some // max(1, len(theirs))], some % max(1, len(theirs))
        take, other = theirs[columns], other[columns]
        cost = search.price(give, other) + search.price(take, np.full(len(take), broker))
        return Trades(give, take, other, gain.reshape(-1)[some], self._cost(cost))

    def _given_replicas(self, broker: int) -> Ints:
        """The replicas that a broker has given up: all that may come to it if it only gives."""
        search = self._search
        if broker not in self._origins:
            replicas = np.flatnonzero(search.origin.reshape(-1) == broker)
            movable = search.problem.partitions[replicas // search.width]
            self._origins[broker] = replicas[movable]
        before = self._origins[broker]
        given: Ints = before[search.flat[before] != broker]
        return given

    def _partners(self, broker: int, others: Ints) -> Ints:
        """Brokers that swaps are tried with: evenly spaced; if further resources take part, those
        that deviate most where the broker does, in the other direction.
        """
        search, count = self._search, min(len(others), LOCAL_SEARCH.partners_in_all)
        if not search.problem.further:
            evenly: Ints = others[np.linspace(0, len(others) - 1, count).astype(int)]
            return evenly
        banded = search.scale > 0
        low, high, load = (
            np.where(banded, part, 0.0) for part in (search.low, search.high, search.load)
        )
        # in half widths of the band; a band without a lower end reaches down to 0
        low = np.maximum(low, 0.0)
        off = (2 * load - low - high) / np.maximum(high - low, 1.0)
        mine = np.where(np.abs(off[:, broker]) >= LOCAL_SEARCH.near_the_edge, off[:, broker], 0.0)
        alike = (
            np.clip(mine, -LOCAL_SEARCH.most_deviation, LOCAL_SEARCH.most_deviation)
            @ off[:, others]
        )
        opposite: Ints = others[np.argsort(alike, kind="stable")[:count]]
        return opposite

    def _sample(self, replicas: Ints, count: int) -> Ints:
        """At most so many of the replicas: evenly spaced by size, or more of the large ones."""
        if len(replicas) <= count:
            return replicas
        size = self._search.weights[0].take(replicas // self._search.width)
        order = stable_order_of_floats(size)
        if not self._search.problem.further:
            return replicas[order[np.linspace(0, len(replicas) - 1, count).astype(np.int64)]]
        rank = 1 - (1 - np.linspace(0, 1, count)) ** LOCAL_SEARCH.towards_large
        return replicas[order[np.unique((rank * (len(replicas) - 1)).astype(np.int64))]]

    def _pushes(self, broker: int, replicas: Ints, targets: Ints) -> Trades:
        search, targets = self._search, targets[targets != broker]
        load = search.weight(replicas)
        gain = -(
            search.excess_change(broker, -load)[:, None]
            + search.excess_change(targets, load[:, :, None])
        )
        some = np.flatnonzero(gain > LEAST_CHANGE)
        give, other = replicas[some // len(targets)], targets[some % len(targets)]
        cost = self._cost(search.price(give, other))
        return Trades(give, np.full(len(some), NONE), other, gain.reshape(-1)[some], cost)

    def _pulls(self, broker: int, replicas: Ints) -> Trades:
        search = self._search
        replicas = replicas[search.flat[replicas] != broker]
        other, load = search.holders(replicas), search.weight(replicas)
        gain = -(search.excess_change(broker, load) + search.excess_change(other, -load))
        some = np.flatnonzero(gain > LEAST_CHANGE)
        take, other = replicas[some], other[some]
        cost = self._cost(search.price(take, np.full(len(take), broker)))
        return Trades(np.full(len(some), NONE), take, other, gain[some], cost)

    # ---------------------------------------------------------------- what they are worth

    def _price(self, replicas: Ints) -> Floats:
        nowhere = np.full(len(replicas), NONE - 1)
        return self._cost(self._search.price(replicas, nowhere))

    def _cost(self, size: Floats) -> Floats:
        """Cost of trades that copy so many bytes, in shares."""
        cost: Floats = size * self._byte + LOCAL_SEARCH.least_cost
        return cost

    def _gain(self, broker: int, give: Ints, take: Ints, other: Ints) -> Floats:
        """(n,) excess that each trade removes, on both brokers together."""
        search = self._search
        change = np.zeros((len(search.load), len(other)))
        for replicas, sign in ((give, -1), (take, 1)):
            real = replicas != NONE
            change[:, real] += sign * search.weight(replicas[real])
        gain: Floats = -(
            search.excess_change(broker, change) + search.excess_change(other, -change)
        )
        return gain


def _largest(values: Floats, count: int) -> Ints:
    """Indexes of the largest values, ascending; of equal ones, the first."""
    if len(values) <= count:
        return np.arange(len(values))
    least = np.partition(values, -count)[-count]
    chosen = np.flatnonzero(values >= least)
    if len(chosen) > count:  # of the least, those in front
        chosen = np.delete(chosen, np.flatnonzero(values[chosen] == least)[count - len(chosen) :])
    return chosen
