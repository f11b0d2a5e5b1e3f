"""The Spark session of a job, by hand or under spark-submit."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rehome.places.stores import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MANY_REPLICAS = 200_000
"""From here on, compiling whole stages gives back more time than it takes."""

REPLICAS_PER_TASK = 250_000
"""Of a shuffle: starting a task costs as much as grouping some thousands of replicas."""


def fit_to(spark: SparkSession, replicas: int) -> None:
    """Let Spark compile whole stages where there are many rows, whatever it was started with, and
    shuffle in no more tasks than these rows need.
    """
    tasks = max(1, math.ceil(replicas / REPLICAS_PER_TASK))
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    if replicas >= MANY_REPLICAS:
        spark.conf.set("spark.sql.codegen.wholeStage", "true")


@contextmanager
def spark_session(
    name: str, meanwhile: Callable[[], None] = lambda: None
) -> Iterator[SparkSession]:
    """The session that is there already, or one of our own, which ends with the job.

    :param name: of the Spark application.
    :param meanwhile: is called while the JVM starts, which leaves Python idle for seconds.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        _open_stores(running)
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if "SPARK_ENV_LOADED" not in os.environ:  # by hand; spark-submit names the master itself
        builder = builder.master(os.environ.get("MASTER", "local[*]"))
        builder = builder.config("spark.driver.host", "127.0.0.1")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(meanwhile)
        spark = builder.getOrCreate()
        done.result()
    _open_stores(spark)
    try:
        yield spark
    finally:
        spark.stop()


def _open_stores(spark: SparkSession) -> None:
    """Let the session open object stores. What is set so goes to the executors with each task, and
    shows in no command, no log and no page of Spark's.
    """
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in hadoop_settings().items():
        hadoop.set(key, value)
