"""Arrow tables as Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """All rows of an Arrow table. Spark 4.2 takes an empty chunk for the end of the table, and
    loses what comes behind it without a word.
    """
    return spark.createDataFrame(table.combine_chunks())
