"""Load bands: how much of each resource a broker should hold, share ± tolerance.

A fair share is proportional to capacity. Shares are distributed down the rack tree from the root
(water-filling) and clipped at each node to what is possible there: the spread rule sets a minimum
and a maximum of replicas below a node, replicas out of scope stay, and disks are finite. A clip of
more than the tolerance is reported as infeasible: no plan can meet that target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rehome.domain.array_types import NONE, UNLIMITED, Floats, Ints, Mask
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.resources import LOOSE, PLACED, Resource
from rehome.planning.model.arrays import broker_sums
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree

SHARE_PASSES = 60
"""Halvings of an interval that the level of a water-filling lies in."""


@dataclass(frozen=True)
class LoadBands:
    """The band of each broker in each resource that moves with replicas (K rows, see PLACED).

    :param share: (K, B) target load; ``low`` ≤ ``share`` ≤ ``high``.
    :param low, high: (K, B) share minus and plus the tolerance; 0 and infinite for a resource
        without tolerance. Both equal the load of a broker that does not take part.
    :param domain: (B,) domain number: the total load of a domain is fixed, no plan can change it.
    :param fair: (K, B) share if every replica could be moved anywhere.
    :param infeasible: fair shares that had to be clipped by more than the tolerance.
    """

    share: Floats
    low: Floats
    high: Floats
    domain: Ints
    fair: Floats
    infeasible: tuple[Infeasible, ...]


def placed_targets(
    layout: Layout,
    tree: RackTree,
    *,
    weights: Floats,
    partitions: Mask,
    brokers: Mask,
    capacity: Floats,
    tolerances: tuple[float, ...],
    one_sided: bool = False,
) -> LoadBands:
    """Bands for a rebalance.

    :param weights: (K, P) weight of one replica in each resource.
    :param partitions: (P,) that may move.
    :param brokers: (B,) that take part; the others keep what they hold.
    :param capacity: (K, B) relative size of the brokers; 0 where one is to be emptied.
    :param tolerances: (K,) allowed deviation from the share, as fractions; infinite = any.
    :param one_sided: bands have no lower end for brokers that take part.
    """
    layers = [
        _Layer(layout, tree, partitions, brokers, weight, resource)
        for weight, resource in zip(weights, PLACED[: len(weights)], strict=True)
    ]
    bands = [
        layer.band(np.where(brokers, size, 0.0), tolerance)
        for layer, size, tolerance in zip(layers, capacity, tolerances, strict=True)
    ]
    share, low, high, fair, infeasible = zip(*bands, strict=True)
    return LoadBands(
        share=np.stack(share),
        low=np.where(brokers, 0.0, np.stack(low)) if one_sided else np.stack(low),
        high=np.stack(high),
        domain=layers[PLACED.index(Resource.REPLICAS)].domains(),
        fair=np.stack(fair),
        infeasible=tuple(item for items in infeasible for item in items),
    )


class _Layer:
    """One resource's shares over the rack tree."""

    def __init__(
        self,
        layout: Layout,
        tree: RackTree,
        partitions: Mask,
        brokers: Mask,
        weight: Floats,
        resource: Resource,
    ) -> None:
        self._layout, self._tree, self._brokers = layout, tree, brokers
        self._partitions, self._weight, self._resource = partitions, weight, resource
        self.load = broker_sums(layout.rows, weight, len(brokers))
        limits = layout.arrays.limits
        self._cap = np.full(len(brokers), np.inf)
        if limits is not None:
            self._cap = limits.placed[PLACED.index(resource)]

    @cached_property
    def _ends(self) -> tuple[list[Floats], list[Floats]]:
        """Per level, per node: the least and the most it can hold.

        A partition that may move has between ``tree.least`` and ``tree.most`` replicas in a node,
        and no fewer than lie there on brokers that keep theirs; all others stay. The current
        location of replicas that may move is ignored on purpose: so the targets stay the same after
        a plan was carried out.
        """
        least: list[Floats] = []
        most: list[Floats] = []
        spread = self._spread(self._partitions)
        for (low, high), stays, kept in zip(spread, *self._stays, strict=True):
            least.append(np.maximum(stays + low, kept))
            most.append(stays + high)
        self._limit_leaves(least[-1], most[-1])
        for level in range(self._tree.height - 1, -1, -1):
            parent, nodes = self._tree.parent[level + 1], len(least[level])
            below = [np.bincount(parent, ends[level + 1], nodes) for ends in (least, most)]
            least[level] = np.maximum(least[level], below[0])
            most[level] = np.maximum(np.minimum(most[level], below[1]), least[level])
        return least, most

    @cached_property
    def _stays(self) -> tuple[list[Floats], list[Floats]]:
        """Per level, per node: what replicas hold that may not move; and the same with all that
        brokers hold which keep theirs.
        """
        fixed = np.flatnonzero(~self._partitions)
        stays = broker_sums(self._layout.rows[fixed], self._weight[fixed], len(self._brokers))
        kept = np.where(self._brokers, stays, self.load)
        tree = self._tree
        levels = list(zip(tree.node, map(len, tree.capacity), strict=True))
        by_level: list[list[Floats]] = [
            [np.bincount(node, loads, nodes).astype(float) for node, nodes in levels]
            for loads in (stays, kept)
        ]
        return by_level[0], by_level[1]

    def _spread(self, partitions: Mask) -> list[tuple[Floats, Floats]]:
        """Per level, per node: the least and the most of these partitions that an even spread
        gives it.
        """
        tree, factor = self._tree, self._layout.arrays.replication_factor
        ends = [(np.zeros(len(nodes)), np.zeros(len(nodes))) for nodes in tree.capacity]
        for part, mine in tree.parts(partitions):
            of_count = np.bincount(factor * mine, self._weight)
            for count in np.flatnonzero(of_count):
                for (low, high), few, many in zip(ends, part.least, part.most, strict=True):
                    low += of_count[count] * few[count]
                    high += of_count[count] * many[count]
        return ends

    @cached_property
    def _spread_of_all(self) -> list[tuple[Floats, Floats]]:
        """The same of all partitions."""
        return self._spread(np.ones_like(self._partitions))

    def _limit_leaves(self, least: Floats, most: Floats) -> None:
        leaf, keeps, arrays = self._tree.node[-1], ~self._brokers, self._layout.arrays
        least[leaf[keeps]] = most[leaf[keeps]] = self.load[keeps]
        limit = np.full(len(keeps), float("inf"))
        if self._resource is Resource.BYTES:
            limit = self.load + np.minimum(self._layout.headroom, UNLIMITED)
        limit = np.minimum(limit, self._cap)
        limit = np.where(self._brokers & ~arrays.brokers.takes, self.load, limit)
        most[:] = np.maximum(np.minimum(most, limit), least)

    def domains(self) -> Ints:
        """(B,) number of each broker's deepest branch whose load no plan can change."""
        domain = np.zeros(len(self._brokers), np.int64)
        offset, (least, most) = 0, self._ends
        for level in range(1, self._tree.height):
            offset += len(least[level - 1])
            node = self._tree.node[level]
            forced = (least[level] == most[level])[node]
            if self._layout.arrays.limits is not None:
                # Caps, or sets that replicas lie outside of, may force another load than today's.
                node_loads = np.bincount(node, self.load, len(least[level]))
                forced &= (least[level] == node_loads)[node]
            domain = np.where(forced, offset + node, domain)
        return domain

    def band(
        self, capacity: Floats, tolerance: float
    ) -> tuple[Floats, Floats, Floats, Floats, tuple[Infeasible, ...]]:
        """(B,) share, low, high, fair share; and the nodes whose fair part is out of reach."""
        brokers, load = self._brokers, self.load
        fixed = np.where(brokers, 0, load)
        fair = fixed + capacity * _fraction(load.sum() - fixed.sum(), capacity.sum())
        if tolerance == LOOSE or not load.any():
            return self._below_caps(fixed, capacity, fair)
        share, infeasible = self._distribute(fixed, capacity, tolerance)
        least = np.minimum(share, self._oversized_set_apart(fixed, capacity, tolerance))
        unit = grain(share)
        low = np.where(brokers, np.floor(least * (1 - tolerance) / unit) * unit, load)
        high = np.where(brokers, np.ceil(share * (1 + tolerance) / unit) * unit, load)
        if self._resource is Resource.BYTES:
            high = np.minimum(high, np.maximum(load + self._layout.headroom, low))
        high = np.where(brokers, np.minimum(high, np.maximum(self._cap, self._ends[0][-1])), high)
        low = np.minimum(low, high)
        return np.clip(np.rint(share / unit) * unit, low, high), low, high, fair, infeasible

    def _below_caps(
        self, fixed: Floats, capacity: Floats, fair: Floats
    ) -> tuple[Floats, Floats, Floats, Floats, tuple[Infeasible, ...]]:
        """The same for a resource without tolerance: no band, unless a broker is above its cap.

        Then all brokers have bands up to their caps, so that the search does not try brokers that
        are full.
        """
        load, brokers = self.load, self._brokers
        low, anything = np.zeros(len(load)), np.full(len(load), float("inf"))
        if not (brokers & (load > self._cap)).any():
            return load, low, anything, fair, ()
        share, _ = self._distribute(fixed, capacity, 1.0)
        high = np.where(brokers, np.maximum(self._cap, self._ends[0][-1]), anything)
        return np.minimum(share, high), low, high, fair, ()

    def _oversized_set_apart(self, fixed: Floats, capacity: Floats, tolerance: float) -> Floats:
        """(B,) share of what is left after partitions that are larger than any broker's share.

        A broker with such a partition is above its share, and the others share the rest. The rest
        is computed as if the smallest brokers held these partitions, wherever they lie now: so the
        targets stay the same after a plan was carried out.
        """
        total, sizes = self.load.sum() - fixed.sum(), np.sort(capacity[capacity > 0])
        widest = sizes[-1:].sum() * _fraction(total, sizes.sum()) * (1 + tolerance) + 1
        oversized = self._partitions & (self._weight > widest)
        if not oversized.any():
            return np.full(len(capacity), float("inf"))
        replicas = (self._layout.rows[oversized] != NONE).sum(axis=1)
        rest = total - float((self._weight[oversized] * replicas).sum())
        return fixed + capacity * _fraction(max(rest, 0.0), sizes[int(replicas.sum()) :].sum())

    def _distribute(
        self, fixed: Floats, capacity: Floats, tolerance: float
    ) -> tuple[Floats, tuple[Infeasible, ...]]:
        tree, infeasible, (least, most) = self._tree, [], self._ends
        share = np.array([float(self.load.sum())])
        for level in range(1, tree.height + 1):
            nodes = len(least[level])
            weights: Floats = np.bincount(tree.node[level], capacity, nodes).astype(float)
            stays: Floats = np.bincount(tree.node[level], fixed, nodes).astype(float)
            below = np.zeros(nodes)
            for parent, children in enumerate(tree.children[level - 1]):
                low, high = least[level][children], most[level][children]
                part, base = weights[children], stays[children]
                below[children] = _water_fill(share[parent], base, part, low, high)
                fair = base + part * _fraction(share[parent] - base.sum(), part.sum())
                off = np.abs(below[children] - fair) > tolerance * fair + 1
                for i in np.flatnonzero(off & (part > 0) & ((fair > high) | (fair < low))):
                    child = int(children[i])
                    ends = (float(fair[i]), float(below[child]))
                    infeasible.append(self._clip(level, child, ends, capacity, fixed))
            share = below
        return share, tuple(infeasible)

    def _clip(
        self, level: int, node: int, ends: tuple[float, float], capacity: Floats, fixed: Floats
    ) -> Infeasible:
        """Why a node cannot have its fair share: the share is too large for it, or too small.

        :param ends: its fair share, and what it can have.
        :param fixed: (B,) what brokers keep: of those that take no part, all.
        """
        fair, nearest = ends
        too_much, amount, others = bool(fair > self._ends[1][level][node]), 0.0, 0.0
        broker = node if level == self._tree.height else NONE
        why: Obstacle | None = None
        if broker == NONE:
            why, amount = self._obstacle_of_rack(level, node, fair, too_much=too_much)
            members = np.flatnonzero((self._tree.node[level] == node) & self._brokers)
            broker = int(members[0]) if why is None and len(members) == 1 else NONE
            why = why or self._obstacle_within(members, fair, capacity[members])
        else:
            why = self._obstacle(broker, too_much=too_much)
        subject = Subject(SubjectKind.RACK, self._tree.name(level, node))
        if broker != NONE:
            subject = Subject.of_broker(self._layout.arrays.brokers.ids[broker])
            others = float(fixed[self._tree.node[level] == node].sum() - fixed[broker])
        return Infeasible(
            subject,
            why,
            wanted=float(round(fair - others)),
            nearest=float(round(nearest - others)),
            resource=self._resource,
            amount=amount,
        )

    def _obstacle_within(self, members: Ints, fair: float, capacity: Floats) -> Obstacle:
        """What limits the broker of a rack that is furthest from its part of the rack's share."""
        parts = fair * capacity / max(float(capacity.sum()), 1e-300)
        furthest = int(members[np.argmax(parts - self._ends[1][-1][members])])
        why = self._obstacle(furthest, too_much=True)
        alone = len(members) == 1 or why is not Obstacle.ONE_REPLICA_PER_BROKER
        return why if alone else Obstacle.RACKS_ALLOW_NO_MORE

    def _obstacle_of_rack(
        self, level: int, node: int, fair: float, *, too_much: bool
    ) -> tuple[Obstacle | None, float]:
        """The same of a rack: how many brokers it has, if an even spread of all partitions is the
        cause; or what replicas that may not move hold there; None = limits of its brokers.
        """
        least, most = (ends[node] for ends in self._spread_of_all[level])
        stays, kept = (loads[level][node] for loads in self._stays)
        brokers = float((self._tree.hosts & (self._tree.node[level] == node)).sum())
        if too_much:
            if most < fair:
                return Obstacle.RACKS_ALLOW_NO_MORE, brokers
            allowed = stays + self._spread(self._partitions)[level][1][node]
            return (Obstacle.RACKS_ALLOW_NO_MORE if allowed < fair else None), 0.0
        if least > fair:
            return Obstacle.RACKS_FORCE_MORE, brokers
        if kept > fair:
            return Obstacle.FIXED_REPLICAS, float(kept)
        return Obstacle.RACKS_FORCE_MORE, 0.0

    def _obstacle(self, broker: int, *, too_much: bool) -> Obstacle:
        """The same of a broker."""
        layout = self._layout
        if not too_much:
            return Obstacle.FIXED_REPLICAS
        if self._cap[broker] <= self._ends[1][-1][broker]:
            return Obstacle.CAP
        if not layout.arrays.brokers.takes[broker]:
            return Obstacle.TAKES_NO_REPLICAS
        full = layout.load[broker] + layout.headroom[broker] <= self._ends[1][-1][broker]
        if full and self._resource is Resource.BYTES:
            return Obstacle.DISK_FULL
        return Obstacle.ONE_REPLICA_PER_BROKER


