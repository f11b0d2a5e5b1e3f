"""The state of a rebalance search: rows, loads, bands, and which moves are allowed.

A *replica* is an index into the flattened (P, R) rows: ``partition · R + position``. Loads are
whole numbers stored as floats, so moves that cancel out restore exactly the same loads. *Excess* is
how far a load is outside its band, in shares.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rehome.domain.array_types import NONE, UNLIMITED, CellCounts, Floats, Ints, Mask, Rows
from rehome.planning.effort.optional_parts import FAST, Parts
from rehome.planning.effort.work import SearchWork
from rehome.planning.limits.cap_constraint import CapConstraint
from rehome.planning.model.arrays import broker_sums
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.model.packing import CopyPacking, PackedCopies
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.topic_bands import TopicBands
from rehome.planning.placement.rack_constraint import RackConstraint
from rehome.planning.placement.topic_counts import TopicCounts
from rehome.planning.search.replica_index import ReplicaIndex

LEAST_CHANGE = 1e-12
"""Of the excess: smaller changes count as none."""

EXCESS_DIGITS = 14
"""Digits to which excess is compared: sums in another order differ in later digits."""


@dataclass(frozen=True)
class Problem:
    """A rebalance problem.

    :param weights: (K, P) weight of one replica in each resource; the first one is bytes.
    :param partitions: (P,) that may move.
    :param gives: (B,) brokers that take part: they may give replicas up.
    :param takes: (B,) those of them that may receive replicas.
    :param leaving: (B,) those of them that must end empty.
    :param overhead_bytes: fixed cost of a move, added to its bytes.
    :param spread: bands of topics; None = no bands.
    :param parts: optional parts of the search that are in use.
    :param work: counts what the search does, and limits it.
    """

    layout: Layout
    tree: RackTree
    targets: LoadBands
    weights: Floats
    partitions: Mask
    gives: Mask
    takes: Mask
    leaving: Mask
    overhead_bytes: float
    spread: TopicBands | None = None
    parts: Parts = FAST
    work: SearchWork = field(default_factory=SearchWork)

    @property
    def further(self) -> bool:
        """Whether resources other than bytes, replicas and rate take part."""
        return len(self.weights) > 3


State = tuple[Rows, Floats, Floats, PackedCopies, CellCounts | None]
"""Rows, loads, incoming bytes, packing, and topic counts."""


class Search:
    """Moves replicas, and keeps loads, topic counts and disk usage up to date.

    :ivar load: (K, B) held under the rows as they are now.
    :ivar scale: (K, B) 1 / share, 0 where a resource has no band: makes loads of different
        resources comparable.
    :ivar topic_counts: replicas of each topic per broker; None if topics have no bands.
    :ivar strict: no trade may spread topics worse. Off for large clusters, which repair topics at
        the end.
    :ivar unit: one replica, in shares of a broker's replicas. A replica outside a topic's band
        counts as much as a replica outside a broker's band.
    """

    def __init__(self, problem: Problem) -> None:
        layout, targets = problem.layout, problem.targets
        self.problem, self.work = problem, problem.work
        self.rows, self.origin = layout.rows, layout.origin
        self.flat = self.rows.reshape(-1)
        self.width = self.rows.shape[1]
        self.weights = problem.weights
        self.low, self.high, self.share = targets.low, targets.high, targets.share
        banded = np.isfinite(targets.high) & problem.gives
        self.scale = np.where(banded, 1 / np.maximum(self.share, 1.0), 0.0)
        self._banded: list[int] = np.flatnonzero(self.scale.any(axis=1)).tolist()
        self.load = np.stack(
            [broker_sums(self.rows, weight, len(problem.gives)) for weight in self.weights]
        )
        bands = problem.spread
        self.topic_counts = (
            TopicCounts.of_replicas(bands, self.rows) if bands and not bands.leaders_only else None
        )
        self.strict = True
        replicas = (self.rows != NONE).sum() / max(int(problem.gives.sum()), 1)
        self.unit = 1 / max(float(replicas), 1.0)
        self.racks = RackConstraint(problem.tree, self.rows, movable=problem.partitions)
        self.receivers: Ints = problem.tree.order[problem.takes[problem.tree.order]]
        self._incoming = layout.incoming.astype(float)
        self._packing = CopyPacking(layout.headrooms)
        self._caps = CapConstraint.of(layout.arrays.limits, self.load, self.weights)
        self._limited = bool((layout.headroom[problem.takes] < UNLIMITED).any())
        self._index = ReplicaIndex(self.flat, problem.partitions, problem.gives)

    def on(self, broker: int) -> Ints:
        """The movable replicas that a broker holds."""
        return self._index.on(broker)

    def held_by(self, brokers: Ints) -> Ints:
        """The movable replicas that these brokers hold, ascending."""
        mine = np.zeros(len(self.problem.gives) + 1, bool)  # the last one is that of NONE
        mine[brokers] = self.problem.gives[brokers]
        replicas: Ints = np.flatnonzero(mine[self.rows] & self.problem.partitions[:, None])
        return replicas

    def holders(self, replicas: Ints) -> Ints:
        """(n,) the brokers that hold these replicas."""
        return self.flat[replicas].astype(np.int64)

    # ---------------------------------------------------------------- worth and price

    def excess(self, brokers: Ints | int | slice, load: Floats) -> Floats:
        """Excess of loads (K, n, …) on brokers (n, …), summed over resources."""
        low, high, scale = (
            side[:, brokers] if isinstance(brokers, slice) else side.take(brokers, axis=1)
            for side in (self.low, self.high, self.scale)
        )
        while low.ndim < load.ndim:
            low, high, scale = low[..., None], high[..., None], scale[..., None]
        outside = np.maximum(np.maximum(load - high, low - load), 0) * scale
        total: Floats = outside[0] + outside[1] + outside[2]
        for further in outside[3:]:
            total += further
        return total

    def outside(self) -> float:
        """Total excess: of all brokers that take part, and of topics."""
        total: float = (self.excess(slice(None), self.load) * self.problem.gives).sum()
        return total + self.unit * self.uneven()

    def uneven(self) -> int:
        """Total distance to the bands of topics, in replicas."""
        return self.topic_counts.outside() if self.topic_counts else 0

    def unmet_topics(self) -> Mask:
        """(B,) brokers that are outside of the band of some topic."""
        counts, unmet = self.topic_counts, np.zeros(len(self.problem.gives), bool)
        if counts is not None:
            unmet[counts.cells_outside() % counts.brokers] = True
        return unmet & self.problem.gives & ~self.problem.leaving

    def objective(self) -> tuple[float, float]:
        """Objective by which layouts of a small cluster are compared, minimised: excess, then
        cost.
        """
        return round(self.outside(), EXCESS_DIGITS), self.cost()

    def excess_change(self, brokers: Ints | int, more: Floats) -> Floats:
        """Change of excess when brokers hold more (K, …), each considered alone; broadcasts."""
        added = np.zeros(np.broadcast_shapes(np.shape(brokers), more.shape[1:]))
        self.work.score(added.size)
        for row in self._banded:
            load, low, high = (side[row].take(brokers) for side in (self.load, self.low, self.high))
            above, below = load - high, low - load
            after = np.maximum(above + more[row], below - more[row])
            np.maximum(after, 0, out=after)
            after -= np.maximum(np.maximum(above, below), 0)
            after *= self.scale[row].take(brokers)
            added += after
        return added

    def weight(self, replicas: Ints) -> Floats:
        """(K, n) load of these replicas."""
        loads: Floats = self.weights.take(replicas // self.width, axis=1)
        return loads

    def held_before(self, replicas: Ints, brokers: Ints) -> Mask:
        """Whether the brokers hold the partitions of these replicas in the snapshot; broadcasts."""
        origin = self.origin.take(replicas // self.width, axis=0)  # far faster than by origin[…]
        here: Mask = origin[..., 0] == brokers
        for position in range(1, self.width):
            here = here | (origin[..., position] == brokers)
        return here

    def price(self, replicas: Ints, brokers: Ints) -> Floats:
        """What moving adds to the plan's cost, in bytes; a replica that has moved already adds
        nothing.
        """
        size = self.weights[0].take(replicas // self.width) + self.problem.overhead_bytes
        copied = self.held_before(replicas, self.holders(replicas)) & ~self.held_before(
            replicas, brokers
        )
        price: Floats = np.where(copied, size, 0.0)
        return price

    # ---------------------------------------------------------------- what is allowed

    def fits(self, replicas: Ints, brokers: Ints) -> Mask:
        """Whether the disks of the brokers have space for the replicas; broadcasts."""
        if not self._limited:
            return np.ones(np.broadcast_shapes(replicas.shape, brokers.shape), bool)
        size = self.weights[0].take(replicas // self.width)
        allowed: Mask = self._packing.fit(brokers, size, self._incoming)
        allowed |= self.held_before(replicas, brokers)
        if self._packing.may_fit_better(brokers, allowed):
            self._packing.begin(self.rows, self.origin, self.problem.layout.size)
            allowed |= self._packing.fit(brokers, size, self._incoming)
        return allowed

    def fit_together(self, replicas: Ints, brokers: Ints, chosen: Mask) -> Mask:
        """(n,) of chosen replicas that each fit alone, those that also fit together; only one per
        broker that is nearly full.
        """
        if self._caps is not None:
            chosen = self._caps.admits_together(replicas // self.width, brokers, chosen)
        if not self._limited:
            return chosen
        copies = np.flatnonzero(chosen & ~self.held_before(replicas, brokers))
        size = self.weights[0].take(replicas[copies] // self.width)
        arrives = self._incoming + np.bincount(brokers[copies], size, len(self._incoming))
        tight = copies[(arrives > self._packing.least)[brokers[copies]]]
        fit = chosen.copy()
        fit[tight] = False
        fit[tight[np.unique(brokers[tight], return_index=True)[1]]] = True
        return fit

    def valid(self, replicas: Ints, brokers: Ints) -> Mask:
        """(n,) whether each replica may go to its broker: racks, disks, caps, and whether the
        broker receives at all.
        """
        partition, position = replicas // self.width, replicas % self.width
        valid: Mask = self.racks.admits(partition, position, brokers)
        willing = self.problem.takes[brokers]
        if not willing.all():
            valid &= willing | self.held_before(replicas, brokers)
        if self._caps is not None:
            valid &= self._caps.admits(partition, brokers)
        return valid & self.fits(replicas, brokers) if self._limited else valid

    def valid_one(self, replica: int, broker: int) -> bool:
        """The same for one replica and a broker that receives."""
        partition, position = divmod(replica, self.width)
        if not self.racks.admits_one(partition, position, broker):
            return False
        if self._caps is not None and not self._caps.admits_one(partition, broker):
            return False
        return not self._limited or self._fits_one(partition, broker)

    def _fits_one(self, partition: int, broker: int) -> bool:
        """Whether the disks of the broker have space for a replica of the partition."""
        packing, size = self._packing, self.weights[0, partition]
        incoming = self._incoming[broker]
        if packing.fits_one(broker, size, incoming) or broker in self.origin[partition].tolist():
            return True
        if packing.may_fit_one_better(broker):
            packing.begin(self.rows, self.origin, self.problem.layout.size)
        return packing.fits_one(broker, size, incoming)

    def spreads(self, replicas: Ints, brokers: Ints) -> Mask:
        """(n,) whether moving each replica to its broker spreads its topic no worse."""
        if self.topic_counts is None or not self.strict:
            return np.ones(len(replicas), bool)
        spreads: Mask = (
            self.topic_counts.moving(replicas // self.width, self.holders(replicas), brokers) <= 0
        )
        return spreads

    def spreads_one(self, replica: int, broker: int) -> bool:
        """The same for one replica."""
        if self.topic_counts is None or not self.strict:
            return True
        return (
            self.topic_counts.moving_one(replica // self.width, int(self.flat[replica]), broker)
            <= 0
        )

    def trade_spreads(self, give: Ints, take: Ints, broker: Ints | int, other: Ints) -> Mask:
        """(n,) whether trades spread topics no worse: ``give`` goes from the broker to the others,
        ``take`` comes back; NONE where nothing goes in that direction.
        """
        if self.topic_counts is None or not self.strict:
            return np.ones(len(give), bool)
        here = np.full(len(give), broker)
        return self.topic_counts.trading(give // self.width, take // self.width, here, other) <= 0

    def trade_spreads_one(self, give: int, take: int, broker: int, other: int) -> bool:
        """The same for one trade."""
        counts = self.topic_counts
        if counts is None or not self.strict:
            return True
        return counts.trading_one(give // self.width, take // self.width, broker, other) <= 0

    # ---------------------------------------------------------------- moving

    def copies(self) -> Ints:
        """The replicas that are copies: on a broker that has none of their partition in the
        snapshot.
        """
        origin = self.origin.reshape(-1)
        replicas = np.flatnonzero((self.flat != origin) & (origin != NONE) & (self.flat != NONE))
        return replicas[~self.held_before(replicas, self.holders(replicas))]

    def cost(self) -> float:
        """Bytes that are copied, with the overhead of each copy."""
        size = self.weights[0].take(self.copies() // self.width)
        return float((size + self.problem.overhead_bytes).sum())

    def copied_bytes(self) -> float:
        """Bytes that are copied."""
        return float(self._incoming.sum())

    def save(self) -> State:
        """The state as it is, for :meth:`restore`."""
        topic_replicas = self.topic_counts.replicas.copy() if self.topic_counts else None
        moved = self.flat.copy(), self.load.copy(), self._incoming.copy()
        return *moved, self._packing.save(), topic_replicas

    def restore(self, state: State) -> None:
        """Go back to a saved state."""
        self.flat[:], self.load[:], self._incoming[:], counts, topic_replicas = state
        self._packing.restore(counts)
        if self.topic_counts and topic_replicas is not None:
            self.topic_counts.replicas[:] = topic_replicas

    def move(self, replica: int, broker: int) -> None:
        """Put one replica on another broker."""
        partition, source = replica // self.width, int(self.flat[replica])
        self.load[:, source] -= self.weights[:, partition]
        if self.topic_counts:
            self.topic_counts.replicas[self.topic_counts.cell(partition, source)] -= 1
        self.put_one(replica, broker)

    def lift(self, replicas: Ints, sign: int = -1) -> None:
        """Subtract the load of replicas from their brokers (+1: add it back). See :meth:`put`."""
        brokers, partitions = self.flat[replicas], replicas // self.width
        for load, weight in zip(self.load, self.weights, strict=True):
            load += sign * np.bincount(brokers, weight[partitions], len(load))
        if self.topic_counts:
            np.add.at(
                self.topic_counts.replicas, self.topic_counts.cells(partitions, brokers), sign
            )

    def put_one(self, replica: int, broker: int) -> None:
        """Put one lifted replica on a broker."""
        partition, source = replica // self.width, int(self.flat[replica])
        weight, origin = self.weights[:, partition], self.origin[partition].tolist()
        self.load[:, broker] += weight
        if self.topic_counts:
            self.topic_counts.replicas[self.topic_counts.cell(partition, broker)] += 1
        if source not in origin:
            self._incoming[source] -= weight[0]
            if self._packing.on:
                self._packing.take(partition, source, int(weight[0]))
        if broker not in origin:
            self._incoming[broker] += weight[0]
            if self._packing.on:
                self._packing.put(partition, broker, int(weight[0]))
        self.flat[replica] = broker
        self._index.arrive_one(replica, broker)

    def put(self, replicas: Ints, brokers: Ints, *, few: bool = True) -> None:
        """Put lifted replicas on brokers.

        :param few: update the index one by one. False: rebuild it at the next use, which is quicker
            for many replicas; not allowed between :meth:`save` and :meth:`restore`.
        """
        partitions, left = replicas // self.width, self.holders(replicas)
        size, count = self.weights[0].take(partitions), len(self._incoming)
        copies = ~self.held_before(replicas, left)
        self._incoming -= np.bincount(left[copies], size[copies], count)
        self._packing.take_all(partitions[copies], left[copies], size[copies])
        self.flat[replicas] = brokers
        is_new = ~self.held_before(replicas, brokers)
        self._incoming += np.bincount(brokers[is_new], size[is_new], count)
        self._packing.put_all(partitions[is_new], brokers[is_new], size[is_new])
        self.lift(replicas, +1)
        if few:
            self._index.arrive(replicas, brokers)
        else:
            self._index.sort_again()
