"""Causes of moves, for an action's outcome: of all moves alike, of each broker that is left, or of
each move by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import Ints
from rehome.domain.plan.causes.cause_columns import cause_column, cause_column_of, values_at
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.planning.model.arrays import is_new
from rehome.planning.model.layout import Layout

MoveCauses = Callable[[Ints], pa.ListArray]
"""(n,) dense partition indexes, ascending → the causes of the moves of each."""


def all_alike(code: CauseCode) -> MoveCauses:
    """One cause that all moves have."""

    def causes(partitions: Ints) -> pa.ListArray:
        one = np.ones(len(partitions), np.int64)
        return cause_column(one, pa.repeat(code.value, len(partitions)))

    return causes


def each_by_itself(cause: Callable[[int], Sequence[MoveCause]]) -> MoveCauses:
    """Causes that are found partition by partition."""
    return lambda partitions: cause_column_of(map(cause, partitions.tolist()))


def of_left_brokers(layout: Layout, codes: Sequence[CauseCode], which: Ints) -> MoveCauses:
    """A cause for each replica that is given up.

    :param which: (B,) number of the cause for which replicas leave each broker, in ``codes``.
    """

    def causes(partitions: Ints) -> pa.ListArray:
        origin = layout.origin[partitions]
        left = is_new(origin, layout.rows[partitions])
        brokers = origin[left]
        named = values_at([code.value for code in codes], which[brokers])
        ids = layout.arrays.brokers.ids[brokers]
        return cause_column(left.sum(axis=1), named, broker=ids)

    return causes
