"""Balance leaders by share: leader changes among existing replicas, so no data moves.

Greedy descent. The penalty is the sum, over brokers and resources, of the squared deviation from
the share, beyond a dead zone of most of the tolerance. Each leader change lowers it. The search
ends when all brokers are within tolerance, or no leader change helps; planning again on the result
changes no leader.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.resources import LED, LOOSE, Resource
from rehome.planning.leadership.kept_leaders import KeptLeaders
from rehome.planning.leadership.min_leaders import RequestedMinLeaders
from rehome.planning.leadership.preferred_leaders import promote
from rehome.planning.leadership.single_changes import change_single_leaders
from rehome.planning.model.in_sync import may_lead
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import partition_weight
from rehome.planning.model.topic_bands import TopicBands
from rehome.planning.placement.stable_order import stable_order_of_floats
from rehome.planning.placement.topic_counts import TopicCounts

AIMS = (0.8, 0.4, 0.0, 0.6, 0.95)
"""Sizes of the dead zone, as fractions of the tolerance; tried one after the other while some
broker is off its share.
"""

BALANCE_ROUNDS = 25
_LEAST_GAIN = 1e-15
WRITTEN_OUT = 3
"""Resources whose leader changes are counted by code that is written out, for speed."""
_MANY, _PROGRESS = 10_000, 0.98
"""With more than ``_MANY`` partitions, rounds end when one leaves more than ``_PROGRESS`` of the
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

    def beyond(self, load: Floats) -> float:
        """Total deviation of led loads (L, B) from the shares beyond the tolerance, in shares."""
        off = self._off(load) - self.tolerance[:, None] * self.share - 1
        return float((np.maximum(off, 0) / np.maximum(self.share, 1)).sum())

    def beyond_by(self, brokers: Ints | Rows, load: Floats) -> Floats:
        """(n, …) the same of each of these brokers (n, …), which lead (L, n, …)."""
        share = self.share[:, brokers]
        tolerance = self.tolerance.reshape(-1, *[1] * (share.ndim - 1))
        off = load - share if self.one_sided else np.abs(load - share)
        beyond: Floats = np.maximum(off - tolerance * share - 1, 0) / np.maximum(share, 1)
        total: Floats = beyond.sum(axis=0)
        return total

    def bands(self) -> tuple[Floats, Floats, Floats]:
        """(L, P) weights, and (L, B) least and most that each broker is to lead."""
        slack = self.tolerance[:, None] * self.share + 1
        loose = ~self.weights.any(axis=1, keepdims=True)
        low = np.where(loose | self.one_sided, -np.inf, self.share - slack)
        return self.weights, low, np.where(loose, np.inf, self.share + slack)

    def outside(self, load: Floats) -> Mask:
        """(L, B) which brokers are off their share by more than the tolerance."""
        outside: Mask = self._off(load) > self.tolerance[:, None] * self.share + 1
        return outside

    def _off(self, load: Floats) -> Floats:
        off = load - self.share
        return off if self.one_sided else np.abs(off)


def balance_leaders_by_share(
    layout: Layout,
    shares: LedShares,
    movable: Mask,
    hosts: Mask,
    spread_bands: TopicBands | None = None,
    than: float = np.inf,
) -> int:
    """Bring leadership within tolerance, in place, by the order of replicas alone. Returns how many
    leaders were looked at, in all rounds together.

    :param movable: (P,) partitions whose order may change.
    :param hosts: (B,) brokers that may lead; of replicas that exist, only those in sync.
    :param spread_bands: bands of topics, which must not get worse; None = ignore topics.
    :param than: what another layout leaves beyond the tolerance. With more than ``_MANY``
        partitions, a layout that is far from it is not improved further.
    """
    rows = layout.rows
    some = np.flatnonzero(movable & (rows[:, 0] != NONE))
    best, least = rows[some], shares.beyond(shares.load(rows[:, 0]))
    if least <= 0:
        return 0
    descent = _Descent(layout, some, shares, hosts, spread_bands)
    for aim in AIMS:
        descent.run(aim)
        beyond, before = shares.beyond(descent.load()), least
        if beyond < least:
            best, least = descent.placed_rows(), beyond
        if least <= 0:
            break
        if len(some) > _MANY and (beyond > _PROGRESS * before or least > HOPELESS * than):
            break
    rows[some] = best
    if least > 0 and len(some) <= _MANY:
        able = hosts[best] & may_lead(layout.arrays, some, best)
        counts = TopicCounts.of_leaders(spread_bands, rows) if spread_bands is not None else None
        change_single_leaders(rows, some, able, shares, counts)
    return descent.rounds * len(some)


