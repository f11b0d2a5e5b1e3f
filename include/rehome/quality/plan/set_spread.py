"""Spread over the racks of each partition's broker set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rehome.domain.array_types import Ints, Mask
from rehome.quality.facts.broker_places import places
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.rack_spread import badly_placed


def badly_placed_by_set(
    checked: Checked, hosts: Mask, rows: npt.NDArray[np.int32], number: Ints
) -> list[Ints]:
    """Per level of the racks, from the root down: (n,) badly placed replicas of each row.

    :param hosts: (B,) brokers that may host replicas at all.
    :param number: (n,) broker set of each row, see AllowedBrokers.
    """
    may = checked.allowed_brokers.may
    if may.all():
        return badly_placed(checked.rack_paths, hosts, rows)
    levels = [np.zeros(len(rows), np.int64) for _ in range(checked.rack_levels)]
    for group in np.unique(number).tolist():
        mine = number == group
        counts = badly_placed(checked.rack_paths, hosts & may[group], rows[mine])
        for level, count in zip(levels, counts, strict=True):
            level[mine] = count
    return levels


def uneven(checked: Checked) -> Mask:
    """(P,) partitions that are less even than the racks of their broker set allow."""
    replicas = checked.moved.partitions.replicas
    rows = replicas.pad(places(checked.brokers, replicas.values))
    levels = badly_placed_by_set(checked, checked.live, rows, checked.allowed_brokers.number)
    is_uneven: Mask = np.sum([np.zeros(len(rows), np.int64), *levels], axis=0) > 0
    return is_uneven
