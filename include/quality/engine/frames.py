"""Arrow tables as Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_FEW_ROWS = 100_000
"""Up to here, it takes longer to hand rows from task to task than to look at them in one."""


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """All rows of an Arrow table. Spark 4.2 takes an empty chunk for the end of the table, and
    loses what comes behind it without a word.
    """
    # Rows that Spark keeps within its plan are looked at, and written down, each time it plans.
    with _set_to(spark, "spark.sql.execution.arrow.localRelationThreshold", "0"):
        frame = spark.createDataFrame(table.combine_chunks())
    return frame.coalesce(1) if len(table) <= _FEW_ROWS else frame


def one_job_each(spark: SparkSession) -> AbstractContextManager[None]:
    """Inside the context a query is one job, which is planned once: not one for each of its stages.
    There is nothing to learn between them.
    """
    return _set_to(spark, "spark.sql.adaptive.enabled", "false")


@contextmanager
def _set_to(spark: SparkSession, setting: str, value: str) -> Iterator[None]:
    before = spark.conf.get(setting)
    spark.conf.set(setting, value)
    try:
        yield
    finally:
        spark.conf.set(setting, str(before))


@contextmanager
def kept(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, made once for all that use it inside the context. Nothing is compressed there:
    that would take longer than to make it.
    """
    with _set_to(frame.sparkSession, "spark.sql.inMemoryColumnarStorage.compressed", "false"):
        frame = frame.persist()
        try:
            yield frame
        finally:
            frame.unpersist()
