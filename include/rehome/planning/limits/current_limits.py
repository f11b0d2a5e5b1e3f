"""Whether what is left of a plan keeps other limits than those that it was made with."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import NONE, Rows
from rehome.domain.plan.move import Move
from rehome.domain.request.limits import BrokerCaps, BrokerSet
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.limits.limit_checks import broken_limits
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.scope import shorten


def broken_by_what_is_left(
    snapshot: Snapshot,
    begun: Iterable[Move],
    left: Iterable[Move],
    caps: BrokerCaps,
    broker_sets: tuple[BrokerSet, ...],
) -> list[str]:
    """A sentence for each broker that the rest of a plan takes above its cap, or further above,
    and for each copy that it puts outside of its topic's broker set. As the planner judges layouts.

    :param snapshot: with the rates of partitions where caps are on traffic.
    :param begun: moves that are done or in flight: they count as done, and may be so in the
        snapshot already.
    :param left: those that have not started.
    """
    if not caps and not broker_sets:
        return []
    arrays = ClusterArrays.from_snapshot(snapshot, caps=caps)
    arrays = apply_limits(arrays, caps, broker_sets)
    origin = _after(arrays, arrays.rows, begun)
    return shorten(broken_limits(arrays, origin, _after(arrays, origin, left)))


def _after(arrays: ClusterArrays, rows: Rows, moves: Iterable[Move]) -> Rows:
    """(P, R) rows after these moves. What the snapshot does not know is left out: the dry run's
    other checks refuse it.
    """
    targets = {move.partition: move.target for move in moves}
    width = max(rows.shape[1], *map(len, targets.values()), 0)
    target_rows = np.full((len(rows), width), NONE, np.int32)
    target_rows[:, : rows.shape[1]] = rows
    brokers, index = arrays.brokers.index(), arrays.partition_index() if targets else {}
    for partition, target in targets.items():
        if partition in index:
            target_brokers = [brokers[broker] for broker in target if broker in brokers]
            target_rows[index[partition]] = NONE
            target_rows[index[partition], : len(target_brokers)] = target_brokers
    return target_rows
