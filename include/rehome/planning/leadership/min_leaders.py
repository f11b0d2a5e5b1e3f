"""min_leaders: a minimum of leaders per broker for named topics. Copies only where leader changes
do not suffice.

Within a topic this is a bipartite matching, improved along augmenting paths. A broker that leads
too few partitions takes over one of which it has a replica. The leader that it replaces takes over
another one in the same way. The path ends at a broker that leads more than its minimum. Augmenting
paths find as many leaders as any order of the replicas could. If there is no path, the smallest
replica is copied that opens one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.plan.figures import LeaderMinimums
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.in_sync import may_lead
from rehome.planning.model.layout import Layout
from rehome.planning.model.scope import topics_named

Chooser = Callable[[Ints, int], tuple[int, int] | None]
"""Among partitions: the one to copy to a broker, and the position that it replaces; None = none can
be copied.
"""

_BATCH = 64
"""Copies that the spread rule is checked for in one batch, best first."""


@dataclass(frozen=True)
class RequestedMinLeaders:
    """The requested minimums of T topics.

    :param topics: (T,) index of each into ``ClusterArrays.topics``; ``partitions``: of each.
    :param requested: (T,) leaders per broker; ``least``: the same, limited by the topic's
        partitions.
    :param brokers: (T, B) that the minimum applies to: of those that take part, the ones in the
        topic's broker set.
    """

    topics: Ints
    partitions: tuple[Ints, ...]
    requested: Ints
    least: Ints
    brokers: Mask

    @classmethod
    def of(
        cls, arrays: ClusterArrays, request: ReassignmentRequest, brokers: Mask
    ) -> RequestedMinLeaders | None:
        """The minimums of a request; None if it has none.

        :raises InvalidRequestError: a name that does not exist, or a pattern that matches nothing.
        """
        if not request.min_leaders or not brokers.any():
            return None
        requested = np.zeros(len(arrays.topics), np.int64)
        for name, number in request.min_leaders.items():
            chosen = topics_named(arrays, (name,))
            requested[chosen] = np.maximum(requested[chosen], number)
        topics = np.flatnonzero(requested)
        order = np.argsort(arrays.topic_of, kind="stable")
        ends = np.searchsorted(arrays.topic_of[order], [topics, topics + 1])
        partitions = tuple(order[start:end] for start, end in ends.T.tolist())
        led = np.array([int((arrays.rows[of, 0] != NONE).sum()) for of in partitions], np.int64)
        lead: Mask = np.broadcast_to(brokers, (len(topics), len(brokers)))
        if arrays.limits is not None:
            lead = lead & arrays.limits.allowed[arrays.limits.group_of[topics]]
        least = np.minimum(requested[topics], led // np.maximum(lead.sum(axis=1), 1))
        return cls(topics, partitions, requested[topics], least, lead)

    def count_led(self, rows: Rows) -> Ints:
        """(T, B) partitions of each topic that each broker leads."""
        led = np.zeros((len(self.topics), self.brokers.shape[-1]), np.int64)
        for t in range(len(self.topics)):
            led[t] = self.count_led_of(t, rows)
        return led

    def count_led_of(self, t: int, rows: Rows) -> Ints:
        """(B,) partitions of one topic that each broker leads."""
        leaders = rows[self.partitions[t], 0]
        return np.bincount(leaders[leaders != NONE], minlength=self.brokers.shape[-1])

    def lacking(self, rows: Rows) -> Ints:
        """(T, B) leaders that brokers lack to ``least``."""
        lacking: Ints = np.maximum(self.least[:, None] - self.count_led(rows), 0) * self.brokers
        return lacking

    def infeasible(self, arrays: ClusterArrays) -> tuple[Infeasible, ...]:
        """Topics that have too few partitions for the requested minimum."""
        return tuple(
            Infeasible(
                Subject(SubjectKind.MIN_LEADERS, arrays.topics[int(topic)]),
                Obstacle.TOO_FEW_PARTITIONS,
                wanted=int(requested),
                nearest=int(least),
                resource=Resource.LEADERS,
            )
            for topic, requested, least in zip(self.topics, self.requested, self.least, strict=True)
            if least < requested
        )

    def missed_notes(
        self, layout: Layout, takes: Mask, *, cut_by_budget: bool
    ) -> tuple[Infeasible, ...]:
        """Brokers that lead too few partitions of a topic at the end.

        :param takes: (B,) to which replicas may be copied.
        """
        rows, arrays, notes = layout.rows, layout.arrays, []
        led = self.count_led(rows)
        for t, b in np.argwhere(self.lacking(rows)).tolist():
            why = Obstacle.BUDGET if cut_by_budget else Obstacle.NO_MOVE
            if not takes[b]:
                why = Obstacle.NO_LEADER_CHANGE
            subject = Subject(
                SubjectKind.MIN_LEADERS,
                arrays.topics[int(self.topics[t])],
                int(arrays.brokers.ids[b]),
            )
            minimum, nearest = int(self.least[t]), int(led[t, b])
            notes.append(Infeasible(subject, why, minimum, nearest, Resource.LEADERS))
        return tuple(notes)

    def figures(self, layout: Layout, copied: Iterable[int]) -> LeaderMinimums:
        """For the summary."""
        partitions = np.fromiter(copied, np.int64)
        return LeaderMinimums(
            topics=len(self.topics),
            lacking_before=int(self.lacking(layout.origin).sum()),
            lacking_after=int(self.lacking(layout.rows).sum()),
            bytes_copied=int(layout.size[partitions].sum()),
            replicas_copied=len(partitions),
        )


@dataclass
class MinLeadersRepair:
    """Changes leaders, in place, until brokers lead their minimums.

    :param movable: (P,) partitions that may change.
    :param choose: which replica is copied if no leader change helps; None = never copy.
    :ivar copied: partition → the broker that got a copy.
    """

    layout: Layout
    minimums: RequestedMinLeaders
    movable: Mask
    choose: Chooser | None = None
    copied: dict[int, int] = field(default_factory=dict)

    def run(self) -> None:
        """Handle all topics of which some broker leads too few."""
        minimums, before = self.minimums, self.minimums.count_led(self.layout.origin)
        for t in np.flatnonzero(minimums.lacking(self.layout.rows).any(axis=1)).tolist():
            least = np.where(minimums.brokers[t], minimums.least[t], 0)
            kept = np.minimum(before[t], least)
            _Topic(self, t, least).run()
            if (minimums.count_led_of(t, self.layout.rows) < kept).any():
                _Topic(self, t, kept).run()  # what a broker had comes first
                self._take_back(t, kept)

    def _take_back(self, t: int, kept: Ints) -> None:
        """Put partitions back where they were if a broker led them, needs a leader of their topic,
        and there is no other for it.

        :param kept: (B,) leaders of the topic that brokers had and need.
        """
        layout, of = self.layout, self.minimums.partitions[t]
        led = self.minimums.count_led_of(t, layout.rows)
        for p in of[led[layout.origin[of, 0]] < kept[layout.origin[of, 0]]].tolist():
            before, now = int(layout.origin[p, 0]), int(layout.rows[p, 0])
            if led[before] < kept[before] and led[now] > kept[now] and self._may_return(p):
                self._return(p)
                led[[before, now]] += 1, -1

    def _may_return(self, p: int) -> bool:
        """Whether caps, broker sets and what is in sync let a partition be as it was."""
        origin, rows = self.layout.origin[[p]], self.layout.rows[[p]]
        back = origin[is_new(origin, rows)]
        leads = may_lead(self.layout.arrays, np.array([p]), origin)[0, 0]
        return bool(leads and self.movable[p] and self.layout.within_limits(p)[back].all())

    def _return(self, p: int) -> None:
        self.copied.pop(p, None)
        self.layout.put_back(p)


class _Topic:
    """One topic: the leader of each partition, and who else could lead it.

    :param floor: (B,) leaders that each broker needs.
    """

    def __init__(self, repair: MinLeadersRepair, t: int, floor: Ints) -> None:
        self._repair, self._rows = repair, repair.layout.rows
        minimums = repair.minimums
        of = minimums.partitions[t]
        self._partitions = of[repair.movable[of] & (self._rows[of, 0] != NONE)]
        self._floor = floor.tolist()
        self._led = minimums.count_led_of(t, self._rows).tolist()
        everywhere = self._rows[:, 0]
        self._total = np.bincount(
            everywhere[everywhere != NONE], minlength=len(self._floor)
        ).tolist()
        self._of, self._able = self._may_lead(self._partitions)
        order = np.argsort(self._able, kind="stable")
        ends = np.searchsorted(self._able[order], np.arange(1, len(self._floor)))
        self._can = np.split(self._of[order], ends)

    def _may_lead(self, partitions: Ints) -> tuple[Ints, Rows]:
        """Pairs of partition and a broker that may lead it, by partition."""
        arrays, rows = self._repair.layout.arrays, self._rows[partitions]
        able = may_lead(arrays, partitions, rows) & arrays.brokers.live[rows]
        at, position = np.nonzero(able)
        return partitions[at], rows[at, position]

    def _update(self, p: int) -> None:
        """Who may lead a partition whose replicas have changed, and which each broker may lead."""
        first, last = np.searchsorted(self._of, [p, p + 1])
        for broker in self._able[first:last].tolist():
            self._can[broker] = self._can[broker][self._can[broker] != p]
        of, able = self._may_lead(np.array([p]))
        for broker in able.tolist():
            can = self._can[broker]
            self._can[broker] = np.insert(can, np.searchsorted(can, p), p)
        self._of, self._able = (
            np.concatenate([pairs[:first], new, pairs[last:]])
            for pairs, new in ((self._of, of), (self._able, able))
        )

    def run(self) -> None:
        floor, led = self._floor, self._led
        for broker in range(len(floor)):
            while led[broker] < floor[broker] and self._gets_one(broker):
                pass
        if self._repair.choose is None:
            return
        for broker in range(len(floor)):
            while led[broker] < floor[broker] and self._copies_one(broker):
                while led[broker] < floor[broker] and self._gets_one(broker):
                    pass

    def _gets_one(self, broker: int) -> bool:
        """One more leader for a broker, along the shortest path to a broker above its minimum; of
        several, the one that leads most over all topics.
        """
        came: dict[int, tuple[int, int]] = {broker: (NONE, NONE)}
        layer = [broker]
        while layer:
            further: list[int] = []
            for taker in layer:
                for p in self._can[taker].tolist():
                    giver = int(self._rows[p, 0])
                    if giver not in came:
                        came[giver] = p, taker
                        further.append(giver)
            givers = [b for b in further if self._led[b] > self._floor[b]]
            if givers:
                giver = max(givers, key=lambda b: (self._total[b], -b))
                while giver != broker:
                    p, taker = came[giver]
                    self._hand_over(p, taker)
                    giver = taker
                return True
            layer = further
        return False

    def _hand_over(self, p: int, broker: int) -> None:
        row = self._rows[p]
        old, position = int(row[0]), int(np.flatnonzero(row == broker)[0])
        row[1 : position + 1] = row[:position].copy()
        row[0] = broker
        for broker_of, change in ((old, -1), (broker, 1)):
            self._led[broker_of] += change
            self._total[broker_of] += change

    def _copies_one(self, broker: int) -> bool:
        """Copy a replica to a broker and make it the leader; whether there was one to copy."""
        if self._repair.choose is None:
            return False
        giving = self._giving()
        rows = self._rows[self._partitions]
        given = np.isin(rows[:, 0], giving) & ~(rows == broker).any(axis=1)
        given &= ~np.isin(self._partitions, list(self._repair.copied))
        chosen = self._repair.choose(self._partitions[given], broker)
        if chosen is None:
            return False
        p, position = chosen
        old = int(self._rows[p, 0])
        self._repair.layout.move(p, position, broker)
        self._repair.copied[p] = broker
        if position:
            self._hand_over(p, broker)
        else:
            for who, change in ((old, -1), (broker, 1)):
                self._led[who] += change
                self._total[who] += change
        self._update(p)
        if self._led[old] < self._floor[old]:
            self._gets_one(old)
        return True

    def _giving(self) -> Ints:
        """Brokers above their minimum, or that would get another partition in return."""
        giving: Mask = np.array(self._led) > np.array(self._floor)
        leaders = self._rows[self._of, 0]
        while True:
            reached = giving.copy()
            reached[self._able[giving[leaders]]] = True
            if (reached == giving).all():
                return np.flatnonzero(giving)
            giving = reached


def cheapest(
    layout: Layout,
    violations: Callable[[Ints, Rows], Ints],
    takes: Mask,
    gives: Mask,
    weights: Floats,
    bands: tuple[Floats, Floats],
    left: Floats,
) -> Chooser:
    """Returns a function that chooses the copy which takes brokers least outside their bands; of
    equals, the smallest.

    Caps and broker sets are kept. The next choice counts earlier ones as copied.

    :param violations: of partitions and their rows, of the spread rule; none may get worse.
    :param takes: (B,) brokers that may get replicas; ``gives``: that may lose some.
    :param weights: (K, P) of a replica; ``bands``: (K, B) least and most of each broker.
    :param left: (2,) bytes and replicas left in the budget; reduced in place.
    """
    rows = layout.rows
    low, high = bands
    layout.refresh()
    load = np.stack([layout.arrays.load(rows, weight) for weight in weights]).astype(float)

    def off(load: Floats, brokers: Ints) -> Floats:
        scale = 1 / np.maximum(np.where(np.isinf(high), 1, high)[:, brokers], 1)
        beyond = np.maximum(load - high[:, brokers], low[:, brokers] - load)
        total: Floats = (np.maximum(beyond, 0) * scale).sum(axis=0)
        return total

    def first_spread(p: Ints, position: Ints, broker: int) -> int | None:
        """Index of the first copy that the spread rule allows; None = none."""
        for start in range(0, len(p), _BATCH):
            some, at = p[start : start + _BATCH], position[start : start + _BATCH]
            after = rows[some].copy()
            after[np.arange(len(some)), at] = broker
            allowed = violations(some, after) <= violations(some, rows[some])
            if allowed.any():
                return start + int(allowed.argmax())
        return None

    def choose(partitions: Ints, broker: int) -> tuple[int, int] | None:
        if not takes[broker] or not len(partitions) or left[1] < 1:
            return None
        at, position = np.nonzero(rows[partitions] != NONE)
        p = partitions[at]
        size = layout.size[p]
        origin = (layout.origin[p] == broker).any(axis=1)
        fits = origin | (layout.incoming[broker] + size <= layout.headroom[broker])
        fits &= layout.may_take(broker, p)
        at_origin = (layout.origin[p] == rows[p, position][:, None]).any(axis=1)
        at_origin &= gives[rows[p, position]]
        ok = np.flatnonzero(fits & (size <= left[0]) & at_origin)
        position, p, size = position[ok], p[ok], size[ok]
        gone, here = rows[p, position].astype(np.int64), np.full(len(p), broker)
        worse = off(load[:, gone] - weights[:, p], gone) - off(load[:, gone], gone)
        worse += off(load[:, here] + weights[:, p], here) - off(load[:, here], here)
        order = np.lexsort((position == 0, p, size, np.round(worse, 12)))
        first = first_spread(p[order], position[order], broker)
        if first is None:
            return None
        best = int(order[first])
        left[:] -= (float(size[best]), 1.0)
        load[:, gone[best]] -= weights[:, p[best]]
        load[:, broker] += weights[:, p[best]]
        return int(p[best]), int(position[best])

    return choose
