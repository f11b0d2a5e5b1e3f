"""The search of a rebalance: every broker into its box, with few bytes moved.

Everything is a sequence of steps that each lower the penalty, which is the number of bytes by
which brokers are outside their boxes:

1. *shed and fill*: brokers give up replicas above a level chosen per domain, largest first and
   never too many; these go, largest first, to the roomiest valid broker;
2. *polish*: for each broker that is still outside, the step that removes the most penalty per
   byte copied: push a replica away, pull one in, or swap two;
3. *undo*: moved replicas go home where that leaves all boxes as well met.

It ends when no push, pull or swap helps, so planning again on the result plans nothing.
"""

from __future__ import annotations

import numpy as np

from include.planning.arrays import NONE, Floats, Ints, Mask
from include.planning.layout import Layout
from include.planning.placement import Placer
from include.planning.racks import RackTree
from include.planning.targets import Targets

BATCH = 256
"""Candidates whose spread is checked at once."""

CHECKED = 16_384
"""Candidates of one scan that are checked before it gives up, best first."""

SWAPS_PER_BROKER = 256
"""Of these, the least that each partner of a swap puts forward."""

SWAPPED = 256
"""Replicas of a broker, evenly spaced by size, that are tried in swaps."""

ROUNDS = 4
"""Rounds of search and repair of the racks of what has moved."""


