"""Ragged lists, one per row, as flat NumPy arrays with offsets, like Arrow's list columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rehome.domain.array_types import Ints, Mask, Rows


@dataclass(frozen=True)
class Ragged:
    """Lists of broker ids.

    :param values: all lists, one after the other.
    :param offsets: (n + 1,) where each list begins and ends in ``values``.
    """

    values: Ints
    offsets: Ints

    @classmethod
    def of_column(cls, column: pa.ChunkedArray) -> Ragged:
        """The lists of an Arrow column without nulls."""
        lists = column.combine_chunks()
        if isinstance(lists, pa.ChunkedArray):
            lists = pa.concat_arrays(lists.chunks)
        lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        values = lists.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
        return cls(values.astype(np.int64), starts_of(lengths))

    @classmethod
    def of_rows(cls, values: Ints, row: Ints, rows: int) -> Ragged:
        """Lists from values and their row numbers, in any order."""
        order = np.argsort(row, kind="stable")
        return cls(values[order], starts_of(np.bincount(row, minlength=rows)))

    @cached_property
    def lengths(self) -> Ints:
        """(n,) length of each list."""
        return np.diff(self.offsets)

    @property
    def distinct_lengths(self) -> Ints:
        """(n,) how many different values each list has."""
        lowest = self.values.min(initial=0)
        span = self.values.max(initial=0) - lowest + 1
        # Cells are nearly in order: to sort them takes less than the hashing of np.unique.
        cells = np.sort(self.row * span + (self.values - lowest))
        distinct = cells[is_first(cells)]
        return np.bincount(distinct // span, minlength=len(self.lengths)).astype(np.int64)

    @cached_property
    def row(self) -> Ints:
        """Per value, the number of its list."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    @property
    def first(self) -> Ints:
        """(n,) first value of each list; -1 of an empty one."""
        first = np.full(len(self.lengths), -1, np.int64)
        some = self.lengths > 0
        first[some] = self.values[self.offsets[:-1][some]]
        return first

    def where(self, chosen: Mask) -> Ragged:
        """The lists with the chosen values only."""
        lengths = np.bincount(self.row[chosen], minlength=len(self.lengths))
        return Ragged(self.values[chosen], starts_of(lengths))

    def missing_in(self, other: Ragged) -> Mask:
        """Per value, whether the list of the same row in ``other`` lacks it."""
        lowest = min(self.values.min(initial=0), other.values.min(initial=0))
        span = max(self.values.max(initial=0), other.values.max(initial=0)) - lowest + 1
        mine, theirs = (item.row * span + (item.values - lowest) for item in (self, other))
        if not len(theirs):
            return np.ones(len(mine), bool)
        theirs.sort()
        at = np.minimum(np.searchsorted(theirs, mine), len(theirs) - 1)
        missing: Mask = theirs[at] != mine
        return missing

    def pad(self, values: Ints) -> Rows:
        """(n, width) rows of ``values`` (aligned with this one's), padded with -1."""
        rows = np.full((len(self.lengths), max(1, self.lengths.max(initial=1))), -1, np.int32)
        rows[self.row, np.arange(len(self.values)) - self.offsets[:-1][self.row]] = values
        return rows

    def to_arrow(self, *, empty_is_null: bool = False) -> pa.ListArray:
        """As an Arrow array of lists of int32."""
        missing = self.lengths == 0 if empty_is_null else None
        return lists_of(pa.array(self.values, pa.int32()), self.lengths, missing)


def is_first(values: Ints) -> Mask:
    """Per value of a sorted array, whether it is the first of its kind."""
    first = np.ones(len(values), bool)
    first[1:] = values[1:] != values[:-1]
    return first


def starts_of(lengths: npt.NDArray[Any]) -> Ints:
    """(n + 1,) offsets of lists of these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def lists_of(
    values: pa.Array, lengths: npt.NDArray[Any], missing: Mask | None = None
) -> pa.ListArray:
    """Arrow lists from their values one after the other; null where ``missing``."""
    offsets = starts_of(lengths).astype(np.int32)
    nulls = None if missing is None else pa.array(missing)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=nulls)
