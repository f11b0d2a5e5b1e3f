"""Rebalance by linear programs and rounding, for clusters whose resources conflict.

If some brokers have larger disks but no larger share of the traffic, what one broker should give up
depends on what others can take. A linear program over a few dozen brokers of a domain (``Program``)
decides both together, and yields a dual price of each resource on each broker. The largest replicas
worth moving are rounded first, in tiers: those that the program moves as a whole, then those that
it splits, by a mixed-integer program. Small replicas move by classes, and a program of their own
assigns them to brokers. Local search repairs what rounding leaves outside the bands; it ranks
trades by their cost at these prices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Mask
from rehome.planning.placement.stable_order import (
    parts_without_repeats,
    rank,
    stable_order,
    stable_order_of_floats,
)
from rehome.planning.programs.flow_lp import Classes, FlowSolution, Program, charges
from rehome.planning.search.broker_shed import BYTES_ROW, RATE_ROW, for_rows
from rehome.planning.search.state import Problem, Search

_LEAST_GAIN = 1e-9
"""The least improvement of a swap, in squared shares."""

_Bins = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RoundingOptions:
    """How fine the programs are, and what is rounded when.

    :param inner: fraction of its band that a load should end in, per resource: the rest is slack,
        because replicas are whole.
    :param block: the most brokers in one program.
    :param few: replicas of a block up to which there are few: finer classes would have about one
        replica per broker, the programs take twice as long, and plans copy more.
    :param classes: classes by size and by rate per byte of replicas that are not individual, of the
        first program of a block and of the others, with few replicas and with more.
    :param coarse_classes: classes in mixed-integer programs, which are far more expensive to solve.
    :param tiers: how often the largest replicas worth moving are rounded, and how many of them at
        once: with few replicas, or by mixed-integer programs, and with more.
    :param least_gain: the least gain of a move at the dual prices, as a fraction of the cost of its
        copy, for the replica to be a candidate.
    :param promising: parts of another plan's cost, as it is and with its excess removed, one of
        which the first programs of all blocks have to promise, with few replicas and with more: of
        few, rounding makes the plan dearer than that.
    :param whole: fraction of a replica from which on it counts as moved.
    :param least_free: the fraction of moves within domains that racks and topics must allow: the
        programs ignore both.
    :param sampled: replicas that this is checked with.
    :param work_per_block: work that the programs of a block count, whatever its replicas.
    :param work_per_replica: what each of them adds.
    :param most_work: the most that a block counts: more replicas are more of each class.
    """

    inner: tuple[float, ...] = (0.98, 0.94, 0.94)
    block: int = 40
    few: int = 5_000
    classes: tuple[tuple[_Bins, _Bins], ...] = (((3, 12), (2, 12)), ((3, 16), (3, 16)))
    coarse_classes: _Bins = (2, 8)
    tiers: tuple[tuple[int, int], ...] = ((3, 80), (2, 120))
    least_gain: float = 0.05
    promising: tuple[tuple[float, float], ...] = ((0.95, 0.91), (0.99, 0.99))
    whole: float = 0.999
    least_free: float = 0.9
    sampled: int = 2_000
    work_per_block: int = 4_000_000
    work_per_replica: int = 1_800
    most_work: int = 20_000_000


LP_ROUNDING = RoundingOptions()


class PricedSearch(Search):
    """A search that prices moves by bytes copied plus the change of load at dual prices.

    :ivar charged: (K, B) dual price of a unit of load, in bytes.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.charged: Floats = np.zeros_like(self.load)

    def price(self, replicas: Ints, brokers: Ints) -> Floats:
        """What moving adds to the cost, at least 0."""
        here = self.holders(replicas)
        saved = self.held_before(replicas, here).astype(float) - self.held_before(replicas, brokers)
        weight = self.weight(replicas)
        price = (weight[BYTES_ROW] + self.problem.overhead_bytes) * saved
        somewhere = brokers >= 0
        for of, charge in zip(weight, self.charged, strict=True):
            price = price + of * (np.where(somewhere, charge[brokers], 0.0) - charge[here])
        positive: Floats = np.maximum(price, 0.0)
        return positive


