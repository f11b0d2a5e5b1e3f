"""Select moves that can be made together without taking a broker out of a band."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask

LEAVE_OUT_ROUNDS = 100
"""The most rounds of leaving moves out."""


def compatible(
    source: Ints, targets: Ints, weight: Floats, load: Floats, low: Floats, high: Floats
) -> Mask:
    """(n,) moves that together take no broker out of a band, or further out. Where all would, the
    heaviest moves of that broker are left out.

    :param weight: (K, n) load of the moved replicas; ``load``, ``low``, ``high``: (K, B) of
        brokers, infinite where there is no limit.
    """
    kept = np.ones(len(source), bool)
    for _ in range(LEAVE_OUT_ROUNDS):
        before = kept.copy()
        for row, more in enumerate(weight):
            for brokers in (targets, source):
                net = _net(source[kept], targets[kept], more[kept], len(load[row]))
                over = np.where(net > 0, load[row] + net - high[row], 0)
                under = np.where(net < 0, low[row] - load[row] - net, 0)
                due = over if brokers is targets else under
                mine = np.flatnonzero(kept & (due[brokers] > 0))
                kept[mine[_heaviest(brokers[mine], more[mine], due)]] = False
        if (kept == before).all():
            return kept
    return np.zeros(len(source), bool)


def _net(source: Ints, targets: Ints, weight: Floats, brokers: int) -> Floats:
    """(B,) what these moves add to each broker."""
    arrives, leaves = (np.bincount(side, weight, brokers) for side in (targets, source))
    net: Floats = arrives.astype(float) - leaves
    return net


def _heaviest(brokers: Ints, weight: Floats, due: Floats) -> Ints:
    """Indexes of the heaviest moves of each broker, as many as it takes to reach ``due``."""
    order = np.lexsort((-weight, brokers))
    before = np.cumsum(weight[order]) - weight[order]
    before -= before[np.searchsorted(brokers[order], brokers[order])]
    chosen: Ints = order[before < due[brokers[order]]]
    return chosen
