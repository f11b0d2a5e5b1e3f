"""Reasons of copies in a rebalance: which target each copy serves, at its source and its target."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.plan.causes.cause_columns import HeldColumns, cause_column, values_at
from rehome.domain.plan.causes.move_cause import CauseCode
from rehome.domain.resources import PLACED, Resource
from rehome.planning.limits.apply_limits import groups
from rehome.planning.model.arrays import broker_sums, is_new
from rehome.planning.placement.topic_counts import TopicCounts
from rehome.planning.result.outcome import MoveCauses
from rehome.planning.search.state import Problem

_CODES = (
    CauseCode.OVER_SHARE,
    CauseCode.UNDER_SHARE,
    CauseCode.TOPIC_SPREAD,
    CauseCode.RACKS_OF_MOVED,
    CauseCode.NO_DESTINATION,
    CauseCode.MIN_LEADERS_COPY,
    CauseCode.LEADERS_EVENED,
)
_OVER, _UNDER, _TOPIC, _RACKS, _BROUGHT, _MINIMUM, _LED = range(len(_CODES))

LEAST_EXCESS = 1e-12
"""The least change of excess that counts."""


def balance_causes(problem: Problem, for_minimums: Mapping[int, int]) -> MoveCauses:
    """Why the partitions of a finished rebalance move.

    :param for_minimums: dense partition index → the dense broker that got a replica of it for
        min_leaders.
    """
    return lambda partitions: _causes(problem, for_minimums, partitions)


def _causes(problem: Problem, for_minimums: Mapping[int, int], partitions: Ints) -> pa.ListArray:
    """(n,) causes: one for each copy, in the order of brokers in the partition; one where a
    partition is led by another broker alone.
    """
    layout, ids = problem.layout, problem.layout.arrays.brokers.ids
    origin, rows = layout.origin[partitions], layout.rows[partitions]
    gone, new = is_new(origin, rows), is_new(rows, origin)
    of_minimums = np.isin(partitions, list(for_minimums))
    single = of_minimums | ~gone.any(axis=1)
    gone[single], new[single] = False, False
    row = np.concatenate([np.nonzero(new)[0], np.flatnonzero(single)])
    copies = _Copies(problem, partitions[np.nonzero(new)[0]], origin[gone], rows[new])
    leads = rows[single, 0].astype(np.int64)
    leads[of_minimums[single]] = [for_minimums[p] for p in partitions[of_minimums].tolist()]
    codes = np.concatenate([copies.codes, np.where(of_minimums[single], _MINIMUM, _LED)])
    source = np.concatenate([copies.source, origin[single, 0]])
    target = np.concatenate([copies.target, leads])
    order = np.argsort(row, kind="stable")
    beyond = int(single.sum())
    return cause_column(
        np.bincount(row, minlength=len(partitions)),
        values_at([code.value for code in _CODES], codes[order]),
        broker=ids[source][order],
        takes=ids[target][order],
        load=_in_order(copies.held_columns(), beyond, order),
        takes_held=_in_order(copies.takes_held(), beyond, order),
    )


def _in_order(columns: HeldColumns, beyond: int, order: Ints) -> HeldColumns:
    """The same with so many more of which nothing is said, in another order."""
    zeros = np.zeros(beyond)
    return HeldColumns(
        columns.names,
        np.concatenate([columns.resource, np.full(beyond, NONE)])[order],
        np.concatenate([columns.amount, zeros])[order],
        np.concatenate([columns.share, zeros])[order],
    )


class _Copies:
    """n copies of a finished rebalance, with the target that each serves.

    :ivar source: (n,) the broker that gives it up, ``target``: the one that receives it.
    :ivar codes: (n,) numbers of the causes in ``_CODES``.
    """

    def __init__(self, problem: Problem, partition: Ints, source: Rows, target: Rows) -> None:
        """:param partition: (n,) whose replica is copied, ascending."""
        origin, rows = problem.layout.origin, problem.layout.rows
        self.source, self.target = source.astype(np.int64), target.astype(np.int64)
        weight = problem.weights[:, partition]
        after = _loads(problem, rows)
        self._before, self._share = _loads(problem, origin), problem.targets.share
        # Rows of PLACED in which undoing the copy would increase the excess of the source, or of
        # the target, most; NONE if it would not.
        gives = _most_harmed(problem, self.source, after[:, source], weight)
        takes = _most_harmed(problem, self.target, after[:, target], -weight)
        brought = _brought(problem, partition, self.source)
        spread, self._counts = _spread(problem, partition, self.source, self.target)
        self.codes: Ints = np.select(
            [brought, gives != NONE, takes != NONE, spread],
            [_BROUGHT, _OVER, _UNDER, _TOPIC],
            _RACKS,
        )
        self._gives = np.where(self.codes == _OVER, gives, NONE)
        self._takes = np.where((self.codes == _OVER) | (self.codes == _UNDER), takes, NONE)

    def held_columns(self) -> HeldColumns:
        """What the sources held."""
        return self._held_columns(self._gives, self.source, 0)

    def takes_held(self) -> HeldColumns:
        """What the targets held."""
        return self._held_columns(self._takes, self.target, 1)

    def _held_columns(self, resource: Ints, broker: Ints, side: int) -> HeldColumns:
        amount, share = (of[resource, broker] for of in (self._before, self._share))
        topic = self.codes == _TOPIC
        return HeldColumns(
            PLACED,
            np.where(topic, PLACED.index(Resource.REPLICAS), resource),
            np.where(topic, self._counts[side], amount),
            np.where(topic, 0.0, share),
        )


def _brought(problem: Problem, partition: Ints, source: Ints) -> Mask:
    """(n,) whether partitions are brought to destinations, of which these brokers are none."""
    arrays = problem.layout.arrays
    if arrays.limits is None:
        return np.zeros(len(partition), bool)
    group = groups(arrays)[partition]
    bound: Mask = group >= arrays.limits.bound_from
    return bound & ~arrays.limits.allowed[group, source]


def _spread(
    problem: Problem, partition: Ints, source: Ints, target: Ints
) -> tuple[Mask, tuple[Ints, Ints]]:
    """(n,) whether undoing the copies would spread their topics worse; and how many replicas of
    these the sources, and the targets, held before.
    """
    none = np.zeros(len(partition), np.int64)
    if problem.spread is None or problem.spread.leaders_only:
        return none.astype(bool), (none, none)
    after = TopicCounts.of_replicas(problem.spread, problem.layout.rows)
    worse: Mask = after.moving(partition, target, source) > 0
    before = TopicCounts.of_replicas(problem.spread, problem.layout.origin)
    source_replicas, has = (
        before.replicas[before.cells(partition, broker)].astype(np.int64)
        for broker in (source, target)
    )
    return worse, (source_replicas, has)


def _loads(problem: Problem, rows: np.ndarray) -> Floats:
    return np.stack([broker_sums(rows, weight, len(problem.gives)) for weight in problem.weights])


def _most_harmed(problem: Problem, brokers: Ints, load: Floats, more: Floats) -> Ints:
    """(n,) the resource in which the added load increases each broker's excess most."""
    targets = problem.targets
    low, high, share = (side[:, brokers] for side in (targets.low, targets.high, targets.share))
    banded = np.isfinite(high) & problem.gives[brokers]

    def outside(loads: Floats) -> Floats:
        off = np.maximum(np.maximum(loads - high, low - loads), 0)
        return np.where(banded, off / np.maximum(share, 1.0), 0.0)

    harm = outside(load + more) - outside(load)
    most: Ints = np.where(harm.max(axis=0) > LEAST_EXCESS, harm.argmax(axis=0), NONE)
    return most
