"""Spark's own reading of what spark-submit was given, up to where it would hand it over."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.java_gateway import launch_gateway

from tests.session.spark_session import QUICK_JVM


@dataclass(frozen=True)
class Prepared:
    """What Spark has made of the arguments.

    :param main: the class that would submit the application; of a client, that runs it.
    :param arguments: of that class.
    """

    main: str
    arguments: list[str]
    conf: Mapping[str, str]


class DrySubmit:
    """``org.apache.spark.deploy.SparkSubmit`` in a JVM of its own. It starts no application."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def prepared(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Prepared:
        """Raises what Spark says of arguments that do not go together."""
        listed, known = self._jvm.java.util.ArrayList(), self._jvm.java.util.HashMap()
        for argument in arguments:
            listed.add(argument)
        for name, value in environment.items():
            known.put(name, value)
        scala = self._jvm.scala.jdk.javaapi.CollectionConverters
        variables = getattr(self._jvm.scala.Predef.Map(), "from")(scala.asScala(known))
        deploy = self._jvm.org.apache.spark.deploy
        parsed = deploy.SparkSubmitArguments(scala.asScala(listed).toSeq(), variables)
        nothing = self._jvm.scala.Option.empty()
        found = deploy.SparkSubmit().prepareSubmitEnvironment(parsed, nothing)
        conf = {
            pair.productElement(0): pair.productElement(1)
            for pair in found.productElement(2).getAll()
        }
        return Prepared(found.productElement(3), list(scala.asJava(found.productElement(0))), conf)


@contextmanager
def dry_submit() -> Iterator[DrySubmit]:
    """Of Spark as it is installed here."""
    before = os.environ.get("SPARK_SUBMIT_OPTS")
    os.environ["SPARK_SUBMIT_OPTS"] = QUICK_JVM
    try:
        gateway = launch_gateway()
    finally:
        os.environ.pop("SPARK_SUBMIT_OPTS")
        if before is not None:
            os.environ["SPARK_SUBMIT_OPTS"] = before
    try:
        yield DrySubmit(gateway.jvm)
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # its end is the end of the JVM
        gateway.proc.wait(60)
