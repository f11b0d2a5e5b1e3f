"""Bands of donors: an expansion takes from the fullest brokers, and from none more than down to its
share.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rehome.domain.array_types import Floats, Mask, Rows
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.model.topic_bands import TopicBands, band

LEAST_SHARE = 1e-9
"""Of a broker: one that is to hold nothing gives first."""


def with_donors(targets: LoadBands, load: Floats, donors: Mask, tolerances: Floats) -> LoadBands:
    """The bands of an expansion, from those of a rebalance of the same brokers.

    What the other brokers lack of their shares comes from the fullest donors: all of them above a
    level, relative to their shares, end there. A donor may end between its share less the tolerance
    (or what it holds, if that is less) and this level and the tolerance. The upper end is the level
    if the others end at their least, so planning again changes nothing.

    :param load: (K, B) before.
    :param donors: (B,) brokers that take part, and give only.
    :param tolerances: (K,) allowed deviation from the share; where a resource has none, a donor may
        hold what it holds.
    """
    share, low = targets.share.copy(), targets.low.copy()
    banded = np.isfinite(targets.high).all(axis=1) & np.isfinite(tolerances)
    stays = np.where(donors & ~banded[:, None], load, 0)
    high = np.maximum(targets.high, stays)
    for k in np.flatnonzero(banded).tolist():
        for number in np.unique(targets.domain[donors]).tolist():
            here = targets.domain == number
            gives, takes = np.flatnonzero(here & donors), np.flatnonzero(here & ~donors)
            held, fair = load[k, gives], targets.share[k, gives]
            end, most = (
                fair * level(held, fair, np.maximum(of[k, takes] - load[k, takes], 0).sum())
                for of in (targets.share, targets.low)
            )
            high[k, gives] = np.maximum(high[k, gives], np.ceil(most * (1 + tolerances[k])))
            low[k, gives] = np.minimum(low[k, gives], held)
            share[k, gives] = np.clip(np.rint(np.minimum(held, end)), low[k, gives], high[k, gives])
    return replace(targets, share=share, low=low, high=high)


def topics_with_donors(topics: TopicBands, rows: Rows, donors: Mask) -> TopicBands:
    """The same for the bands of topics, whose replicas are counted under (P, R) rows."""
    held, count = topics.counts(rows), len(topics.topics)
    low, high = topics.low.copy(), topics.high.copy()
    lacks = np.maximum(low - held, 0)[:count, ~donors].sum(axis=1)
    mine, fair = held[:count, donors].astype(float), topics.fair[:, donors]
    most = band(fair * level(mine, fair, lacks)[:, None], topics.tolerance)[1]
    high[:count, donors] = np.maximum(high[:count, donors], most)
    low[:, donors] = np.minimum(low[:, donors], held[:, donors])
    return replace(topics, low=low, high=high)


def level(held: Floats, share: Floats, given: Floats | float) -> Floats:
    """(…) the level, relative to shares (…, n), to which the fullest donors come down if they give
    that much (…) together: at least 1, because no donor gives more than down to its share.
    """
    share = np.maximum(share, LEAST_SHARE)
    fullest = np.argsort(-held / share, axis=-1, kind="stable")
    held, share = (np.take_along_axis(side, fullest, axis=-1) for side in (held, share))
    # If the n fullest ended at one level; highest where exactly those above it give.
    levels = (np.cumsum(held, axis=-1) - np.expand_dims(given, -1)) / np.cumsum(share, axis=-1)
    highest: Floats = levels.max(axis=-1, initial=1.0)
    return highest
