"""Single leader changes that bring brokers closer to their shares, until there is none."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.leadership.preferred_leaders import promote
from rehome.planning.placement.topic_counts import TopicCounts

MOST_CHANGES = 200
"""Leader changes that are made one by one; each ranks all others anew."""

_LEAST_GAIN = 1e-9
"""In shares: less is rounding."""


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
    rows: Rows, partitions: Ints, able: Mask, shares: LeaderShares, counts: TopicCounts | None
) -> None:
    """Change leaders one by one, in place: each time the one that brings brokers closest.

    :param rows: (P, R) replicas of all partitions; ``partitions``: (n,) that may change.
    :param able: (n, R) which of their replicas may lead.
    :param counts: leaders of topics, which must not get worse; None = they may be led in any way.
    """
    load, able = shares.load(rows[:, 0]), able.copy()
    able[:, 0] = False
    for _ in range(MOST_CHANGES):
        beyond = shares.beyond_by(np.arange(load.shape[1]), load)
        near = np.flatnonzero(((beyond > 0)[rows[partitions]] & (rows[partitions] != NONE)).any(1))
        some = partitions[near]
        gains = _gains(rows[some], shares.weights[:, some], shares, load, beyond)
        allowed = able[near]
        if counts is not None and len(some):
            allowed &= counts.moving(some[:, None], rows[some, :1], rows[some]) <= 0
        gains = np.where(allowed, gains, 0.0)
        if not gains.size or gains.max() <= _LEAST_GAIN:
            return
        at, position = np.unravel_index(int(gains.argmax()), gains.shape)
        p, one, place = some[[at]], near[[at]], np.array([position])
        old, new = rows[p, 0], rows[p, place]
        load[:, old] -= shares.weights[:, p]
        load[:, new] += shares.weights[:, p]
        if counts is not None:
            counts.move(p, old, new)
        able[one, 0] = True
        promote(rows, p, place)
        promote(able, one, place)
        able[one, 0] = False


def _gains(
    rows: Rows, weight: Floats, shares: LeaderShares, load: Floats, beyond: Floats
) -> Floats:
    """(n, R) by how much brokers come closer, in shares, if each replica leads."""
    old = rows[:, 0]
    leaves = beyond[old] - shares.beyond_by(old, load[:, old] - weight)
    arrives = beyond[rows] - shares.beyond_by(rows, load[:, rows] + weight[:, :, None])
    gains: Floats = leaves[:, None] + arrives
    return gains