def change_what_still_helps(
    layout: Layout,
    shares: LedShares,
    movable: Mask,
    hosts: Mask,
    spread_bands: TopicBands | None,
    minimums: RequestedMinLeaders | None,
    *,
    evens_topics: bool = False,
) -> None:
    """Single leader changes that help after others were made for topics, min_leaders and caps,
    all of which are kept. The parameters are those of :func:`balance_leaders_by_share`.

    :param evens_topics: also those that help topics alone.
    """
    rows = layout.rows
    some = np.flatnonzero(movable & (rows[:, 0] != NONE))
    if len(some) > _MANY:
        return
    counts = TopicCounts.of_leaders(spread_bands, rows) if spread_bands is not None else None
    is_even = counts is None or not evens_topics or not counts.outside()
    if is_even and shares.beyond(shares.load(rows[:, 0])) <= 0:
        return
    able = hosts[rows[some]] & may_lead(layout.arrays, some, rows[some])
    kept = KeptLeaders(layout, minimums)
    change_single_leaders(rows, some, able, shares, counts, kept, evens_topics=evens_topics)


class _Descent:
    """Changes leaders of the movable partitions, whose arrays it holds, heaviest first.

    :param partitions: (n,) that may change, ascending.
    :ivar rows: (n, R) their replicas; ``able``: (n, R) which of these may lead.
    :ivar leaders: (P,) of all partitions.
    :ivar counts: leaders of topics per broker; None if topics have no bands.
    :ivar rounds: how often leader changes were ranked.
    """

    def __init__(
        self,
        layout: Layout,
        partitions: Ints,
        shares: LedShares,
        hosts: Mask,
        spread_bands: TopicBands | None,
    ) -> None:
        most = np.maximum(shares.share.max(axis=1), 1e-300)[:, None]
        heavy = (shares.weights.take(partitions, axis=1) / most).max(axis=0)
        self._order = stable_order_of_floats(-heavy)
        self.partitions: Ints = partitions[self._order]
        self.rows = layout.rows[self.partitions]
        self.able: Mask = hosts[self.rows] & may_lead(layout.arrays, self.partitions, self.rows)
        self.leaders = layout.rows[:, 0].copy()
        self.weight = shares.weights.take(self.partitions, axis=1)
        self.counts = (
            TopicCounts.of_leaders(spread_bands, layout.rows) if spread_bands is not None else None
        )
        self._shares = shares
        self._scale = 1 / np.where(shares.share > 0, shares.share, np.inf)
        self.rounds = 0

    def load(self) -> Floats:
        """(L, B) led by each broker now."""
        return self._shares.load(self.leaders)

    def placed_rows(self) -> Rows:
        """(n, R) the rows in the order of the given partitions."""
        placed = np.empty_like(self.rows)
        placed[self._order] = self.rows
        return placed

    def run(self, aim: float) -> None:
        """Change leaders until no broker is off its share, or no leader change lowers the penalty.

        :param aim: size of the dead zone, as a fraction of the tolerance.
        """
        shares, aims = self._shares, (aim * self._shares.tolerance)[:, None]
        before = np.inf
        for _ in range(BALANCE_ROUNDS):
            load = self.load()
            beyond = shares.beyond(load)
            if beyond <= 0 or (len(self.rows) > _MANY and beyond > _PROGRESS * before):
                return
            before = beyond
            self.rounds += 1
            off = (load - shares.share) * self._scale
            near = self._candidates(off, aims)
            gain, position = self._best_position(near, off, aims)
            useful = np.flatnonzero(gain > _LEAST_GAIN)
            if not self._hand_over_in_order(near[useful], position[useful], off, aims):
                return

    def _candidates(self, off: Floats, aim: Floats) -> Ints:
        """Partitions led by a broker that leads too much, or held by one that leads too little."""
        over, under = (np.logical_or.reduce(side) for side in (off > aim, off < -aim))
        candidate: Mask = over[self.rows[:, 0]]
        for column in self.rows[:, 1:].T:
            candidate |= under[column] & (column != NONE)
        return np.flatnonzero(candidate)

    def _best_position(self, near: Ints, off: Floats, aim: Floats) -> tuple[Floats, Ints]:
        """(n,) the gain of each partition's best leader change, and the new leader's position."""
        rows, able = self.rows[near], self.able[near]
        weight, best = self.weight.take(near, axis=1), np.zeros(len(near))
        position = np.zeros(len(near), np.int64)
        leaves = _gains(rows[:, 0], -weight, off, self._scale, aim)
        for number in range(1, rows.shape[1]):
            gain = leaves + _gains(rows[:, number], weight, off, self._scale, aim)
            better = (gain > best) & able[:, number]
            best, position = np.where(better, gain, best), np.where(better, number, position)
        return best, position

    def _hand_over_in_order(self, some: Ints, positions: Ints, off: Floats, aim: Floats) -> int:
        """Make each leader change that still helps after those before it; returns how many.

        :param off: (L, B) deviations, in shares; updated.
        """
        weight = self.weight.take(some, axis=1)
        old, new = self.rows[some, 0], self.rows[some, positions]
        made, left = 0, np.arange(len(some))
        while len(left):
            next_ones, left = left[:LEADER_CHANGES_PER_ROUND], left[LEADER_CHANGES_PER_ROUND:]
            if self.counts is not None:
                partitions = self.partitions[some[next_ones]]
                together = self.counts.moving_together(
                    partitions, old[next_ones], new[next_ones], 0
                )
                next_ones = next_ones[together]
            helpful = _helpful(
                weight[:, next_ones], old[next_ones], new[next_ones], off, self._scale, aim
            )
            chosen = next_ones[helpful]
            self._promote(some[chosen], positions[chosen])
            made += len(chosen)
            more = weight.take(left, axis=1)
            gain = _gains(old[left], -more, off, self._scale, aim)
            gain += _gains(new[left], more, off, self._scale, aim)
            left = left[gain > _LEAST_GAIN]
        return made

    def _promote(self, some: Ints, positions: Ints) -> None:
        """Make the replicas at these positions the leaders."""
        partitions, old = self.partitions[some], self.rows[some, 0]
        promote(self.rows, some, positions)
        promote(self.able, some, positions)
        new = self.rows[some, 0]
        self.leaders[partitions] = new
        if self.counts is not None:
            self.counts.move(partitions, old, new)


