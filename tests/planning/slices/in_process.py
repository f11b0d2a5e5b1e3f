"""Slices of a cluster in this process: what Spark does to plans, without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.options import PlanOptions
from rehome.planning.slices.slice_planner import plan_in_slices
from rehome.planning.slices.slices import Work


class InProcess:
    """Implements slices.Slices; work and results cross a border, as they do with Spark."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self._tables = tables
        self.topics = tuple(sorted({t for of in tables for t in of.column("topic").to_pylist()}))
        self.count = len(tables)

    @classmethod
    def of(cls, replicas: pa.Table, count: int) -> InProcess:
        """Slices by a hash of their partitions' names."""
        keys = zip(*(replicas.column(n).to_pylist() for n in ("topic", "partition")), strict=True)
        owner = np.array([crc32(f"{t}-{p}".encode()) % count for t, p in keys], int)
        return cls([replicas.filter(pa.array(owner == number)) for number in range(count)])

    def each(self, works: Mapping[int, Work]) -> list[Any]:
        return [
            pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(work)).run(self._tables[n])))
            for n, work in works.items()
        ]


def plan_sliced(
    snapshot: Snapshot, request: ReassignmentRequest, count: int, **options: Any
) -> Plan:
    """The plan in that many slices; the driver's part never sees a replica."""
    without = replace(snapshot, replicas=snapshot.replicas.slice(0, 0))
    slices = InProcess.of(snapshot.replicas, count)
    return plan_in_slices(without, request, slices, PlanOptions(plan_id="p", **options))
