"""Balance leaders by share: leader changes among existing replicas, so no data moves.

Greedy descent. The penalty is the sum, over brokers and resources, of the squared deviation from
the share, beyond a dead zone of most of the tolerance. Each leader change lowers it. The search
ends when all brokers are within tolerance, or no leader change helps; planning again on the result
changes no leader.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask, Rows
from include.domain.plan.infeasible import Infeasible, Obstacle, Subject
from include.domain.resources import LED, LOOSE, Resource
from include.planning.leadership.preferred_leaders import promote
from include.planning.leadership.topic_leaders import spreading
from include.planning.model.in_sync import may_lead
from include.planning.model.layout import Layout
from include.planning.model.resource_loads import partition_weight
from include.planning.model.topic_bands import TopicBands

AIMS = (0.8, 0.4, 0.0, 0.6, 0.95)
"""Sizes of the dead zone, as fractions of the tolerance; tried one after the other while some
broker is off its share.
"""

BALANCE_ROUNDS = 25
LEAST_GAIN = 1e-15
MANY, PROGRESS = 10_000, 0.98
"""With more than ``MANY`` partitions, rounds end when one leaves more than ``PROGRESS`` of the
total deviation: a few leader changes per round hardly count there.
"""

HOPELESS = 1.2
"""Deviation beyond the tolerance that one aim leaves, as a multiple of what another layout leaves
in the end. Above it, no further aim is tried.
"""

LEADER_CHANGES_PER_ROUND = 4_096
"""Leader changes per round; then all others are ranked again."""


@dataclass(frozen=True)
class LedShares:
    """Leader load of brokers and their shares: number of leaders, bytes out and, if requested,
    bytes in.

    :param weights: (L, P) weight of leading each partition; 0 for a resource without tolerance.
    :param share: (L, B) to be led; ``tolerance``: (L,) fractions of it.
    :param one_sided: there is no lower end for what brokers lead.
    """

    weights: Floats
    share: Floats
    tolerance: Floats
    one_sided: bool = False

    @classmethod
    def of(
        cls,
        layout: Layout,
        capacity: Floats,
        tolerances: dict[Resource, float],
        one_sided: bool = False,
    ) -> LedShares | None:
        """Shares by capacity (L, B) of the first L of LED; None if none of them has a tolerance."""
        resources = LED[: len(capacity)]
        tolerance = np.array([tolerances[resource] for resource in resources])
        banded = tolerance != LOOSE
        if not banded.any():
            return None
        weights = np.stack([partition_weight(layout.arrays, resource) for resource in resources])
        weights[~banded] = 0
        part = capacity / np.maximum(capacity.sum(axis=1, keepdims=True), 1e-300)
        share = part * weights.sum(axis=1)[:, None]
        return cls(weights, share, np.where(banded, tolerance, 1.0), one_sided)

    def load(self, leaders: Rows) -> Floats:
        """(L, B) led by each broker."""
        led = leaders != NONE
        count = self.share.shape[1]
        return np.stack([np.bincount(leaders[led], w[led], count) for w in self.weights])

    def beyond(self, leaders: Rows) -> float:
        """Total deviation from the shares beyond the tolerance, in shares."""
        off = self._off(leaders) - self.tolerance[:, None] * self.share - 1
        return float((np.maximum(off, 0) / np.maximum(self.share, 1)).sum())

    def bands(self) -> tuple[Floats, Floats, Floats]:
        """(L, P) weights, and (L, B) least and most that each broker is to lead."""
        slack = self.tolerance[:, None] * self.share + 1
        loose = ~self.weights.any(axis=1, keepdims=True)
        low = np.where(loose | self.one_sided, -np.inf, self.share - slack)
        return self.weights, low, np.where(loose, np.inf, self.share + slack)

    def outside(self, leaders: Rows) -> Mask:
        """(L, B) which brokers are off their share by more than the tolerance."""
        outside: Mask = self._off(leaders) > self.tolerance[:, None] * self.share + 1
        return outside

    def _off(self, leaders: Rows) -> Floats:
        off = self.load(leaders) - self.share
        return off if self.one_sided else np.abs(off)


def balance_leaders_by_share(
    layout: Layout,
    shares: LedShares,
    movable: Mask,
    hosts: Mask,
    spread_bands: TopicBands | None = None,
    than: float = np.inf,
) -> None:
    """Bring leadership within tolerance, in place, by the order of replicas alone.

    :param movable: (P,) partitions whose order may change.
    :param hosts: (B,) brokers that may lead; of replicas that exist, only those in sync.
    :param spread_bands: bands of topics, which must not get worse; None = ignore topics.
    :param than: what another layout leaves beyond the tolerance. With more than ``MANY``
        partitions, a layout that is far from it is not improved further.
    """
    rows = layout.rows
    some = np.flatnonzero(movable & (rows[:, 0] != NONE))
    best, least = rows.copy(), shares.beyond(rows[:, 0])
    for aim in AIMS:
        if least <= 0:
            break
        _descend(layout, some, shares, hosts, aim, spread_bands)
        beyond, before = shares.beyond(rows[:, 0]), least
        if beyond < least:
            best, least = rows.copy(), beyond
        if len(some) > MANY and (beyond > PROGRESS * before or least > HOPELESS * than):
            break
    rows[:] = best


def _descend(
    layout: Layout,
    some: Ints,
    shares: LedShares,
    hosts: Mask,
    aim: float,
    spread_bands: TopicBands | None,
) -> None:
    """Change leaders until no broker is off its share, or no leader change lowers the penalty."""
    rows = layout.rows
    aims = (aim * shares.tolerance)[:, None]
    before = np.inf
    for _ in range(BALANCE_ROUNDS):
        leaders = rows[:, 0]
        beyond = shares.beyond(leaders)
        if beyond <= 0 or (len(some) > MANY and beyond > PROGRESS * before):
            return
        before = beyond
        load = shares.load(leaders)
        near = _candidates(rows, some, shares, load, aims)
        able = hosts[rows[near]] & may_lead(layout.arrays, near, rows[near])
        gain, position = _best_position(rows[near], shares, near, load, able, aims)
        useful = np.flatnonzero(gain > LEAST_GAIN)
        heavy = shares.weights[:, near[useful]] / np.maximum(shares.share.max(1), 1e-300)[:, None]
        useful = useful[np.argsort(-heavy.max(axis=0), kind="stable")]
        if spread_bands is not None:
            useful = useful[spreading(spread_bands, rows, near[useful], position[useful])]
        if not _hand_over_in_order(rows, near[useful], position[useful], shares, aims):
            return


def _candidates(rows: Rows, partitions: Ints, shares: LedShares, load: Floats, aim: Floats) -> Ints:
    """Partitions led by a broker that leads too much, or held by one that leads too little."""
    off, slack = load - shares.share, aim * shares.share
    over, under = (np.logical_or.reduce(side) for side in (off > slack, off < -slack))
    candidate: Mask = over[rows[partitions, 0]]
    for column in rows[partitions, 1:].T:
        candidate |= under[column] & (column != NONE)
    return partitions[candidate]


def _beyond(deviation: Floats, aim: Floats) -> Floats:
    excess: Floats = np.maximum(np.abs(deviation) - aim, 0) ** 2
    return excess


def _best_position(
    rows: Rows, shares: LedShares, partitions: Ints, load: Floats, able: Mask, aim: Floats
) -> tuple[Floats, Ints]:
    """(n,) the gain of each partition's best leader change, and the position of the new leader.

    :param able: (n, R) positions that may lead.
    """
    scale = 1 / np.where(shares.share > 0, shares.share, np.inf)
    off = (load - shares.share) * scale
    weight, best = shares.weights.take(partitions, axis=1), np.zeros(len(rows))
    position = np.zeros(len(rows), np.int64)
    leaves = _gained(rows[:, 0], -weight, off, scale, aim)
    for number in range(1, rows.shape[1]):
        new = rows[:, number]
        gain = leaves + _gained(new, weight, off, scale, aim)
        better = (gain > best) & able[:, number]
        best, position = np.where(better, gain, best), np.where(better, number, position)
    return best, position


def _gained(brokers: Rows, more: Floats, off: Floats, scale: Floats, aim: Floats) -> Floats:
    """(n,) reduction of the penalty when brokers lead more (L, n), each considered alone."""
    gained = np.zeros(len(brokers))
    penalty = _beyond(off, aim)
    for row in range(len(off)):
        after = off[row].take(brokers) + more[row] * scale[row].take(brokers)
        gained += penalty[row].take(brokers) - _beyond(after, aim[row])
    return gained


def _hand_over_in_order(
    rows: Rows, partitions: Ints, positions: Ints, shares: LedShares, aim: Floats
) -> int:
    """Make each leader change that still helps after those before it; returns how many."""
    scale = 1 / np.where(shares.share > 0, shares.share, np.inf)
    off = (shares.load(rows[:, 0]) - shares.share) * scale
    weight = shares.weights.take(partitions, axis=1)
    old, new = rows[partitions, 0], rows[partitions, positions]
    chosen: list[int] = []
    left = np.arange(len(partitions))
    while len(left):
        some, left = left[:LEADER_CHANGES_PER_ROUND], left[LEADER_CHANGES_PER_ROUND:]
        chosen += some[_helpful(weight[:, some], old[some], new[some], off, scale, aim)].tolist()
        more = weight.take(left, axis=1)
        gain = _gained(old[left], -more, off, scale, aim)
        gain += _gained(new[left], more, off, scale, aim)
        left = left[gain > LEAST_GAIN]
    promote(rows, partitions[chosen], positions[chosen])
    return len(chosen)


def _helpful(
    weight: Floats, old: Rows, new: Rows, off: Floats, scale: Floats, aim: Floats
) -> list[int]:
    """Which leader changes help, one after the other; updates ``off``, (L, B) deviations."""
    counts = weight.any(axis=1)
    if counts.sum() > 2:
        return _helpful_in_all(weight, old, new, off, scale, aim)
    if len(off) > 2:
        two = np.argsort(~counts, kind="stable")[:2]
        some = off[two]
        chosen = _helpful(weight[two], old, new, some, scale[two], aim[two])
        off[two] = some
        return chosen
    counts, rates = off.tolist()
    count_scale, rate_scale = scale.tolist()
    of_count, of_rate = aim[:, 0].tolist()
    penalty = [
        _penalty(count, rate, of_count, of_rate) for count, rate in zip(counts, rates, strict=True)
    ]
    chosen = []
    moves = zip(old.tolist(), new.tolist(), *weight.tolist(), strict=True)
    for i, (a, b, leads, sends) in enumerate(moves):
        count_a, rate_a = counts[a] - leads * count_scale[a], rates[a] - sends * rate_scale[a]
        count_b, rate_b = counts[b] + leads * count_scale[b], rates[b] + sends * rate_scale[b]
        after_a = _penalty(count_a, rate_a, of_count, of_rate)
        after_b = _penalty(count_b, rate_b, of_count, of_rate)
        if penalty[a] + penalty[b] - after_a - after_b > LEAST_GAIN:
            counts[a], rates[a], penalty[a] = count_a, rate_a, after_a
            counts[b], rates[b], penalty[b] = count_b, rate_b, after_b
            chosen.append(i)
    off[:] = counts, rates
    return chosen


def _helpful_in_all(
    weight: Floats, old: Rows, new: Rows, off: Floats, scale: Floats, aim: Floats
) -> list[int]:
    """The same for any number of resources; it takes longer."""
    offs, scales, most = off.T.tolist(), scale.T.tolist(), aim[:, 0].tolist()
    chosen = []
    changes = zip(old.tolist(), new.tolist(), weight.T.tolist(), strict=True)
    for i, (a, b, more) in enumerate(changes):
        off_a, off_b = offs[a], offs[b]
        after_a = [off - w * by for off, w, by in zip(off_a, more, scales[a], strict=True)]
        after_b = [off + w * by for off, w, by in zip(off_b, more, scales[b], strict=True)]
        gain = 0.0
        for k, free in enumerate(most):
            for sign, end in ((1, off_a[k]), (1, off_b[k]), (-1, after_a[k]), (-1, after_b[k])):
                beyond = abs(end) - free
                if beyond > 0:
                    gain += sign * beyond * beyond
        if gain > LEAST_GAIN:
            offs[a], offs[b] = after_a, after_b
            chosen.append(i)
    off[:] = np.array(offs).T
    return chosen


def _penalty(count: float, rate: float, of_count: float, of_rate: float) -> float:
    """Squared deviations beyond the aims."""
    more, hotter = abs(count) - of_count, abs(rate) - of_rate
    return (more * more if more > 0 else 0.0) + (hotter * hotter if hotter > 0 else 0.0)


def unmet(
    layout: Layout, shares: LedShares, *, handed_over: bool = False
) -> tuple[Infeasible, ...]:
    """Brokers outside their leader shares at the end; they have no replica that could change that.

    :param handed_over: whether leadership was handed over for min_leaders after that.
    """
    outside, load = shares.outside(layout.rows[:, 0]), shares.load(layout.rows[:, 0])
    return tuple(
        Infeasible(
            Subject.of_broker(layout.arrays.brokers.ids[b]),
            Obstacle.MIN_LEADERS_FIRST if handed_over else Obstacle.NO_LEADER_CHANGE,
            wanted=float(round(shares.share[k, b])),
            nearest=float(load[k, b]),
            resource=LED[k],
        )
        for k, b in np.argwhere(outside).tolist()
    )
