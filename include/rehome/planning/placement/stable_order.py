"""Stable sorting, faster than NumPy's.

``np.argsort(…, kind="stable")`` is a merge sort; ``np.sort`` of plain numbers is vectorised and ten
times as fast. So each number is sorted together with its index, stored in its low bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask


def stable_order(numbers: Ints) -> Ints:
    """Indexes that sort whole numbers; equal ones stay in their order.

    :param numbers: absolute values below 2^62 / n.
    """
    bits = len(numbers).bit_length()
    placed = numbers.astype(np.int64) << bits
    placed += np.arange(len(numbers))
    return _places(placed, bits)


def stable_order_of_floats(values: Floats) -> Ints:
    """Indexes that sort numbers of any size; equal ones stay in their order."""
    bits = len(values).bit_length()
    order = np.argsort(values)  # equal ones in any order, which may depend on the processor
    ordered = values[order]
    differs = ordered[1:] != ordered[:-1]
    if differs.all():
        return order
    steps = np.zeros(len(values), np.int64)
    np.cumsum(differs, out=steps[1:])
    return _places((steps << bits) + order, bits)


def _places(placed: Ints, bits: int) -> Ints:
    placed.sort()
    order: Ints = placed & ((1 << bits) - 1)
    return order


def rank(groups: Ints) -> Ints:
    """(n,) rank of each element within its group; equal values must be adjacent."""
    count = len(groups)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    places: Ints = np.arange(count) - np.repeat(starts, np.diff(starts, append=count))
    return places


def turn(groups: Ints) -> Ints:
    """(n,) how many equal values come before each."""
    order = stable_order(groups)
    turns = np.empty(len(groups), np.int64)
    turns[order] = rank(groups[order])
    return turns


def first_ones(groups: Ints, count: int = 1) -> Mask:
    """(n,) which elements are among the first ``count`` of their group."""
    order = stable_order(groups)
    ordered = groups[order]
    first = np.ones(len(groups), bool)
    first[order[count:]] = ordered[count:] != ordered[:-count]
    return first


def parts_without_repeats(groups: Ints) -> Iterator[slice]:
    """The longest consecutive parts in which no value repeats, one after the other."""
    order, start = stable_order(groups), 0
    before = np.full(len(groups), -1)
    again = np.flatnonzero(np.diff(groups[order]) == 0)
    before[order[again + 1]] = order[again]
    for place in np.flatnonzero(before >= 0).tolist():
        if before[place] >= start:
            yield slice(start, place)
            start = place
    yield slice(start, len(groups))
