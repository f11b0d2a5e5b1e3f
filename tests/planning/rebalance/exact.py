"""The fewest bytes that a mixed-integer solver needs on small clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from benchmarks.small_clusters import Small
from rehome.domain.array_types import NONE, UNLIMITED
from rehome.planning.model.arrays import ClusterArrays, broker_sums

TOLERANCE = {"bytes": 0.05, "bytes_in": 0.1}
SOLVER_S = 15


@dataclass(frozen=True)
class Exact:
    """What the solver found: the bytes of its best plan, and what no plan undercuts.

    Infinite where it found no plan in its time.
    """

    best: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether its best is within 2 % of the optimum."""
        return self.best <= 1.02 * self.bound


def placed(of: ClusterArrays) -> np.ndarray:
    """(2, P) weights of a replica: bytes and bytes in."""
    return np.stack([of.size_bytes.astype(float), np.asarray(of.bytes_in)])


def bands(of: Small, one_sided: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(2, B) least and most of bytes and bytes in by weight, whatever the racks permit."""
    weight = np.array([of.weights.get(b, 1.0) for b in range(len(of.rack))])
    totals = np.stack([broker_sums(of.arrays.rows, w, len(of.rack)) for w in placed(of.arrays)])
    share = totals.sum(axis=1, keepdims=True) * weight / weight.sum()
    tolerance = np.array(list(TOLERANCE.values()))[:, None]
    return share * (1 - tolerance) * (0 if one_sided else 1), share * (1 + tolerance)


def fewest_bytes(of: Small, low: np.ndarray, high: np.ndarray) -> Exact:
    """The least that any plan copies which puts every broker into its bands."""
    arrays, brokers = of.arrays, len(of.rack)
    count, factor = len(arrays.rows), arrays.replication_factor
    held = np.zeros((count, brokers))
    real = arrays.rows != NONE
    held[np.nonzero(real)[0], arrays.rows[real]] = 1
    variable = np.arange(count * brokers).reshape(count, brokers)
    rows, least, most = [], [], []

    def limit(columns: np.ndarray, values: np.ndarray, at_least: float, at_most: float) -> None:
        rows.append((columns, values))
        least.append(at_least)
        most.append(at_most)

    for weight, floor, ceiling in zip(placed(arrays), low, high, strict=True):
        unit = float(ceiling.mean())
        for b in range(brokers):
            limit(variable[:, b], weight / unit, floor[b] / unit, ceiling[b] / unit)
    size = arrays.size_bytes.astype(float)
    for b in np.flatnonzero(arrays.brokers.headroom_bytes < UNLIMITED).tolist():
        headroom = float(arrays.brokers.headroom_bytes[b])
        limit(variable[:, b], size * (1 - held[:, b]) / headroom, 0, 1)
    in_rack = [np.flatnonzero(of.rack == number) for number in np.unique(of.rack)]
    for p in range(count):
        limit(variable[p], np.ones(brokers), factor[p], factor[p])
        for mine in in_rack:
            fewest, more = divmod(int(factor[p]), len(in_rack))
            limit(variable[p, mine], np.ones(len(mine)), fewest, fewest + (more > 0))
    columns = np.concatenate([columns for columns, _ in rows])
    data = np.concatenate([np.asarray(values, float) for _, values in rows])
    starts = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    mean = float(size.mean())
    solved = milp(
        (size[:, None] / mean * (1 - held)).ravel(),
        constraints=LinearConstraint(
            csr_array((data, columns, starts), shape=(len(rows), variable.size)), least, most
        ),
        integrality=np.ones(variable.size),
        bounds=Bounds(0, 1),
        options={"time_limit": SOLVER_S, "mip_rel_gap": 0.005},
    )
    if solved.fun is None or solved.mip_dual_bound is None:
        return Exact(float("inf"), 0.0)
    return Exact(float(solved.fun) * mean, float(solved.mip_dual_bound) * mean)
