"""Single leader changes that bring brokers closer to their shares, until there is none."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.leadership.kept_leaders import KeptLeaders
from rehome.planning.leadership.preferred_leaders import promote
from rehome.planning.placement.topic_counts import TopicCounts

MOST_CHANGES = 200
"""Leader changes that are made one by one; each ranks all others anew."""

_LEAST_GAIN = 1e-9
"""In shares: less is rounding."""

_OF_TOPICS = 1e-6
"""Gain, in shares, of a leader by which a topic comes closer to its bands: less than of nearly
any that brings brokers closer.
"""


class LeaderShares(Protocol):
    """What brokers are to lead: the LedShares of the balance of leaders."""

    @property
    def weights(self) -> Floats:
        """(L, P) weight of leading each partition."""

    def load(self, leaders: Rows) -> Floats:
        """(L, B) led by each broker."""

    def beyond_by(self, brokers: Ints | Rows, load: Floats) -> Floats:
        """(n, …) how far brokers that lead (L, n, …) are off their shares beyond the tolerance."""


def change_single_leaders(
    rows: Rows,
    partitions: Ints,
    able: Mask,
    shares: LeaderShares,
    counts: TopicCounts | None,
    kept: KeptLeaders | None = None,
    *,
    evens_topics: bool = False,
) -> None:
    """Change leaders one by one, in place: each time the one that brings brokers closest.

    :param rows: (P, R) replicas of all partitions; ``partitions``: (n,) that may change.
    :param able: (n, R) which of their replicas may lead.
    :param counts: leaders of topics, which must not get worse; None = they may be led in any way.
    :param kept: caps and minimums; None = none.
    :param evens_topics: also make changes that bring topics closer and brokers no further off.
    """
    of_topics = _OF_TOPICS if evens_topics else 0.0
    changes = _SingleChanges(rows, partitions, able, shares, counts, kept, of_topics)
    for _ in range(MOST_CHANGES):
        if not changes.make_best():
            return


class _SingleChanges:
    """All leader changes, with what each gains.

    A change only concerns partitions that the old or the new leader holds: only these are scored
    again.

    :ivar replicas: (n, R) replicas, in any order: leader changes only change that.
    :ivar gains: (n, R) by how much brokers come closer if a replica leads, 0 where it may not.
    """

    def __init__(
        self,
        rows: Rows,
        partitions: Ints,
        able: Mask,
        shares: LeaderShares,
        counts: TopicCounts | None,
        kept: KeptLeaders | None,
        of_topics: float,
    ) -> None:
        self._rows, self._partitions, self._shares = rows, partitions, shares
        self._counts, self._kept, self._of_topics = counts, kept, of_topics
        self._replicas = rows[partitions]
        self._able = able.copy()
        self._able[:, 0] = False
        self._load = shares.load(rows[:, 0])
        self._beyond = shares.beyond_by(np.arange(self._load.shape[1]), self._load)
        self._gains = np.zeros(able.shape)
        concerned = (self._beyond > 0)[self._replicas]
        if counts is not None and of_topics:
            concerned |= counts.uneven(partitions)[:, None]
        self._score(concerned & (self._replicas != NONE))

    def make_best(self) -> bool:
        """Make the change that gains most. Returns whether any helps."""
        if not self._gains.size or self._gains.max() <= _LEAST_GAIN:
            return False
        at, position = np.unravel_index(int(self._gains.argmax()), self._gains.shape)
        self._make(np.array([at]), np.array([position]))
        return True

    def _make(self, one: Ints, place: Ints) -> None:
        p = self._partitions[one]
        old, new = self._rows[p, 0], self._rows[p, place]
        self._load[:, old] -= self._shares.weights[:, p]
        self._load[:, new] += self._shares.weights[:, p]
        if self._counts is not None:
            self._counts.move(p, old, new)
        if self._kept is not None:
            self._kept.change(p, old, new)
        self._able[one, 0] = True
        promote(self._rows, p, place)
        promote(self._able, one, place)
        self._able[one, 0] = False
        both = np.concatenate([old, new]).astype(np.int64)
        self._beyond[both] = self._shares.beyond_by(both, self._load[:, both])
        self._score((self._replicas == old) | (self._replicas == new))

    def _score(self, concerned: Mask) -> None:
        """Score the leader changes of partitions of which any of these replicas (n, R) changes."""
        near = np.flatnonzero(concerned.any(axis=1))
        some = self._partitions[near]
        rows = self._rows[some]
        gains = _gains(rows, self._shares.weights[:, some], self._shares, self._load, self._beyond)
        allowed = self._able[near]
        if self._counts is not None and len(some):
            further = self._counts.moving(some[:, None], rows[:, :1], rows)
            allowed &= further <= 0
            gains -= self._of_topics * further * (gains > -_LEAST_GAIN)
        if self._kept is not None:
            allowed &= self._kept.allow(some, rows)
        self._gains[near] = np.where(allowed, gains, 0.0)


def _gains(
    rows: Rows, weight: Floats, shares: LeaderShares, load: Floats, beyond: Floats
) -> Floats:
    """(n, R) by how much brokers come closer, in shares, if each replica leads."""
    old = rows[:, 0]
    leaves = beyond[old] - shares.beyond_by(old, load[:, old] - weight)
    arrives = beyond[rows] - shares.beyond_by(rows, load[:, rows] + weight[:, :, None])
    gains: Floats = leaves[:, None] + arrives
    return gains
