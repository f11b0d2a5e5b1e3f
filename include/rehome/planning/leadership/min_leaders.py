"""min_leaders: a minimum of leaders per broker for named topics. Copies only where leader changes
do not suffice.

Within a topic this is a bipartite matching, improved along augmenting paths. A broker that leads
too few partitions takes over one of which it has a replica. The leader that it replaces takes over
another one in the same way. The path ends at a broker that leads more than its minimum. Augmenting
paths find as many leaders as any order of the replicas could. If there is no path, the smallest
replica is copied that opens one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.domain.plan.figures import LeaderMinimums
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.planning.leadership.copy_choice import Chooser
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.in_sync import may_lead
from rehome.planning.model.layout import Layout
from rehome.planning.model.scope import topics_named


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
        led = self.minimums.count_led_of(t, self.layout.rows)
        for broker in np.flatnonzero(led < kept).tolist():
            while led[broker] < kept[broker] and (path := self._way_back(t, broker, led > kept)):
                for p in path:
                    before, now = int(self.layout.origin[p, 0]), int(self.layout.rows[p, 0])
                    if led[now] > kept[now] and self._may_return(p):
                        self._return(p)
                        led[[before, now]] += 1, -1

    def _way_back(self, t: int, broker: int, spares: Mask) -> list[int]:
        """Partitions that a broker gets a leader by if they return one after the other, on the
        shortest path: the first one from a broker that spares it. Empty = there is none.

        :param spares: (B,) brokers that lead more than they need.
        """
        of = self.minimums.partitions[t]
        before, now = self.layout.origin[of, 0], self.layout.rows[of, 0]
        paths: dict[int, list[int]] = {broker: []}
        layer = [broker]
        while layer:
            further: list[int] = []
            for taker in layer:
                mine = (before == taker) & ~np.isin(now, list(paths)) & (now != NONE)
                for p, giver in zip(of[mine].tolist(), now[mine].tolist(), strict=True):
                    if giver in paths or not self._may_return(p):
                        continue
                    paths[giver] = [p, *paths[taker]]
                    if spares[giver]:
                        return paths[giver]
                    further.append(giver)
            layer = further
        return []

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
