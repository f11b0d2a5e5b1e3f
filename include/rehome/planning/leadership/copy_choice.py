"""Which replica is copied for min_leaders where no leader change helps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.model.layout import Layout

Chooser = Callable[[Ints, int], tuple[int, int] | None]
"""Among partitions: the one to copy to a broker, and the position that it replaces; None = none can
be copied.
"""

_BATCH = 64
"""Copies that the spread rule is checked for in one batch, best first."""


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
