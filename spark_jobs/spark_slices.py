"""Slices of a cluster's replicas in Spark, for plans that one process does not hold."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rehome.planning.slices.slices import Work

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LARGEST_SLICE = 5_000_000
"""Replicas that a task holds: under a gigabyte, and within the 2 GB of one Arrow message."""


class SparkSlices:
    """Implements slices.Slices: each slice is a partition of a frame, wherever Spark puts it.

    Which slice a Kafka partition is in follows from its name and the number of slices alone, and so
    does the plan; how many tasks run at once, and where, does not show.

    :param frame: partition n of it is slice n.
    """

    def __init__(self, frame: DataFrame, topics: tuple[str, ...], count: int) -> None:
        self._frame = frame
        self._nothing: pa.Table = frame.limit(0).toArrow()
        self.topics = topics
        self.count = count

    def each(self, works: Mapping[int, Work]) -> list[Any]:
        """The results of each slice's work, in the order of the works.

        A Spark job of one task for each, side by side: a task gets nothing of other slices.
        """
        with ThreadPoolExecutor(len(works)) as pool:
            return list(pool.map(self._result, works, works.values()))

    def _result(self, number: int, work: Work) -> Any:
        nothing = self._nothing

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow

            some = list(batches)
            table = pyarrow.Table.from_batches(some) if some else nothing
            answer = pickle.dumps(work.run(table))
            yield pyarrow.RecordBatch.from_pydict({"answer": [answer]})

        answers = self._frame.mapInArrow(run, "answer binary").rdd
        [row] = answers.context.runJob(answers, list, [number])
        return pickle.loads(row["answer"])


def slices_of(replicas: int, most: int) -> int:
    """How many slices a cluster is planned in.

    :param most: replicas that one process plans.
    """
    return max(1, math.ceil(replicas / min(most, LARGEST_SLICE)))


@contextmanager
def spark_slices(spark: SparkSession, table_uri: str, count: int) -> Iterator[SparkSlices]:
    """The replicas in a table, kept in Spark's memory, or on its disks, while in use."""
    from pyspark import StorageLevel
    from pyspark.sql.functions import expr

    replicas = spark.read.parquet(table_uri)
    topics = tuple(sorted(row["topic"] for row in replicas.select("topic").distinct().collect()))
    frame = (
        replicas.withColumn("slice", expr(f"int(pmod(xxhash64(topic, partition), {count}))"))
        .repartitionById(count, "slice")
        .drop("slice")
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    try:
        yield SparkSlices(frame, topics, count)
    finally:
        frame.unpersist()