class Balancer:
    """Rebalances a layout into boxes.

    :param partitions: (P,) that may move.
    :param brokers: (B,) that give and take replicas.
    :param capacity: (B,) relative size of the brokers.
    """

    def __init__(
        self,
        layout: Layout,
        tree: RackTree,
        targets: Targets,
        *,
        partitions: Mask,
        brokers: Mask,
        capacity: Floats,
    ) -> None:
        self._layout = layout
        self._tree = tree
        self._low, self._high, self._share = targets.low, targets.high, targets.share
        self._domain = targets.domain
        self._partitions = partitions
        self._gives = brokers
        takes = brokers & layout.arrays.brokers.takes
        self._takers: Ints = tree.order[takes[tree.order]]
        self._capacity = capacity
        self._width = layout.rows.shape[1]
        self._uneven = tree.violations(layout.rows)
        self._slots = _SlotsByBroker(layout, partitions)

    def run(self) -> None:
        """Search until nothing helps, repairing the racks of partitions that move anyway."""
        for _ in range(ROUNDS):
            self._shed_and_fill()
            self._polish()
            self._undo()
            self._polish()
            if not self._repair():
                return

    def penalty(self) -> Ints:
        """(B,) bytes by which each broker is outside its box."""
        return self._penalty(np.arange(len(self._low)), self._layout.load)

    def _penalty(self, brokers: Ints, load: Ints) -> Ints:
        over = load - self._high[brokers]
        under = self._low[brokers] - load
        outside: Ints = np.maximum(np.maximum(over, under), 0)
        return outside

    def _gain(self, source: Ints, target: Ints, size: Ints) -> Ints:
        """Penalty removed by moving ``size`` bytes from one broker to another; broadcasts."""
        load = self._layout.load
        gain: Ints = (
            self._penalty(source, load[source])
            - self._penalty(source, load[source] - size)
            + self._penalty(target, load[target])
            - self._penalty(target, load[target] + size)
        )
        return gain

    # ---------------------------------------------------------------- validity

    def _valid(self, slots: Ints, targets: Ints) -> Mask:
        """(n,) whether the replica in each slot may go to its target."""
        partition, place = slots // self._width, slots % self._width
        rows = self._layout.rows[partition]
        rows[np.arange(len(rows)), place] = targets
        even = self._tree.violations(rows) <= self._uneven[partition]
        home = (self._layout.home[partition] == targets[:, None]).any(axis=1)
        size = self._layout.size[partition]
        roomy = self._layout.incoming[targets] + size <= self._layout.room[targets]
        valid: Mask = even & (home | roomy)
        return valid

    def _cost(self, slots: Ints, targets: Ints | None = None) -> Ints:
        """(n,) bytes a move adds to the plan: none for a replica that is away from home."""
        partition = slots // self._width
        broker = self._layout.rows.ravel()[slots]
        at_home = (self._layout.home[partition] == broker[:, None]).any(axis=1)
        cost = np.where(at_home, self._layout.size[partition], 0)
        if targets is not None:
            returns = (self._layout.home[partition] == targets[:, None]).any(axis=1)
            cost = np.where(returns, 0, cost)
        return cost

    def _apply(self, slot: int, target: int) -> None:
        partition, place = divmod(int(slot), self._width)
        self._layout.move(partition, place, int(target))
        self._uneven[partition] = self._tree.violations(self._layout.rows[[partition]])[0]
        self._slots.arrived(int(slot), int(target))

    # ---------------------------------------------------------------- shed and fill

    def _shed_and_fill(self) -> None:
        for domain in np.unique(self._domain[self._gives]):
            brokers = np.flatnonzero(self._gives & (self._domain == domain))
            wanted = self._wanted(brokers)
            pool = [self._shed(int(b), int(w)) for b, w in zip(brokers, wanted, strict=True)]
            slots = np.concatenate(pool)
            size = self._layout.size[slots // self._width]
            level = dict(zip(brokers.tolist(), wanted.tolist(), strict=True))
            takers = self._takers[np.isin(self._takers, brokers)]
            room = np.array([level[b] for b in takers.tolist()], np.int64)
            for slot in slots[np.argsort(-size, kind="stable")]:
                self._fill(int(slot), takers, room)

    def _wanted(self, brokers: Ints) -> Ints:
        """(n,) load each broker of a domain should end with: inside its box, moving the least.

        Loads clipped into their boxes rarely add up to what there is. The brokers inside
        their boxes then give or take as well, down or up to one level relative to their shares.
        """
        load, share = self._layout.load[brokers], self._share[brokers].astype(float)
        low, high = self._low[brokers], self._high[brokers]
        clipped, total = np.clip(load, low, high), int(load.sum())
        bottom, top = 0.0, 4.0
        takes_more = int(clipped.sum()) < total
        for _ in range(60):
            level = (bottom + top) / 2
            if self._at_level(clipped, level * share, low, high, takes_more).sum() < total:
                bottom = level
            else:
                top = level
        return self._at_level(clipped, top * share, low, high, takes_more)

    @staticmethod
    def _at_level(clipped: Ints, level: Floats, low: Ints, high: Ints, raises: bool) -> Ints:
        wanted = (
            np.minimum(high, np.maximum(clipped, level))
            if raises
            else (np.maximum(low, np.minimum(clipped, level)))
        )
        return wanted.astype(np.int64)

    def _shed(self, broker: int, wanted: int) -> Ints:
        """Slots a broker gives up: the largest replicas that together do not exceed its surplus."""
        surplus = int(self._layout.load[broker]) - wanted
        if surplus <= 0:
            return np.zeros(0, np.int64)
        slots = self._slots.on(broker)
        size = self._layout.size[slots // self._width]
        order = np.argsort(-size, kind="stable")
        slots, size = slots[order], size[order]
        taken, start = [], 0
        while start < len(slots) and surplus > 0 and size[start] > 0:
            start = max(start, int(np.searchsorted(-size, -surplus)))
            fit = int(np.searchsorted(np.cumsum(size[start:]), surplus, side="right"))
            if not fit:
                break
            taken.append(slots[start : start + fit])
            surplus -= int(size[start : start + fit].sum())
            start += fit
        return np.concatenate(taken) if taken else np.zeros(0, np.int64)

    def _fill(self, slot: int, takers: Ints, wanted: Ints) -> None:
        """Move one replica to the taker furthest below its wanted load, if that helps."""
        size = self._layout.size[slot // self._width]
        source = self._layout.rows.ravel()[slot]
        room = wanted - self._layout.load[takers]
        gain = self._gain(np.array(source), takers, size)
        order = np.argsort(-room, kind="stable")
        order = order[gain[order] > 0]
        for start in range(0, len(order), 32):
            targets = takers[order[start : start + 32]]
            valid = self._valid(np.full(len(targets), slot), targets)
            if valid.any():
                self._apply(slot, int(targets[valid.argmax()]))
                return

    # ---------------------------------------------------------------- polish

    def _polish(self) -> None:
        """Push, pull and swap until no broker outside its box can be helped."""
        helped = True
        while helped:
            helped = False
            stuck = np.zeros(len(self._low), bool)
            while True:
                penalty = np.where(self._gives & ~stuck, self.penalty(), 0)
                if not penalty.any():
                    break
                broker = int((penalty / np.maximum(self._share, 1)).argmax())
                if self._help(broker):
                    helped = True
                else:
                    stuck[broker] = True

    def _help(self, broker: int) -> bool:
        if self._layout.load[broker] > self._high[broker]:
            moved = self._push(broker)
        else:
            moved = self._pull(broker)
        return moved or self._swap(broker)

    def _push(self, broker: int) -> bool:
        slots = self._slots.on(broker)
        size = self._layout.size[slots // self._width]
        targets = self._takers[self._takers != broker]
        gain = self._gain(np.array(broker), targets[None, :], size[:, None])
        score = gain / (self._cost(slots)[:, None] + 1)
        best = _best(score.ravel())
        return self._first_valid(slots[best // len(targets)], targets[best % len(targets)])

    def _pull(self, broker: int) -> bool:
        if broker not in self._takers:
            return False
        slots = self._slots.all()
        source = self._layout.rows.ravel()[slots]
        slots, source = slots[source != broker], source[source != broker]
        size = self._layout.size[slots // self._width]
        gain = self._gain(source, np.array(broker), size)
        slots, gain = slots[gain > 0], gain[gain > 0]
        best = _best(gain / (self._cost(slots) + 1))
        return self._first_valid(slots[best], np.full(len(best), broker))

    def _first_valid(self, slots: Ints, targets: Ints) -> bool:
        for start in range(0, min(len(slots), CHECKED), BATCH):
            some = slice(start, start + BATCH)
            valid = np.flatnonzero(self._valid(slots[some], targets[some]))
            if len(valid):
                self._apply(int(slots[some][valid[0]]), int(targets[some][valid[0]]))
                return True
        return False

    def _swap(self, broker: int) -> bool:
        """Exchange a replica with another broker's, by the best penalty removed per byte."""
        if broker not in self._takers:
            return False
        mine = self._sample(broker)
        limit = max(SWAPS_PER_BROKER, CHECKED // max(1, len(self._takers) - 1))
        found: list[tuple[Floats, Ints, Ints]] = []
        for other in self._takers[self._takers != broker].tolist():
            theirs = self._sample(other)
            size = self._layout.size[mine // self._width][:, None]
            back = self._layout.size[theirs // self._width][None, :]
            gain = self._gain(np.array(broker), np.array(other), size - back)
            cost = self._cost(mine)[:, None] + self._cost(theirs)[None, :] + 1
            score = (gain / cost).ravel()
            best = _best(score, limit)
            found.append((score[best], mine[best // len(theirs)], theirs[best % len(theirs)]))
        if not found:
            return False
        score, mine, theirs = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(-score, kind="stable")[:CHECKED]
        return self._first_valid_swap(mine[order], theirs[order])

    def _first_valid_swap(self, mine: Ints, theirs: Ints) -> bool:
        flat = self._layout.rows.ravel()
        for start in range(0, len(mine), BATCH):
            a, b = mine[start : start + BATCH], theirs[start : start + BATCH]
            valid = self._valid(a, flat[b].astype(np.int64)) & self._valid(
                b, flat[a].astype(np.int64)
            )
            valid &= a // self._width != b // self._width
            if valid.any():
                first = int(valid.argmax())
                there, here = int(flat[b[first]]), int(flat[a[first]])
                self._apply(int(a[first]), there)
                self._apply(int(b[first]), here)
                return True
        return False

    def _sample(self, broker: int) -> Ints:
        slots = self._slots.on(broker)
        if len(slots) <= SWAPPED:
            return slots
        order = np.argsort(self._layout.size[slots // self._width], kind="stable")
        return slots[order[np.linspace(0, len(slots) - 1, SWAPPED).astype(np.int64)]]

    # ---------------------------------------------------------------- undo and repair

    def _undo(self) -> None:
        """Send moved replicas home, largest first, where no box is met less well for it."""
        rows, home = self._layout.rows, self._layout.home
        away = np.flatnonzero((rows != home).ravel() & (home != NONE).ravel())
        size = self._layout.size[away // self._width]
        for slot in away[np.argsort(-size, kind="stable")].tolist():
            partition, place = divmod(slot, self._width)
            source, back = int(rows[partition, place]), int(home[partition, place])
            if source == back or back in rows[partition].tolist():
                continue
            gain = self._gain(np.array(source), np.array(back), self._layout.size[partition])
            if gain >= 0 and self._valid(np.array([slot]), np.array([back]))[0]:
                self._apply(slot, back)

    def _repair(self) -> bool:
        """Spread the moved partitions that were uneven before; whether there were any.

        Not when only some brokers take part: the repair might need the others.
        """
        if not self._gives[self._tree.hosts].all():
            return False
        moved = self._layout.changed()
        uneven = moved[self._uneven[moved] > 0]
        placer = Placer(self._layout, self._tree, self._capacity)
        for partition in uneven.tolist():
            before = self._layout.rows[partition].copy()
            placer.complete(partition, int((before != NONE).sum()))
            for place in np.flatnonzero(self._layout.rows[partition] != before).tolist():
                slot = partition * self._width + place
                self._slots.arrived(slot, int(self._layout.rows[partition, place]))
        self._uneven[uneven] = self._tree.violations(self._layout.rows[uneven])
        return bool(len(uneven))


class _SlotsByBroker:
    """Which slots of partitions that may move each broker holds, kept up as replicas move."""

    def __init__(self, layout: Layout, partitions: Mask) -> None:
        self._flat = layout.rows.ravel()
        movable = np.repeat(partitions, layout.rows.shape[1]) & (self._flat != NONE)
        self._movable: Ints = np.flatnonzero(movable)
        owner = self._flat[self._movable]
        order = np.argsort(owner, kind="stable")
        self._sorted: Ints = self._movable[order]
        self._start = np.searchsorted(owner[order], np.arange(len(layout.load) + 1))
        self._arrived: dict[int, set[int]] = {}

    def all(self) -> Ints:
        return self._movable

    def arrived(self, slot: int, broker: int) -> None:
        self._arrived.setdefault(broker, set()).add(slot)

    def on(self, broker: int) -> Ints:
        slots = self._sorted[self._start[broker] : self._start[broker + 1]]
        if broker in self._arrived:
            slots = np.union1d(slots, np.array(sorted(self._arrived[broker]), np.int64))
        held: Ints = slots[self._flat[slots] == broker]
        return held


def _best(score: Floats, limit: int = CHECKED) -> Ints:
    """Indexes of the highest positive scores, best first; ties by index."""
    positive = np.flatnonzero(score > 0)
    if len(positive) > limit:
        cut = np.partition(score[positive], -limit)[-limit]
        positive = positive[score[positive] >= cut]
    best: Ints = positive[np.argsort(-score[positive], kind="stable")][:limit]
    return best
