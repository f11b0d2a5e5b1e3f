"""What Spark needs beside itself to open a store: the one place that names these packages."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rehome.places.stores import EXTRAS

_HADOOP = re.compile(r"hadoop-client-api-(.+)\.jar")
_MODULE = {"s3": "hadoop-aws", "gs": "hadoop-gcp", "abfss": "hadoop-azure"}
AWS_SDK = {"3.5.0": "2.35.4"}
"""Hadoop's version → that of the SDK it was built with (aws-java-sdk-v2.version of its pom)."""


@dataclass(frozen=True, slots=True)
class SparkPackages:
    """Maven coordinates, parted by commas, as spark-submit takes them."""

    packages: str = ""
    excluded: str = ""


def spark_packages(scheme: str, jars: Path | None = None) -> SparkPackages:
    """What spark-submit is to fetch for URIs of a scheme: nothing where Spark has it.

    :param jars: the folder with Spark's own jars; None = of this machine's Spark.
    """
    store = EXTRAS.get(scheme)
    folder = jars or spark_jars()
    if store is None or folder is None:
        return SparkPackages()
    names = [path.name for path in folder.glob("hadoop-*.jar")]
    versions = [match[1] for match in map(_HADOOP.fullmatch, names) if match]
    module = _MODULE[store]
    if not versions or any(name.startswith(f"{module}-") for name in names):
        return SparkPackages()
    (version,) = versions
    packages = [f"org.apache.hadoop:{module}:{version}"]
    sdk = AWS_SDK.get(version)
    if store == "s3" and sdk is not None:
        # Hadoop asks for all of AWS's SDK, 600 MB and more. These are what it uses of it: 19 MB.
        packages += [
            f"software.amazon.awssdk:{part}:{sdk}" for part in ("s3-transfer-manager", "sts")
        ]
        return SparkPackages(",".join(packages), "software.amazon.awssdk:bundle")
    return SparkPackages(",".join(packages))


def spark_jars() -> Path | None:
    """Where the jars of this machine's Spark are; None = there is none."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home, "jars")
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    return Path(places[0], "jars") if places else None
