"""Arrow tables as Spark data frames."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_FEW_ROWS = 100_000
"""Rows for one task: starting a task costs more than going through some thousands of them."""


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """All rows of an Arrow table. Spark 4.2 takes an empty chunk for the end of the table and
    silently loses the rows after it, so chunks are combined first. Spark Connect takes no table
    without rows unless its schema is named.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    # Rows inside Spark's query plan are processed again each time it plans.
    with _set_to(spark, "spark.sql.execution.arrow.localRelationThreshold", "0"):
        frame = spark.createDataFrame(table.combine_chunks(), from_arrow_schema(table.schema))
    return frame.coalesce(max(1, math.ceil(len(table) / _FEW_ROWS)))


def one_job_each(spark: SparkSession) -> AbstractContextManager[None]:
    """Inside the context adaptive execution is off: a query is one job, planned once, because its
    statistics would not change the plan.
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
def keep(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, cached inside the context. Without compression, which would take longer than
    computing it.
    """
    with _set_to(frame.sparkSession, "spark.sql.inMemoryColumnarStorage.compressed", "false"):
        frame = frame.persist()
        try:
            yield frame
        finally:
            frame.unpersist()
