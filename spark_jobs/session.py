"""The Spark session of a job, by hand or under spark-submit."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rehome.packaging import REMOTE, build_job_zip
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
    name: str, meanwhile: Callable[[], None] = lambda: None, *, python: bool = False
) -> Iterator[SparkSession]:
    """The session that is there already, or one of our own, which ends with the job.

    Where the environment names a Spark Connect server (``SPARK_REMOTE``), the session is one of
    that server, which goes on when the job has ended.

    :param name: of the Spark application.
    :param meanwhile: is called while Spark starts, which leaves Python idle for seconds.
    :param python: whether the job's own functions run on executors. Those of a server get
        Rehome's sources then; spark-submit has shipped them to others.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        _open_stores(running)
        yield running
        return
    if is_submitted(os.environ):
        os.environ.pop(REMOTE, None)  # of the machine; this job has been given a master
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(meanwhile)
        spark = _builder(name).getOrCreate()
        if python and REMOTE in os.environ:
            _ship_sources(spark)
        done.result()
    _open_stores(spark)
    try:
        yield spark
    finally:
        spark.stop()


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Whether spark-submit has started this process, or the driver of a cluster has: Spark's own
    runner of Python names its gateway, wherever it runs.
    """
    return not environment.keys().isdisjoint(("PYSPARK_GATEWAY_PORT", "SPARK_ENV_LOADED"))


def _builder(name: str) -> SparkSession.Builder:
    from pyspark.sql import SparkSession

    # Without debugging PySpark does not look where in Python each column of a query is written: a
    # gate makes hundreds.
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
    )
    if REMOTE in os.environ:
        return builder
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    if is_submitted(os.environ):  # spark-submit names the master, and Python, itself
        return builder
    master = os.environ.get("MASTER", "local[*]")
    if master.startswith("local"):  # on other machines these say nothing
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.config("spark.driver.host", "127.0.0.1")
    return builder.master(master)


def _ship_sources(spark: SparkSession) -> None:
    with TemporaryDirectory(prefix="rehome-") as scratch:
        archive = build_job_zip(Path(scratch, "rehome.zip"))
        spark.addArtifacts(str(archive), pyfile=True)


def _open_stores(spark: SparkSession) -> None:
    """Let the session open object stores. What is set so goes to the executors with each task, and
    shows in no command, no log and no page of Spark's. A server has credentials of its own.
    """
    if REMOTE in os.environ:
        for key, value in hadoop_settings().items():
            if key.endswith(".impl"):
                spark.conf.set(key, value)
        return
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in hadoop_settings().items():
        hadoop.set(key, value)
