"""A rebalance by prices, for clusters whose resources pull against each other.

Where disks are larger but not their share of the traffic, what a broker should give up is not known
broker by broker: it depends on what others can take. A linear program over a few dozen brokers of a
domain (``Program``) gives both at once, and a price of each resource on each broker. The largest
replicas worth moving are decided first, in tiers: whole ones as the program has them, those that it
divides by a program of whole replicas. What is small is left to classes of like replicas, and
seated by a program of its own. What rounding leaves outside of a band is for the
polisher, which then ranks trades by what they cost at these prices.
"""

from __future__ import annotations

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask
from include.planning.programs.broker_blocks import alike_blocks
from include.planning.programs.flow_lp import Classes, Program, charges
from include.planning.search.broker_shed import BYTES, RATE, for_rows
from include.planning.search.state import Problem, Search

INNER_PART_OF_BAND = (0.98, 0.94, 0.94)
"""Part of its band that a load is to end in: slack for whole replicas."""

BLOCK = 40
"""Brokers of a program at most."""

CLASSES = (6, 24)
"""Classes by size, and of each by rate per byte, of the first program of a block; and of what is
smaller than the replicas that are decided one by one."""

SMALL_CLASSES = (3, 24)
COARSE_CLASSES = (2, 8)
"""The same beside replicas that may not be divided: such a program is far more expensive to
solve.
"""

TIERS = 3
TIER = 250
"""Replicas, the largest worth it, that are variables of a program by themselves."""

LEAST_GAIN_PER_COST = 0.05
"""Of what its copy costs: a replica may be worth moving if it costs no more at the prices."""

COUNTS_AS_WHOLE = 0.999


LEAST_FREE_PART = 0.9
"""Part of the moves within domains that racks have to allow: the programs know nothing of them."""

REPLICAS_CHECKED_FOR_RACKS = 2_000
"""Replicas of which that is asked."""


class PricedSearch(Search):
    """A search whose moves cost what they change in bytes copied and in charges.

    :ivar charged: (K, B) price of a unit of load, in bytes.
    """

    charged: Floats

    def price(self, replicas: Ints, brokers: Ints) -> Floats:
        """What moving adds to the cost; nothing where it takes some off it."""
        here = self.holders(replicas)
        saved = self.held_before(replicas, here).astype(float) - self.held_before(replicas, brokers)
        weight = self.weight(replicas)
        price = (weight[BYTES] + self.problem.overhead_bytes) * saved
        somewhere = brokers >= 0
        for of, charge in zip(weight, self.charged, strict=True):
            price = price + of * (np.where(somewhere, charge[brokers], 0.0) - charge[here])
        positive: Floats = np.maximum(price, 0.0)
        return positive


def round_lp(problem: Problem) -> PricedSearch:
    """The problem's layout with replicas moved as the programs say; close to the bands, not in."""
    search = PricedSearch(problem)
    search.charged = np.zeros_like(search.load)
    unit = 1 / np.maximum(search.share.mean(axis=1, keepdims=True), 1.0)
    part = np.array(for_rows(INNER_PART_OF_BAND, len(search.load)))[:, None]
    low = search.share - (search.share - search.low) * part
    high = np.where(
        np.isfinite(search.high), search.share + (search.high - search.share) * part, np.inf
    )
    load = search.load.copy()
    for brokers in blocks(search):
        replicas = np.concatenate([search.on(broker) for broker in brokers.tolist()])
        held, least, most = ((of * unit)[:, brokers] for of in (load, low, high))
        takes, overhead = (
            np.flatnonzero(problem.takes[brokers]),
            problem.overhead_bytes * unit[BYTES, 0],
        )
        program = Program(held, least, most, takes, float(overhead))
        owner = np.searchsorted(brokers, search.holders(replicas))
        whole = problem.parts.whole_replicas
        block = _Block(program, search.weight(replicas) * unit, owner, whole=whole)
        block.decide()
        search.charged[:, brokers] = block.prices * unit / unit[BYTES]
        moves = np.flatnonzero(block.target != NONE)
        targets = brokers[block.target[moves]]
        for replica, broker in zip(replicas[moves].tolist(), targets.tolist(), strict=True):
            if search.valid_one(replica, broker) and search.spreads_one(replica, broker):
                search.move(replica, broker)
    return search


def unhindered(search: Search) -> bool:
    """Whether replicas may go nearly anywhere in their domains, as the programs have it."""
    domain, receivers = search.problem.targets.domain, search.receivers
    replicas = np.flatnonzero((search.flat != NONE) & search.problem.gives[search.flat])
    replicas = replicas[
        np.linspace(0, len(replicas) - 1, min(len(replicas), REPLICAS_CHECKED_FOR_RACKS)).astype(
            np.int64
        )
    ]
    target = np.resize(receivers, len(replicas))
    apart = (search.flat[replicas] != target) & (domain[search.flat[replicas]] == domain[target])
    return (
        bool(search.valid(replicas[apart], target[apart]).mean() >= LEAST_FREE_PART)
        if apart.any()
        else False
    )