def grain(share: Floats) -> float:
    """The unit that shares and bands are rounded to: 1, or for large shares a power of two below a
    billionth of their mean. So a plan does not depend on the unit of sizes.
    """
    return float(2.0 ** max(0, int(np.frexp(share.mean())[1]) - 31))


def _fraction(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _water_fill(total: float, base: Floats, weight: Floats, low: Floats, high: Floats) -> Floats:
    """Water-filling: hand ``total`` out as ``clip(base + level · weight, low, high)`` with one
    level for all.
    """
    bottom, top = 0.0, 1.0
    positive = weight > 0
    if positive.any():
        top = float((np.maximum(high - base, 0)[positive] / weight[positive]).max()) + 1.0
    for _ in range(100):
        level = (bottom + top) / 2
        if level in (bottom, top):
            break
        if np.minimum(np.maximum(base + level * weight, low), high).sum() < total:
            bottom = level
        else:
            top = level
    poured: Floats = np.clip(base + top * weight, low, high)
    return poured


def parts_by_weight(total: Floats, weight: Floats) -> Floats:
    """(T, n) the totals handed out by weight."""
    parts: Floats = total[:, None] * (weight / max(float(weight.sum()), 1e-300))
    return parts


def water_fill_each(
    total: Floats, base: Floats, weight: Floats, low: Floats, high: Floats
) -> Floats:
    """Water-filling: hand (T,) totals out as ``clip(base + level · weight, low, high)``, with one
    level for each topic.
    """
    poured = base + parts_by_weight(total - base.sum(axis=1), weight)
    off = np.flatnonzero(((poured < low) | (poured > high)).any(axis=1))
    if not len(off):
        return poured
    total, base, low, high = total[off], base[off], low[off], high[off]
    slack = np.where(weight > 0, np.maximum(high - base, 0) / np.maximum(weight, 1e-300), 0.0)
    bottom, top = np.zeros(len(off)), slack.max(axis=1) + 1
    for _ in range(SHARE_PASSES):
        level = (bottom + top) / 2
        short = np.clip(base + level[:, None] * weight, low, high).sum(axis=1) < total
        bottom, top = np.where(short, level, bottom), np.where(short, top, level)
    poured[off] = np.clip(base + top[:, None] * weight, low, high)
    return poured
