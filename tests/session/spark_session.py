"""One Spark session for all tests that need it: starting one takes longer than using it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rehome.packaging import local_spark
from tests.session.needs import Need, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A JVM that works for seconds is better off without compiling for hours: a third of the CPU time.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": local_spark()["spark.driver.extraJavaOptions"],
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    # Each query's plan is written out as text otherwise, for a UI that is not there.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "10",
    "spark.sql.session.timeZone": "UTC",
}


def quick_spark() -> str:
    """SPARK_SUBMIT_OPTS, so that what `spark-submit` starts is as quick. Operators pass the JVM's
    options themselves. A directory of settings would change the class path, and a JVM uses an
    archive of classes only with the class path that it was made with.
    """
    settings = {key: value for key, value in QUICK.items() if not key.endswith("JavaOptions")}
    return " ".join(f"-D{key}={value}" for key, value in settings.items())


@pytest.fixture(scope="session")
@needs(Need.SPARK)
def spark() -> Iterator[SparkSession]:
    """A local session of two threads; tests that run the job in this process share it."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # It speaks when the interpreter ends, and what it would write to is closed by then.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    builder = SparkSession.builder.master("local[2]").appName("rehome-tests").config(map=QUICK)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