def _beyond(deviation: Floats, aim: Floats) -> Floats:
    excess: Floats = np.maximum(np.abs(deviation) - aim, 0) ** 2
    return excess


def _gains(brokers: Rows, more: Floats, off: Floats, scale: Floats, aim: Floats) -> Floats:
    """(n,) reduction of the penalty when brokers lead more (L, n), each considered alone."""
    gained = np.zeros(len(brokers))
    penalty = _beyond(off, aim)
    for row in range(len(off)):
        after = off[row].take(brokers) + more[row] * scale[row].take(brokers)
        gained += penalty[row].take(brokers) - _beyond(after, aim[row])
    return gained


def _helpful(
    weight: Floats, old: Rows, new: Rows, off: Floats, scale: Floats, aim: Floats
) -> list[int]:
    """Which leader changes help, one after the other; updates ``off``, (L, B) deviations."""
    if len(off) > WRITTEN_OUT:
        return _helpful_in_general(weight, old, new, off, scale, aim)
    penalty, rows = _beyond(off, aim).sum(axis=0).tolist(), len(off)
    missing = ((0, WRITTEN_OUT - rows), (0, 0))
    off_of, scale_of, weight_of = (np.pad(part, missing) for part in (off, scale, weight))
    (c0, c1, c2), (s0, s1, s2) = off_of.tolist(), scale_of.tolist()
    f0, f1, f2 = np.pad(aim, missing)[:, 0].tolist()
    chosen = []
    moves = zip(old.tolist(), new.tolist(), *weight_of.tolist(), strict=True)
    # Written out, because this runs for every leader change. Of a, the old leader, and b, the new
    # one: c deviations, s scale, w weight, f dead zone, m beyond it.
    for i, (a, b, w0, w1, w2) in enumerate(moves):
        a0, a1, a2 = c0[a] - w0 * s0[a], c1[a] - w1 * s1[a], c2[a] - w2 * s2[a]
        b0, b1, b2 = c0[b] + w0 * s0[b], c1[b] + w1 * s1[b], c2[b] + w2 * s2[b]
        m0, m1, m2 = abs(a0) - f0, abs(a1) - f1, abs(a2) - f2
        after_a = (m0 * m0 if m0 > 0 else 0.0) + (m1 * m1 if m1 > 0 else 0.0)
        after_a += m2 * m2 if m2 > 0 else 0.0
        m0, m1, m2 = abs(b0) - f0, abs(b1) - f1, abs(b2) - f2
        after_b = (m0 * m0 if m0 > 0 else 0.0) + (m1 * m1 if m1 > 0 else 0.0)
        after_b += m2 * m2 if m2 > 0 else 0.0
        if penalty[a] + penalty[b] - after_a - after_b > _LEAST_GAIN:
            c0[a], c1[a], c2[a], penalty[a] = a0, a1, a2, after_a
            c0[b], c1[b], c2[b], penalty[b] = b0, b1, b2, after_b
            chosen.append(i)
    off[:] = (c0, c1, c2)[:rows]
    return chosen


