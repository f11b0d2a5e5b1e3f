"""Work in slices of which tests can say what it was given; executors import it by name."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Seen:
    """Returns its number, that of its task's partition, and the rows of the slice."""

    number: int

    def run(self, replicas: pa.Table) -> tuple[int, int, pa.Table]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return self.number, context.partitionId(), replicas