def round_lp(search: PricedSearch, costs: tuple[float, float] = (np.inf, np.inf)) -> bool:
    """Solve the programs and round: the layout is close to the bands, but not all loads are
    inside. Nothing has moved before.

    :param costs: of another plan in bytes, as it is and with its excess removed. Nothing moves, and
        False is returned, if the first programs promise hardly less, or the budget of work does not
        suffice.
    """
    unit = 1 / np.maximum(search.share.mean(axis=1, keepdims=True), 1.0)
    posed = list(_block_programs(search, unit))
    if not search.work.allows(sum(block.work for block in posed)):
        return False
    promised = sum(block.begin() for block in posed) / unit[BYTES_ROW, 0]
    many = sum(len(block.replicas) for block in posed) > LP_ROUNDING.few * len(posed)
    parts = LP_ROUNDING.promising[int(many)]
    if promised > max(part * cost for part, cost in zip(parts, costs, strict=True)):
        return False
    for block in posed:
        block.decide()
        search.charged[:, block.brokers] = block.prices * unit / unit[BYTES_ROW]
        moves = np.flatnonzero(block.target != NONE)
        _move_valid(search, block.replicas[moves], block.brokers[block.target[moves]])
    return True


def _move_valid(search: Search, replicas: Ints, targets: Ints) -> None:
    """Move replicas to their targets, one after the other, each that may go there then: those of
    different partitions at once, where only racks say what may go.
    """
    layout, keeps_topics = search.problem.layout, search.topic_counts is not None and search.strict
    limited = bool((layout.headroom[search.problem.takes] < UNLIMITED).any())
    if limited or keeps_topics or layout.arrays.limits is not None:
        for replica, target in zip(replicas.tolist(), targets.tolist(), strict=True):
            if search.valid_one(replica, target) and search.spreads_one(replica, target):
                search.move(replica, target)
        return
    for part in parts_without_repeats(replicas // search.width):
        valid = search.valid(replicas[part], targets[part])
        moved = replicas[part][valid]
        search.lift(moved)
        search.put(moved, targets[part][valid])


def _block_programs(search: Search, unit: Floats) -> Iterator[_Block]:
    """The blocks of brokers, each with its first program.

    :param unit: (K, 1) of a load, in shares of the mean broker.
    """
    problem = search.problem
    part = np.array(for_rows(LP_ROUNDING.inner, len(search.load)))[:, None]
    low = search.share - (search.share - search.low) * part
    high = np.where(
        np.isfinite(search.high), search.share + (search.high - search.share) * part, np.inf
    )
    load = search.load.copy()
    for brokers in blocks(search):
        block_load, least, most = ((of * unit)[:, brokers] for of in (load, low, high))
        takes, overhead = (
            np.flatnonzero(problem.takes[brokers]),
            problem.overhead_bytes * unit[BYTES_ROW, 0],
        )
        program = Program(block_load, least, most, takes, float(overhead))
        yield _Block(search, brokers, program, unit)


def is_free(search: Search) -> bool:
    """Whether racks and topics leave nearly all moves within domains to the programs, which ignore
    both. Topics do not count where the plan is compared with another one when both are finished.
    """
    domain, receivers = search.problem.targets.domain, search.receivers
    replicas = np.flatnonzero((search.flat != NONE) & search.problem.gives[search.flat])
    places = np.linspace(0, len(replicas) - 1, min(len(replicas), LP_ROUNDING.sampled))
    replicas = replicas[places.astype(np.int64)]
    target = np.resize(receivers, len(replicas))
    apart = (search.flat[replicas] != target) & (domain[search.flat[replicas]] == domain[target])
    if not apart.any():
        return False
    replicas, target = replicas[apart], target[apart]
    free = search.valid(replicas, target)
    if not search.problem.parts.both_starts:
        free &= search.spreads(replicas, target)
    return bool(free.mean() >= LP_ROUNDING.least_free)


def blocks(search: Search) -> list[Ints]:
    """The brokers of each domain, in blocks that each resemble the domain."""
    problem, broker_blocks = search.problem, []
    unit = 1 / np.maximum(search.share.mean(axis=1, keepdims=True), 1.0)
    surplus, share = (search.load - search.share) * unit, search.share[BYTES_ROW] * unit[BYTES_ROW]
    banded = search.scale.any(axis=1)
    for number in np.unique(problem.targets.domain[problem.gives]):
        brokers = np.flatnonzero(problem.gives & (problem.targets.domain == number))
        places = similar_blocks(surplus[banded][:, brokers], share[brokers], LP_ROUNDING.block)
        broker_blocks += [brokers[block] for block in places]
    return [block for block in broker_blocks if problem.takes[block].any()]


class _Block:
    """Solves and rounds the programs of one block of brokers.

    :param unit: (K, 1) of a load, in shares of the mean broker.
    :ivar brokers, replicas: (B,), (n,) that take part.
    :ivar work: what the programs count, see ``SearchWork``.
    :ivar target: (n,) target of each replica, a position in ``brokers``; NONE = it stays.
    :ivar prices: (K, B) of the last program.
    """

    def __init__(self, search: Search, brokers: Ints, program: Program, unit: Floats) -> None:
        self.brokers = brokers
        self.replicas: Ints = np.concatenate([search.on(broker) for broker in brokers.tolist()])
        self._program, self._weight = program, search.weight(self.replicas) * unit
        self._owner = np.searchsorted(brokers, search.holders(self.replicas))
        self._whole = search.problem.parts.whole_replicas
        many = int(len(self.replicas) > LP_ROUNDING.few)
        self._first, self._small = LP_ROUNDING.classes[many]
        self._tiers, self._most = LP_ROUNDING.tiers[int(many and not self._whole)]
        self.work = min(
            LP_ROUNDING.work_per_block + LP_ROUNDING.work_per_replica * len(self.replicas),
            LP_ROUNDING.most_work,
        )
        self._matters = np.maximum(self._weight[BYTES_ROW], self._weight[RATE_ROW])
        self._largest = stable_order_of_floats(-self._matters)
        self._work = search.work
        self.target: Ints = np.full(len(self.replicas), NONE)
        self.prices = np.zeros_like(program.load)

    def begin(self) -> float:
        """Solve the first program, in classes alone. Returns its cost in shares of bytes."""
        self._work.count(self.work / (self._tiers + 3))
        return self._solve(self._largest[:0], self._classes(self._largest, self._first)).cost

    def decide(self) -> None:
        """Find the target of every replica."""
        self._work.count(self.work * (self._tiers + 2) / (self._tiers + 3))
        rest = self._largest
        for _ in range(self._tiers):
            tier = self._tier(rest)
            if not len(tier):
                break
            rest = rest[self._matters[rest] < self._matters[tier[-1]]]
            self._round_tier(tier, rest)
        classes = self._classes(rest, self._small)
        self._assign_small(rest[_evenly(classes, self._solve(rest[:0], classes).leaves)])

    def _classes(self, some: Ints, bins: _Bins) -> Classes:
        brokers = self._program.load.shape[1]
        return Classes.of(self._weight[:, some], self._owner[some], brokers, bins)

    def _solve(self, own: Ints, classes: Classes) -> FlowSolution:
        solved = self._program.solve(self._weight[:, own], self._owner[own], classes, self.prices)
        self.prices = solved.prices
        return solved

    def _tier(self, rest: Ints) -> Ints:
        """The first of these replicas, largest first, whose moves pay at the prices: most of them
        are not looked at.
        """
        tier, start, count = rest[:0], 0, self._most
        while start < len(rest) and len(tier) < self._most:
            some = rest[start : start + count]
            tier = np.concatenate([tier, some[self._pays(some)]])
            start, count = start + count, 2 * count
        return tier[: self._most]

    def _pays(self, some: Ints) -> Mask:
        """(n,) whether a move pays at the prices."""
        weight, prices = self._weight[:, some], self.prices
        cheapest = charges(weight, prices[:, self._program.takes]).min(axis=1)
        stays = (weight * prices[:, self._owner[some]]).sum(axis=0)
        copied = weight[BYTES_ROW] + self._program.overhead
        objective: Mask = cheapest - stays < (LP_ROUNDING.least_gain - 1) * copied
        return objective

    def _round_tier(self, own: Ints, rest: Ints) -> None:
        """Round one tier: replicas that the program moves as a whole follow it; a mixed-integer
        program decides those that it splits, with coarser classes for the rest.
        """
        part = self._solve(own, self._classes(rest, self._small)).part
        sure = np.maximum(part.max(axis=1), 1 - part.sum(axis=1)) > LP_ROUNDING.whole
        self._round_to_largest(own[sure], part[sure])
        divided, part = own[~sure], part[~sure]
        if len(divided):
            whole = self._whole_of(divided, rest) if self._whole else None
            self._round_to_largest(divided, part if whole is None else whole)

    def _whole_of(self, divided: Ints, rest: Ints) -> Floats | None:
        classes = self._classes(rest, LP_ROUNDING.coarse_classes)
        weight, owner = self._weight[:, divided], self._owner[divided]
        return self._program.whole(weight, owner, classes, self.prices)

    def _round_to_largest(self, some: Ints, part: Floats) -> None:
        """Simple rounding: a replica goes to the broker with its largest fraction, or stays if that
        fraction is larger.
        """
        leaves = part.max(axis=1) > 1 - part.sum(axis=1)
        self._move(some[leaves], part[leaves].argmax(axis=1))

    def _move(self, some: Ints, target: Ints) -> None:
        weight = self._weight[:, some]
        self._program = self._program.with_moves(weight, self._owner[some], target)
        self.target[some] = target

    def _assign_small(self, some: Ints) -> None:
        """Assign the small replicas that leave to brokers, class by class, in weighted turns."""
        classes = self._classes(some, self._small)
        brokers = self._program.load.shape[1]
        arrivals = self._program.without_load(classes.mass.sum(axis=1)).arrivals(classes)
        for number in np.unique(classes.number).tolist():
            mine = some[classes.number == number]
            turn, credit = arrivals[number] / len(mine), np.zeros(brokers)
            for replica in mine.tolist():
                credit += turn
                self.target[replica] = broker = int(credit.argmax())
                credit[broker] -= 1


def _evenly(classes: Classes, leaves: Floats) -> Mask:
    """(n,) which replicas leave: of each class on each broker the given fraction, evenly spaced."""
    cell = classes.number * leaves.shape[1] + classes.owner
    order = stable_order(cell)
    sorted_cell = cell[order]
    place, part = rank(sorted_cell), leaves.ravel()[sorted_cell]
    chosen = np.zeros(len(cell), bool)
    chosen[order] = np.floor((place + 1) * part + 0.5) > np.floor(place * part + 0.5)
    return chosen


def similar_blocks(surplus: Floats, share: Floats, most: int) -> list[Ints]:
    """Positions of brokers, block by block; ascending within a block.

    A block is solved by itself, so its surpluses must cancel out in every resource, and its mix of
    givers, receivers and large brokers must be that of the domain. Brokers are dealt to blocks by
    their surplus of the first resource, in serpentine order. Then pairs of different blocks are
    swapped as long as that brings the sums of the blocks closer to each other.

    :param surplus: (K, n) load above the share; negative below it.
    :param share: (n,) of the first resource. Both are in shares of the mean broker.
    :param most: brokers of a block at most.
    """
    count = -(-surplus.shape[1] // most)
    of = _dealt(surplus[0], count)
    if count > 1:
        _trade(np.vstack([surplus, np.maximum(surplus, 0), share]), of)
    return [np.flatnonzero(of == block) for block in range(count)]


def _dealt(surplus: Floats, count: int) -> Ints:
    """(n,) block of each broker."""
    turn = np.arange(len(surplus)) % (2 * count)
    of = np.empty(len(surplus), np.int64)
    of[np.argsort(-surplus, kind="stable")] = np.minimum(turn, 2 * count - 1 - turn)
    return of


def _trade(features: Floats, of: Ints) -> None:
    """Swap brokers between blocks, best pair first; changes ``of``.

    The improvement of a swap is the change of the sum of all blocks' squared sums.
    """
    features = features - features.mean(axis=1, keepdims=True)
    blocks = int(of.max()) + 1
    sums: Floats = np.stack([np.bincount(of, feature, blocks) for feature in features])
    change = _changes(features, sums, of, np.arange(len(of)))
    while True:
        one, other = divmod(int(change.argmin()), len(of))
        if change[one, other] > -_LEAST_GAIN:
            return
        gained = features[:, other] - features[:, one]
        sums[:, of[one]] += gained
        sums[:, of[other]] -= gained
        of[one], of[other] = of[other], of[one]
        some = np.flatnonzero((of == of[one]) | (of == of[other]))  # other pairs stay as they are
        change[some] = _changes(features, sums, of, some)
        change[:, some] = change[some].T


def _changes(features: Floats, sums: Floats, of: Ints, some: Ints) -> Floats:
    """(n, B) change of the sum of squares by a swap of each of some brokers with each other one."""
    more, change = sums[:, of], np.zeros((len(some), len(of)))
    for feature, block_sums in zip(features, more, strict=True):  # one order of sums anywhere
        gained = feature[None, :] - feature[some, None]
        change += gained * (block_sums[some, None] - block_sums[None, :] + gained)
    change[of[some, None] == of[None, :]] = 0.0
    return change
