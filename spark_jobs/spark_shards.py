"""Slices of a cluster's replicas in Spark, for plans that one process does not hold."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from include.planning.sharded.shard import Work

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ANSWER = "slice int, answer binary"

LARGEST_SLICE = 5_000_000
"""Replicas that a task holds: under a gigabyte, and within the 2 GB of one Arrow message."""


class SparkSlices:
    """Implements overlay.Slices: each slice is a task, wherever Spark puts it.

    Which slice a partition is in follows from its name and the number of slices alone, and so
    does the plan; how many tasks run at once, and where, does not show.
    """

    def __init__(self, frame: DataFrame, topics: tuple[str, ...], count: int) -> None:
        self._frame = frame
        self.topics = topics
        self.count = count

    def each(self, work: Work, numbers: Sequence[int]) -> list[Any]:
        """The work's results for these slices, in their order."""
        wanted = set(numbers)

        def one(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
            import pyarrow

            number = key[0].as_py()
            answer = pickle.dumps(work.run(number, table.drop_columns("slice")))
            return pyarrow.table({"slice": pyarrow.array([number], "int32"), "answer": [answer]})

        frame = self._frame.where(self._frame["slice"].isin(*wanted))
        rows = frame.groupBy("slice").applyInArrow(one, ANSWER).collect()
        answers = {row["slice"]: pickle.loads(row["answer"]) for row in rows}
        empty = [number for number in numbers if number not in answers]
        for number in empty:  # no partition's name led to it
            answers[number] = work.run(number, self._nothing())
        return [answers[number] for number in numbers]

    def _nothing(self) -> pa.Table:
        table: pa.Table = self._frame.limit(0).toArrow().drop_columns("slice")
        return table


def slices_of(replicas: int, most: int) -> int:
    """How many slices a cluster is planned in.

    :param most: replicas that one process plans.
    """
    return max(1, math.ceil(replicas / min(most, LARGEST_SLICE)))


@contextmanager
def spark_slices(spark: SparkSession, table_uri: str, count: int) -> Iterator[SparkSlices]:
    """The replicas in a table, kept in Spark's memory, or on its disks, while in use."""
    from pyspark import StorageLevel

    replicas = spark.read.parquet(table_uri)
    topics = tuple(sorted(row["topic"] for row in replicas.select("topic").distinct().collect()))
    frame = (
        replicas.selectExpr("*", f"int(pmod(xxhash64(topic, partition), {count})) AS slice")
        .repartition(count, "slice")
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    try:
        yield SparkSlices(frame, topics, count)
    finally:
        frame.unpersist()
