"""Spread the leaders of each topic over brokers, by the order of replicas alone."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.planning.leadership.preferred_leaders import promote
from rehome.planning.model.in_sync import may_lead
from rehome.planning.model.layout import Layout
from rehome.planning.model.topic_bands import TopicBands
from rehome.planning.placement.compatible_moves import compatible
from rehome.planning.placement.topic_counts import TopicCounts

SPREAD_ROUNDS = 50


def even_leaders(
    layout: Layout,
    spread_bands: TopicBands,
    movable: Mask,
    hosts: Mask,
    bands: tuple[Floats, Floats, Floats] | None,
) -> None:
    """Bring the leaders of topics into their bands, in place, as far as leader changes among
    existing replicas can.

    :param movable: (P,) partitions whose order may change; ``hosts``: (B,) that may lead; of
        replicas that exist, only those in sync.
    :param bands: (K, P) weights of leading a partition, and (K, B) the least and most that brokers
        may lead; None = no limits.
    """
    rows = layout.rows
    some = np.flatnonzero(
        movable & (rows[:, 0] != NONE) & (spread_bands.row < len(spread_bands.topics))
    )
    for _ in range(SPREAD_ROUNDS):
        counts = TopicCounts.of_leaders(spread_bands, rows)
        if not counts.outside():
            return
        partitions = _off(counts, rows, some)
        able = hosts[rows[partitions]] & may_lead(layout.arrays, partitions, rows[partitions])
        change, positions = _best_positions(counts, rows, partitions, able)
        better = np.flatnonzero(change < 0)
        partitions, positions = partitions[better], positions[better]
        source, target = rows[partitions, 0], rows[partitions, positions]
        together = counts.moving_together(partitions, source, target, -1)
        partitions, positions = partitions[together], positions[together]
        if bands is not None:
            kept = _within(bands, rows, partitions, positions)
            partitions, positions = partitions[kept], positions[kept]
        if not len(partitions):
            return
        promote(rows, partitions, positions)


def _off(counts: TopicCounts, rows: Rows, some: Ints) -> Ints:
    """Partitions whose leader's broker leads too many of the topic, or that a broker with too few
    could lead.
    """
    above, below = counts.replicas > counts.high, counts.replicas < counts.low
    off: Mask = above[counts.cells(some, rows[some, 0])]
    if below.any():
        for column in rows[some, 1:].T:
            off |= below[counts.cells(some, column)] & (column != NONE)
    return some[off]


def _best_positions(counts: TopicCounts, rows: Rows, some: Ints, able: Mask) -> tuple[Ints, Ints]:
    """(n,) change of the distance to the bands by each partition's best leader change, and its
    position.

    :param able: (n, R) replicas that may lead.
    """
    best, position = np.zeros(len(some), np.int64), np.zeros(len(some), np.int64)
    for number in range(1, rows.shape[1]):
        new = rows[some, number]
        change = counts.moving(some, rows[some, 0], new)
        better = (change < best) & (new != NONE) & able[:, number]
        best, position = np.where(better, change, best), np.where(better, number, position)
    return best, position


def _within(
    bands: tuple[Floats, Floats, Floats], rows: Rows, partitions: Ints, positions: Ints
) -> Mask:
    """(n,) leader changes that leave brokers within what they may lead."""
    weights, low, high = bands
    leaders, led = rows[:, 0], rows[:, 0] != NONE
    loads = [np.bincount(leaders[led], w[led], low.shape[1]) for w in weights]
    load = np.stack(loads).astype(float)
    source, target = (rows[partitions, position].astype(np.int64) for position in (0, positions))
    return compatible(source, target, weights[:, partitions], load, low, high)
