"""The best way to spread few replicas over few brokers, found by trying all of them."""

from __future__ import annotations

import numpy as np

from include.domain.array_types import Floats, Ints
from include.planning.search.state import Problem

MOST_WAYS = 20_000
"""Ways that are tried at most."""


def is_enumerable(problem: Problem) -> bool:
    """Whether all ways can be tried; asks for one replica per partition, and bytes only."""
    if problem.layout.rows.shape[1] > 1:
        return False
    origin = problem.layout.origin[problem.partitions, 0]
    places = problem.takes.sum() + ~problem.takes[origin]
    return bool(np.log(np.maximum(places, 1)).sum() <= np.log(MOST_WAYS))


def enumerate_layouts(problem: Problem) -> None:
    """Lay the problem out as near to its bands as can be, by the cheapest way to get there."""
    layout = problem.layout
    movable = np.flatnonzero(problem.partitions)
    origin = layout.origin[movable, 0].astype(np.int64)
    ways = _ways(problem, origin)
    size = problem.weights[0, movable]
    moved = ways != origin
    shape = (len(ways), len(problem.takes))
    gained, lost = (_sums(shape, where, np.where(moved, size, 0.0)) for where in (ways, origin))
    load = layout.load + gained - lost
    low, high = problem.targets.low[0], problem.targets.high[0]
    outside = np.maximum(np.maximum(load - high, low - load), 0) * problem.gives
    excess = (outside / np.maximum(problem.targets.share[0], 1.0)).sum(axis=1)
    excess[(gained > layout.headroom).any(axis=1)] = np.inf
    cost = (moved * (size + problem.overhead_bytes)).sum(axis=1)
    best = np.lexsort((cost, np.round(excess, 12)))[0]
    layout.rows[movable, 0] = ways[best]
    layout.refresh()


def _ways(problem: Problem, origin: Ints) -> Ints:
    """(n, m) every way to place m replicas: at home, or where replicas are taken."""
    places = [np.union1d(np.flatnonzero(problem.takes), at) for at in origin]
    grids = np.meshgrid(*places, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1)


def _sums(shape: tuple[int, int], brokers: Ints, weight: Floats) -> Floats:
    """(n, B) sum of the weights per way and broker."""
    sums = np.zeros(shape)
    way = np.arange(shape[0])
    for broker, of_way in zip(np.broadcast_to(brokers, weight.shape).T, weight.T, strict=True):
        sums[way, broker] += of_way
    return sums
