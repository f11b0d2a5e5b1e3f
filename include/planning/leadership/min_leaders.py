"""A minimum of leaders per broker for named topics: leaders change first, replicas only then.

Within a topic, leadership is handed on along a path of brokers. A broker that leads too few
partitions takes over one of which it has a replica. The leader that it replaces takes over another
one in the same way. The path ends at a broker that leads more than its minimum. Such paths find as
many leaders as any order of the replicas could. Where they end, the smallest replica
is copied that opens one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from include.domain.array_types import NONE, Floats, Ints, Mask, Rows
from include.domain.plan.figures import LeaderMinimums
from include.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from include.domain.request.request import ReassignmentRequest
from include.domain.resources import Resource
from include.planning.model.arrays import ClusterArrays
from include.planning.model.in_sync import may_lead
from include.planning.model.layout import Layout
from include.planning.model.scope import topics_named

Chooser = Callable[[Ints, int], tuple[int, int] | None]
"""Of partitions, which is copied to a broker, and from which place of its row; None = none can."""


@dataclass(frozen=True)
class MinLeaders:
    """What is asked for, of T topics.

    :param topics: (T,) index of each into ``ClusterArrays.topics``; ``partitions``: of each.
    :param asked: (T,) leaders per broker; ``least``: as far as the topic has partitions for it.
    :param brokers: (T, B) that are to lead so many: of those that take part, the ones that the
        topic's broker set has.
    """

    topics: Ints
    partitions: tuple[Ints, ...]
    asked: Ints
    least: Ints
    brokers: Mask

    @classmethod
    def of(
        cls, arrays: ClusterArrays, request: ReassignmentRequest, brokers: Mask
    ) -> MinLeaders | None:
        """What a request asks for; None where it asks for nothing.

        :raises InvalidRequestError: a name that does not exist, or a pattern that matches nothing.
        """
        if not request.min_leaders or not brokers.any():
            return None
        asked = np.zeros(len(arrays.topics), np.int64)
        for name, number in request.min_leaders.items():
            chosen = topics_named(arrays, (name,))
            asked[chosen] = np.maximum(asked[chosen], number)
        topics = np.flatnonzero(asked)
        order = np.argsort(arrays.topic_of, kind="stable")
        ends = np.searchsorted(arrays.topic_of[order], [topics, topics + 1])
        partitions = tuple(order[start:end] for start, end in ends.T.tolist())
        led = np.array([int((arrays.rows[of, 0] != NONE).sum()) for of in partitions], np.int64)
        lead: Mask = np.broadcast_to(brokers, (len(topics), len(brokers)))
        if arrays.limits is not None:
            lead = lead & arrays.limits.allowed[arrays.limits.group_of[topics]]
        least = np.minimum(asked[topics], led // np.maximum(lead.sum(axis=1), 1))
        return cls(topics, partitions, asked[topics], least, lead)

    def led(self, rows: Rows) -> Ints:
        """(T, B) partitions of each topic that each broker leads."""
        count = self.brokers.shape[-1]
        led = np.zeros((len(self.topics), count), np.int64)
        for t, of in enumerate(self.partitions):
            leaders = rows[of, 0]
            led[t] = np.bincount(leaders[leaders != NONE], minlength=count)
        return led

    def lacking(self, rows: Rows) -> Ints:
        """(T, B) leaders that brokers lack of what their topics have partitions for."""
        lacking: Ints = np.maximum(self.least[:, None] - self.led(rows), 0) * self.brokers
        return lacking

    def infeasible(self, arrays: ClusterArrays) -> tuple[Infeasible, ...]:
        """Topics with too few partitions, whatever is planned."""
        return tuple(
            Infeasible(
                Subject(SubjectKind.MIN_LEADERS, arrays.topics[int(topic)]),
                Obstacle.TOO_FEW_PARTITIONS,
                wanted=int(asked),
                nearest=int(least),
                resource=Resource.LEADERS,
            )
            for topic, asked, least in zip(self.topics, self.asked, self.least, strict=True)
            if least < asked
        )

    def missed(self, layout: Layout, takes: Mask, *, cut_by_budget: bool) -> tuple[Infeasible, ...]:
        """Brokers that lead too few of a topic in the end.

        :param takes: (B,) to which replicas may be copied.
        """
        rows, arrays, notes = layout.rows, layout.arrays, []
        led = self.led(rows)
        for t, b in np.argwhere(self.lacking(rows)).tolist():
            why = Obstacle.BUDGET if cut_by_budget else Obstacle.NO_MOVE
            if not takes[b]:
                why = Obstacle.NO_LEADER_CHANGE
            subject = Subject(
                SubjectKind.MIN_LEADERS,
                arrays.topics[int(self.topics[t])],
                int(arrays.brokers.ids[b]),
            )
            wanted, nearest = int(self.least[t]), int(led[t, b])
            notes.append(Infeasible(subject, why, wanted, nearest, Resource.LEADERS))
        return tuple(notes)

    def figures(self, layout: Layout, copied: Iterable[int]) -> LeaderMinimums:
        """For the summary."""
        partitions = np.fromiter(copied, np.int64)
        return LeaderMinimums(
            topics=len(self.topics),
            lacking_before=int(self.lacking(layout.home).sum()),
            lacking_after=int(self.lacking(layout.rows).sum()),
            bytes_copied=int(layout.size[partitions].sum()),
            replicas_copied=len(partitions),
        )


@dataclass
class Keeper:
    """Hands leadership over, in place, until brokers lead their minimums.

    :param movable: (P,) partitions that may change.
    :param choose: which replica is copied where no change of leader does; None = none is.
    :ivar copied: partition → the broker that one was copied to.
    """

    layout: Layout
    minimums: MinLeaders
    movable: Mask
    choose: Chooser | None = None
    copied: dict[int, int] = field(default_factory=dict)

    def run(self) -> None:
        """All topics of which some broker leads too few."""
        for t in np.flatnonzero(self.minimums.lacking(self.layout.rows).any(axis=1)).tolist():
            _Topic(self, t).run()


class _Topic:
    """One topic: who leads its partitions, and who could."""

    def __init__(self, keeper: Keeper, t: int) -> None:
        self._keeper, self._rows = keeper, keeper.layout.rows
        minimums = keeper.minimums
        of = minimums.partitions[t]
        self._partitions = of[keeper.movable[of] & (self._rows[of, 0] != NONE)]
        self._floor = np.where(minimums.brokers[t], minimums.least[t], 0).tolist()
        self._led = minimums.led(self._rows)[t].tolist()
        everywhere = self._rows[:, 0]
        self._total = np.bincount(
            everywhere[everywhere != NONE], minlength=len(self._floor)
        ).tolist()
        self._index()

    def _index(self) -> None:
        """Which partitions each broker may lead."""
        arrays, rows = self._keeper.layout.arrays, self._rows[self._partitions]
        able = may_lead(arrays, self._partitions, rows) & arrays.brokers.live[rows]
        self._can: dict[int, list[int]] = {}
        for p, row, allowed in zip(
            self._partitions.tolist(), rows.tolist(), able.tolist(), strict=True
        ):
            for broker, may in zip(row, allowed, strict=True):
                if may:
                    self._can.setdefault(broker, []).append(p)

    def run(self) -> None:
        floor, led = self._floor, self._led
        for broker in range(len(floor)):
            while led[broker] < floor[broker] and self._gets_one(broker):
                pass
        if self._keeper.choose is None:
            return
        for broker in range(len(floor)):
            while led[broker] < floor[broker] and self._copies_one(broker):
                while led[broker] < floor[broker] and self._gets_one(broker):
                    pass

    def _gets_one(self, broker: int) -> bool:
        """One more for a broker, along the shortest path to one that leads more than enough; of
        several, to the one that leads most of all topics.
        """
        came: dict[int, tuple[int, int]] = {broker: (NONE, NONE)}
        layer = [broker]
        while layer:
            further: list[int] = []
            for taker in layer:
                for p in self._can.get(taker, ()):
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
        old, place = int(row[0]), int(np.flatnonzero(row == broker)[0])
        row[1 : place + 1] = row[:place].copy()
        row[0] = broker
        for broker_of, change in ((old, -1), (broker, 1)):
            self._led[broker_of] += change
            self._total[broker_of] += change

    def _copies_one(self, broker: int) -> bool:
        """Copy a replica to a broker that it leads by then; whether there is any."""
        if self._keeper.choose is None:
            return False
        giving = self._giving()
        rows = self._rows[self._partitions]
        given = np.isin(rows[:, 0], giving) & ~(rows == broker).any(axis=1)
        given &= ~np.isin(self._partitions, list(self._keeper.copied))
        chosen = self._keeper.choose(self._partitions[given], broker)
        if chosen is None:
            return False
        p, place = chosen
        old = int(self._rows[p, 0])
        self._keeper.layout.move(p, place, broker)
        self._keeper.copied[p] = broker
        if place:
            self._hand_over(p, broker)
        else:
            for who, change in ((old, -1), (broker, 1)):
                self._led[who] += change
                self._total[who] += change
        self._index()
        if self._led[old] < self._floor[old]:
            self._gets_one(old)
        return True

    def _giving(self) -> list[int]:
        """Brokers that lead more than enough, or would get another one for what they give."""
        giving = {b for b, led in enumerate(self._led) if led > self._floor[b]}
        grew = True
        while grew:
            more = {
                b
                for b, partitions in self._can.items()
                if b not in giving and any(int(self._rows[p, 0]) in giving for p in partitions)
            }
            giving |= more
            grew = bool(more)
        return sorted(giving)


def cheapest(
    layout: Layout,
    violations: Callable[[Ints, Rows], Ints],
    takes: Mask,
    weights: Floats,
    bands: tuple[Floats, Floats],
    left: Floats,
) -> Chooser:
    """Choose the copy that takes brokers least beyond their bands, of these the smallest.

    Within caps and broker sets. What is chosen counts as copied by the next choice.

    :param violations: of partitions and their rows, of the spread rule; none may get worse.
    :param weights: (K, P) of a replica; ``bands``: (K, B) least and most of each broker.
    :param left: (2,) bytes and replicas that the budget still pays for; reduced, in place.
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

    def choose(partitions: Ints, broker: int) -> tuple[int, int] | None:
        if not takes[broker] or not len(partitions) or left[1] < 1:
            return None
        at, place = np.nonzero(rows[partitions] != NONE)
        p = partitions[at]
        size = layout.size[p]
        home = (layout.home[p] == broker).any(axis=1)
        fits = home | (layout.incoming[broker] + size <= layout.room[broker])
        fits &= layout.may_take(broker, p)
        away = (layout.home[p] == rows[p, place][:, None]).any(axis=1)
        ok = np.flatnonzero(fits & (size <= left[0]) & away)
        at, place, p, size = at[ok], place[ok], p[ok], size[ok]
        after = rows[p].copy()
        after[np.arange(len(p)), place] = broker
        ok = np.flatnonzero(violations(p, after) <= violations(p, rows[p]))
        place, p, size = place[ok], p[ok], size[ok]
        if not len(p):
            return None
        gone, here = rows[p, place].astype(np.int64), np.full(len(p), broker)
        worse = off(load[:, gone] - weights[:, p], gone) - off(load[:, gone], gone)
        worse += off(load[:, here] + weights[:, p], here) - off(load[:, here], here)
        best = int(np.lexsort((place == 0, p, size, np.round(worse, 12)))[0])
        left[:] -= (float(size[best]), 1.0)
        load[:, gone[best]] -= weights[:, p[best]]
        load[:, broker] += weights[:, p[best]]
        return int(p[best]), int(place[best])

    return choose
