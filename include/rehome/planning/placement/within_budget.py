"""Which partitions are changed when the movement budget does not suffice for all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rehome.domain.array_types import Floats, Ints

Costs = Floats
"""(2, n) bytes and replicas that each of n partitions copies."""


def _parts_of(budget: Floats, costs: Costs) -> Floats:
    """(n,) the fraction of the budget that each uses: of bytes or of copies, whichever is
    larger.
    """
    parts: Floats = (costs / np.maximum(budget, 1)[:, None]).max(axis=0)
    return parts


def affordable(
    budget: Floats,
    partitions: Ints,
    least: Callable[[], Costs],
    order: Callable[[Floats], Ints],
) -> Ints:
    """Choose the partitions that fit into the budget.

    They are chosen before any is placed, so that partitions that stay count where they are.

    :param budget: (2,) bytes and replicas that may be copied; infinite = any number.
    :param least: their cost if the spread is even. Where disks allow no even spread, more replicas
        stay and the cost is lower.
    :param order: from the (n,) fractions of the budget, the order in which partitions are taken
        (indexes).
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
