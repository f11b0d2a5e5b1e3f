"""How long each partition ran at which rate: a histogram with bins of fixed relative width.

Merging adds the bins, in any order, without loss; a quantile is off by at most
:data:`RELATIVE_ERROR` (the idea of DDSketch, VLDB 2019, with fixed instead of collapsing bins).
Rates below 1 B/s count as none; the last bin takes all from 30 GB/s on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import Floats, Ints

BINS = 256
GAMMA = 1.1
RELATIVE_ERROR = math.sqrt(GAMMA) - 1  # 4.9 %


def bin_of(rate: Floats) -> Ints:
    """The bin of each rate in bytes per second: 0 = below 1, then a tenth wide each."""
    bins = np.floor(np.log(np.maximum(rate, 1.0)) / math.log(GAMMA)).astype(np.int64) + 1
    return np.where(rate < 1, 0, np.minimum(bins, BINS - 1))


def rate_of(bins: Ints) -> Floats:
    """The rate of each bin: the geometric mean of its ends."""
    return np.where(bins == 0, 0.0, GAMMA ** (bins - 0.5))


@dataclass(frozen=True)
class Histogram:
    """Seconds per row and bin, sparse: ``keys`` = row x :data:`BINS` + bin, ascending."""

    keys: Ints
    seconds: Floats

    @classmethod
    def empty(cls) -> Histogram:
        """Of no time at all."""
        return cls(np.zeros(0, np.int64), np.zeros(0))

    @classmethod
    def of(cls, rates: Floats, seconds: float) -> Histogram:
        """One interval: row by row its rate, NaN where it is not known."""
        rows = np.flatnonzero(~np.isnan(rates))
        return cls(rows * BINS + bin_of(rates[rows]), np.full(len(rows), float(seconds)))

    @classmethod
    def from_lists(cls, lengths: Ints, bins: Ints, seconds: Floats) -> Histogram:
        """The inverse of :meth:`to_lists`."""
        return cls(np.repeat(np.arange(len(lengths)), lengths) * BINS + bins, seconds)

    def to_lists(self, rows: int) -> tuple[Ints, npt.NDArray[np.int16], Floats]:
        """How many bins each row has, and the bins and seconds of all rows one after the other."""
        lengths = np.bincount(self.keys // BINS, minlength=rows).astype(np.int64)
        return lengths, (self.keys % BINS).astype(np.int16), self.seconds

    def move_rows(self, to: Ints) -> Histogram:
        """With row n at ``to[n]``, and without those that go to -1. ``to`` ascends otherwise."""
        if not len(self.keys) or (to == np.arange(len(to))).all():
            return self
        rows = to[self.keys // BINS]
        kept = rows >= 0
        return Histogram(rows[kept] * BINS + self.keys[kept] % BINS, self.seconds[kept])

    def merge(self, other: Histogram) -> Histogram:
        """Both added up. Fast where ``other`` is the smaller, or has few bins of its own."""
        if not len(self.keys):
            return other
        place = np.searchsorted(self.keys, other.keys)
        there = self.keys[np.minimum(place, len(self.keys) - 1)] == other.keys
        seconds = self.seconds.copy()
        seconds[place[there]] += other.seconds[there]
        new = ~there
        return Histogram(
            np.insert(self.keys, place[new], other.keys[new]),
            np.insert(seconds, place[new], other.seconds[new]),
        )

    def quantile(self, q: float, rows: int) -> Floats:
        """(rows,) the rate that each row kept below for the part ``q`` of its time; NaN if none."""
        rates = np.full(rows, np.nan)
        if not len(self.keys):
            return rates
        row, total = self.keys // BINS, np.cumsum(self.seconds)
        first = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
        last = np.concatenate([first[1:], [len(row)]]) - 1
        before = total[first] - self.seconds[first]
        target = before + q * (total[last] - before)
        # Sums of seconds are not exact: a millionth of a second decides nothing.
        at = np.clip(np.searchsorted(total, target - 1e-6), first, last)
        rates[row[first]] = rate_of(self.keys[at] % BINS)
        return rates
