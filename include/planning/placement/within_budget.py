"""Which partitions get their places where a movement budget does not pay for all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from include.domain.array_types import Floats, Ints

Costs = Floats
"""(2, n) bytes and replicas that each of n partitions copies."""


def _parts_of(budget: Floats, costs: Costs) -> Floats:
    """(n,) the part of the budget that each takes, of bytes or of copies: the larger one."""
    parts: Floats = (costs / np.maximum(budget, 1)[:, None]).max(axis=0)
    return parts


def affordable(
    budget: Floats,
    partitions: Ints,
    least: Callable[[], Costs],
    order: Callable[[Floats], Ints],
) -> Ints:
    """Those of the partitions that the budget pays for.

    They are chosen before any is placed: those that stay take no room, and weigh where they are.

    :param budget: (2,) bytes and replicas that may be copied; infinite = any number.
    :param least: what they cost where the spread is even. Where disks allow no even spread, more
        replicas stay where they are: then they cost less.
    :param order: by the (n,) parts of the budget that they take, which are taken first: indexes.
    """
    if not np.isfinite(budget).any():
        return partitions
    costs = least()
    bytes_left, copies_left = budget.tolist()
    size_bytes, copies = costs.tolist()
    taken = []
    for at in order(_parts_of(budget, costs)).tolist():
        if size_bytes[at] <= bytes_left and copies[at] <= copies_left:
            bytes_left -= size_bytes[at]
            copies_left -= copies[at]
            taken.append(at)
    chosen: Ints = partitions[np.sort(np.array(taken, np.int64))]
    return chosen
