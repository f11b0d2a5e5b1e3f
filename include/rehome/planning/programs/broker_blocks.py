"""Split brokers into blocks that are each a scaled-down copy of the domain.

A block is solved by itself, so its surpluses must cancel out in every resource, and its mix of
givers, receivers and large brokers must be that of the domain. Brokers are dealt to blocks by their
surplus of the first resource, in serpentine order. Then pairs of different blocks are swapped as
long as that brings the sums of the blocks closer to each other.
"""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Floats, Ints

_LEAST_GAIN = 1e-9
"""The least improvement of a swap, in squared shares."""


def similar_blocks(surplus: Floats, share: Floats, most: int) -> list[Ints]:
    """Positions of brokers, block by block; ascending within a block.

    :param surplus: (K, n) load above the share; negative below it.
    :param share: (n,) of the first resource. Both are in shares of the mean broker.
    :param most: brokers of a block at most.
    """
    count = -(-surplus.shape[1] // most)
    of = _dealt(surplus[0], count)
    if count > 1:
        _trade(np.vstack([surplus, np.maximum(surplus, 0), share]), of)
    return [np.flatnonzero(of == block) for block in range(count)]


def _dealt(surplus: Floats, count: int) -> Ints:
    """(n,) block of each broker."""
    turn = np.arange(len(surplus)) % (2 * count)
    of = np.empty(len(surplus), np.int64)
    of[np.argsort(-surplus, kind="stable")] = np.minimum(turn, 2 * count - 1 - turn)
    return of


def _trade(features: Floats, of: Ints) -> None:
    """Swap brokers between blocks, best pair first; changes ``of``.

    The improvement of a swap is the change of the sum of all blocks' squared sums.
    """
    features = features - features.mean(axis=1, keepdims=True)
    blocks = int(of.max()) + 1
    sums: Floats = np.stack([np.bincount(of, feature, blocks) for feature in features])
    while True:
        more, change = sums[:, of], np.zeros((len(of), len(of)))
        for feature, held in zip(features, more, strict=True):  # one order of sums anywhere
            gained = feature[None, :] - feature[:, None]
            change += gained * (held[:, None] - held[None, :] + gained)
        change[of[:, None] == of[None, :]] = 0.0
        one, other = divmod(int(change.argmin()), len(of))
        if change[one, other] > -_LEAST_GAIN:
            return
        gained = features[:, other] - features[:, one]
        sums[:, of[one]] += gained
        sums[:, of[other]] -= gained
        of[one], of[other] = of[other], of[one]
