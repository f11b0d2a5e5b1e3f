"""Exhaustive search for very small problems."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.planning.search.state import Problem

MOST_LAYOUTS = 20_000
"""The most layouts that are tried."""


def is_enumerable(problem: Problem) -> bool:
    """Whether all layouts can be tried; requires one replica per partition, and bands on bytes
    only.
    """
    if problem.layout.rows.shape[1] > 1:
        return False
    origin = problem.layout.origin[problem.partitions, 0]
    places = problem.takes.sum() + ~problem.takes[origin]
    return bool(np.log(np.maximum(places, 1)).sum() <= np.log(MOST_LAYOUTS))


def enumerate_layouts(problem: Problem) -> None:
    """Set the layout that is closest to the bands; of equals, the cheapest."""
    layout = problem.layout
    movable = np.flatnonzero(problem.partitions & _has_choice(problem))
    if not len(movable):
        return
    origin = layout.origin[movable, 0].astype(np.int64)
    placements = _placements(problem, origin)
    size = problem.weights[0, movable]
    moved = placements != origin
    shape = (len(placements), len(problem.takes))
    gained, lost = (
        _sums(shape, where, np.where(moved, size, 0.0)) for where in (placements, origin)
    )
    load = layout.load + gained - lost
    low, high = problem.targets.low[0], problem.targets.high[0]
    outside = np.maximum(np.maximum(load - high, low - load), 0) * problem.gives
    excess = (outside / np.maximum(problem.targets.share[0], 1.0)).sum(axis=1)
    excess[(gained > layout.headroom).any(axis=1)] = np.inf
    cost = (moved * (size + problem.overhead_bytes)).sum(axis=1)
    best = np.lexsort((cost, np.round(excess, 12)))[0]
    layout.rows[movable, 0] = placements[best]
    layout.refresh()


def _has_choice(problem: Problem) -> Mask:
    """(P,) partitions that a broker other than their own may take: the others have one place each,
    however many they are.
    """
    origin = problem.layout.origin[:, 0]
    choice: Mask = problem.takes.sum() > problem.takes[origin]
    return choice


def _placements(problem: Problem, origin: Ints) -> Ints:
    """(n, m) every placement of m replicas: at the origin, or on a broker that receives."""
    places = [np.union1d(np.flatnonzero(problem.takes), at) for at in origin]
    grids = np.meshgrid(*places, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1)


def _sums(shape: tuple[int, int], brokers: Ints, weight: Floats) -> Floats:
    """(n, B) sum of the weights per placement and broker."""
    sums = np.zeros(shape)
    way = np.arange(shape[0])
    for broker, of_way in zip(np.broadcast_to(brokers, weight.shape).T, weight.T, strict=True):
        sums[way, broker] += of_way
    return sums