def _helpful_in_general(
    weight: Floats, old: Rows, new: Rows, off: Floats, scale: Floats, aim: Floats
) -> list[int]:
    """The same for any number of resources."""
    penalty, dead = _beyond(off, aim).sum(axis=0), aim[:, 0]
    chosen = []
    for i, (a, b) in enumerate(zip(old.tolist(), new.tolist(), strict=True)):
        at_a = off[:, a] - weight[:, i] * scale[:, a]
        at_b = off[:, b] + weight[:, i] * scale[:, b]
        after_a, after_b = (_beyond(at, dead).sum() for at in (at_a, at_b))
        if penalty[a] + penalty[b] - after_a - after_b > _LEAST_GAIN:
            off[:, a], penalty[a], off[:, b], penalty[b] = at_a, after_a, at_b, after_b
            chosen.append(i)
    return chosen


def unmet(
    layout: Layout, shares: LedShares, *, handed_over: bool = False
) -> tuple[Infeasible, ...]:
    """Live brokers outside their leader shares at the end; they have no replica that could change
    that.

    :param handed_over: whether leadership was handed over for min_leaders after that.
    """
    load = shares.load(layout.rows[:, 0])
    return tuple(
        Infeasible(
            Subject.of_broker(layout.arrays.brokers.ids[b]),
            Obstacle.MIN_LEADERS_FIRST if handed_over else Obstacle.NO_LEADER_CHANGE,
            wanted=float(round(shares.share[k, b])),
            nearest=float(load[k, b]),
            resource=LED[k],
        )
        for k, b in np.argwhere(shares.outside(load) & layout.arrays.brokers.live).tolist()
    )
