"""The benchmark's own count of what a plan leaves, against what was asked."""

from __future__ import annotations

import numpy as np

from benchmarks.clusters import CASES, Instance, build
from benchmarks.judged import judged

ASKED = {"bytes": 0.02, "bytes_in": 0.05}


def instance() -> Instance:
    return build(next(case for case in CASES if case.name == "drain"), 600, 12)


def test_brokers_are_judged_by_what_was_asked_not_by_what_racks_made_of_it():
    of = instance()
    found = judged(of, of.arrays.rows, ASKED)
    load = np.bincount(of.arrays.rows.ravel(), np.repeat(of.arrays.size_bytes, 3), 12)
    live = ~of.drained
    off = np.abs(load[live] / load.sum() * live.sum() - 1)
    assert found.deviation["bytes"] == round(float(off.max()), 4)
    assert found.worst >= off.max() - 1e-4
    assert found.outside >= (off > 0.03).sum() > 0


def test_a_tolerance_of_none_leaves_nobody_outside():
    of = instance()
    assert judged(of, of.arrays.rows, {}).outside == 0


def test_replicas_that_may_not_lie_so_are_counted_partition_by_partition():
    of = instance()
    drained = (of.drained[of.arrays.rows]).any(axis=1)
    assert judged(of, of.arrays.rows, {}).violations >= drained.sum()
    rows = np.where(of.drained[of.arrays.rows], -1, of.arrays.rows).astype(np.int32)
    full = (rows >= 0).all(axis=1)
    rows, arrays = rows.copy(), of.arrays
    before = judged(of, rows, {}).violations
    two = np.flatnonzero(full)[0]
    rows[two, 1] = rows[two, 0]
    assert judged(of, rows, {}).violations == before + 1
    assert arrays.rows[two, 1] != rows[two, 1]
