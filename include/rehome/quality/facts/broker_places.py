"""Where brokers stand among those that a snapshot lists."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Ints

_FOR_A_TABLE = 1 << 20
"""Ids below it are looked up in a table, which is ten times as fast as a search for each. Kafka's
ids go up to 2³¹.
"""


def places(ids: Ints, values: Ints) -> Ints:
    """(n,) index in ``ids`` of each value; -1 = it is not among them.

    :param ids: (B,) brokers, in any order; of one that is listed twice, the first place counts.
    """
    if not len(ids) or ids.min() < 0 or ids.max() >= _FOR_A_TABLE:
        return _found_by_search(ids, values)
    table = np.full(int(ids.max()) + 3, -1, np.int64)  # the first and the last are no broker's
    table[ids[::-1] + 1] = np.arange(len(ids))[::-1]
    indexes: Ints = table.take(values.astype(np.int64) + 1, mode="clip")
    return indexes


def _found_by_search(ids: Ints, values: Ints) -> Ints:
    if not len(ids):
        return np.full(len(values), -1, np.int64)
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], values), len(ids) - 1)
    indexes: Ints = np.where(ids[order][at] == values, order[at], -1)
    return indexes