def blocks(search: Search) -> list[Ints]:
    """The brokers of each domain, in blocks that each are like the whole domain."""
    problem, found = search.problem, []
    unit = 1 / np.maximum(search.share.mean(axis=1, keepdims=True), 1.0)
    surplus, share = (search.load - search.share) * unit, search.share[BYTES] * unit[BYTES]
    banded = search.scale.any(axis=1)
    for number in np.unique(problem.targets.domain[problem.gives]):
        brokers = np.flatnonzero(problem.gives & (problem.targets.domain == number))
        places = alike_blocks(surplus[banded][:, brokers], share[brokers], BLOCK)
        found += [brokers[block] for block in places]
    return [block for block in found if problem.takes[block].any()]


class _Block:
    """Decides what some brokers do with what they hold.

    :param weight, owner: (K, n), (n,) of the replicas they hold.
    :param whole: whether replicas that a program divides get one of whole replicas.
    :ivar target: (n,) where each goes; NONE = it stays.
    :ivar prices: (K, B) of the last program.
    """

    def __init__(self, program: Program, weight: Floats, owner: Ints, *, whole: bool) -> None:
        self._program, self._weight, self._owner = program, weight, owner
        self._whole = whole
        self._matters = np.maximum(weight[BYTES], weight[RATE])
        self.target: Ints = np.full(len(owner), NONE)
        self.prices = np.zeros_like(program.load)

    def decide(self) -> None:
        """Find the target of every replica."""
        rest = np.argsort(-self._matters, kind="stable")
        self._solve(rest[:0], self._classes(rest, CLASSES))
        for _ in range(TIERS):
            tier = rest[self._worth(rest)][:TIER]
            if not len(tier):
                break
            rest = rest[self._matters[rest] < self._matters[tier[-1]]]
            self._decide_each(tier, rest)
        classes = self._classes(rest, SMALL_CLASSES)
        _, leaves = self._solve(rest[:0], classes)
        self._assign_small(rest[_evenly(classes, leaves)])

    def _classes(self, some: Ints, bins: tuple[int, int]) -> Classes:
        brokers = self._program.load.shape[1]
        return Classes.of(self._weight[:, some], self._owner[some], brokers, bins)

    def _solve(self, own: Ints, classes: Classes) -> tuple[Floats, Floats]:
        solved = self._program.solve(self._weight[:, own], self._owner[own], classes, self.prices)
        self.prices = solved.prices
        return solved.part, solved.leaves

    def _worth(self, some: Ints) -> Mask:
        """(n,) whether a replica costs little enough to move at the prices."""
        weight, prices = self._weight[:, some], self.prices
        cheapest = charges(weight, prices[:, self._program.takes]).min(axis=1)
        stays = (weight * prices[:, self._owner[some]]).sum(axis=0)
        copied = weight[BYTES] + self._program.overhead
        objective: Mask = cheapest - stays < (LEAST_GAIN_PER_COST - 1) * copied
        return objective

    def _decide_each(self, own: Ints, rest: Ints) -> None:
        """As the program has them where it has them whole; what it divides is decided at once, by
        a program of whole replicas beside coarser classes of the rest.
        """
        part, _ = self._solve(own, self._classes(rest, SMALL_CLASSES))
        sure = np.maximum(part.max(axis=1), 1 - part.sum(axis=1)) > COUNTS_AS_WHOLE
        self._follow(own[sure], part[sure])
        divided, part = own[~sure], part[~sure]
        if len(divided):
            whole = self._whole_of(divided, rest) if self._whole else None
            self._follow(divided, part if whole is None else whole)

    def _whole_of(self, divided: Ints, rest: Ints) -> Floats | None:
        classes = self._classes(rest, COARSE_CLASSES)
        weight, owner = self._weight[:, divided], self._owner[divided]
        return self._program.whole(weight, owner, classes, self.prices)

    def _follow(self, some: Ints, part: Floats) -> None:
        """Move replicas to where most of them should go, unless more of them should stay."""
        leaves = part.max(axis=1) > 1 - part.sum(axis=1)
        self._move(some[leaves], part[leaves].argmax(axis=1))

    def _move(self, some: Ints, target: Ints) -> None:
        weight = self._weight[:, some]
        self._program = self._program.moved(weight, self._owner[some], target)
        self.target[some] = target

    def _assign_small(self, some: Ints) -> None:
        """Hand small replicas that leave out to brokers, class by class, in turn."""
        classes = self._classes(some, SMALL_CLASSES)
        brokers = self._program.load.shape[1]
        arrivals = self._program.lifted(classes.mass.sum(axis=1)).arrivals(classes)
        for number in np.unique(classes.number).tolist():
            mine = some[classes.number == number]
            turn, credit = arrivals[number] / len(mine), np.zeros(brokers)
            for replica in mine.tolist():
                credit += turn
                self.target[replica] = broker = int(credit.argmax())
                credit[broker] -= 1


def _evenly(classes: Classes, leaves: Floats) -> Mask:
    """(n,) of each class on each broker the part that leaves, evenly from its replicas' order."""
    cell = classes.number * leaves.shape[1] + classes.owner
    order = np.argsort(cell, kind="stable")
    sorted_cell = cell[order]
    rank = np.arange(len(cell)) - np.searchsorted(sorted_cell, sorted_cell)
    part = leaves.ravel()[sorted_cell]
    chosen = np.zeros(len(cell), bool)
    chosen[order] = np.floor((rank + 1) * part + 0.5) > np.floor(rank * part + 0.5)
    return chosen
