"""What a plan of a benchmark comes to against what was asked.

Loads, shares and rules are worked out anew from rows and the request, by code that shares nothing
with the planner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.clusters import Instance
from rehome.quality.facts.rack_spread import badly_placed

RESOURCES = ("bytes", "replicas", "bytes_in", "leaders", "bytes_out")

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Judged:
    """One plan against its request.

    :param outside: brokers that end off their share by more than the tolerance in some resource.
    :param worst: by which part of its share the furthest one is off, of resources with a tolerance.
    :param deviation: resource → the furthest that a broker is from its share, tolerance or not.
    :param violations: partitions with two replicas on one broker, one on a drained broker, or
        replicas that racks would allow to be spread more evenly.
    """

    outside: int
    worst: float
    deviation: Mapping[str, float]
    violations: int


def judged(
    instance: Instance,
    rows: Rows,
    tolerances: Mapping[str, float | None],
    *,
    one_sided: bool = False,
) -> Judged:
    """Judge (P, R) rows, padded with -1.

    :param tolerances: of each resource; None, or not named, = any.
    """
    live = ~instance.drained
    outside, worst, deviation = np.zeros(len(live), bool), 0.0, {}
    for name, load, size in zip(RESOURCES, loads(instance, rows), instance.capacity, strict=True):
        share = load.sum() * size[live] / size[live].sum()
        if not load.any():
            continue
        off = load[live] / share - 1
        deviation[name] = round(float(np.abs(off).max()), 4)
        off = off if one_sided else np.abs(off)
        tolerance = tolerances.get(name)
        if tolerance is not None:
            outside[live] |= off * share > tolerance * share + 1
            worst = max(worst, float(off.max()))
    return Judged(int(outside.sum()), round(worst, 4), deviation, _violations(instance, rows))


def loads(instance: Instance, rows: Rows) -> list[npt.NDArray[np.float64]]:
    """(B,) of each of RESOURCES."""
    arrays, brokers = instance.arrays, len(instance.drained)
    partition, place = np.nonzero(rows >= 0)
    holder = rows[partition, place]
    leaders = rows[:, 0]
    nothing = np.zeros(len(rows))
    bytes_in = nothing if arrays.bytes_in is None else arrays.bytes_in
    bytes_out = nothing if arrays.bytes_out is None else arrays.bytes_out
    return [
        np.bincount(holder, arrays.size_bytes[partition], brokers),
        np.bincount(holder, minlength=brokers).astype(float),
        np.bincount(holder, bytes_in[partition], brokers),
        np.bincount(leaders, minlength=brokers).astype(float),
        np.bincount(leaders, bytes_out, brokers),
    ]


def _violations(instance: Instance, rows: Rows) -> int:
    live = ~instance.drained
    ordered = np.sort(rows, axis=1)
    wrong = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    wrong |= ((rows >= 0) & ~live[rows]).any(axis=1)
    for level in badly_placed(instance.arrays.brokers.rack_paths, live, rows):
        wrong |= level > 0
    return int(wrong.sum())
