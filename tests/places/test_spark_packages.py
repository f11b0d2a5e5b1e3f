"""The packages that Spark is given match its own Hadoop."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.airflow.standalone import ROOT
from rehome.places.spark_packages import AWS_SDK, spark_jars, spark_packages
from rehome.places.stores import EXTRAS


def jars(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).touch()
    return folder


def test_they_are_of_the_hadoop_that_spark_brings() -> None:
    folder = spark_jars()
    assert folder is not None
    (own,) = [path.name for path in folder.glob("hadoop-client-api-*.jar")]
    version = own.removeprefix("hadoop-client-api-").removesuffix(".jar")
    assert version in AWS_SDK, "name the SDK that this Hadoop was built with"
    found = spark_packages("s3")
    assert found.packages.split(",") == [
        f"org.apache.hadoop:hadoop-aws:{version}",
        f"software.amazon.awssdk:s3-transfer-manager:{AWS_SDK[version]}",
        f"software.amazon.awssdk:sts:{AWS_SDK[version]}",
    ]
    assert found.excluded == "software.amazon.awssdk:bundle"
    assert spark_packages("gs").packages == f"org.apache.hadoop:hadoop-gcp:{version}"
    assert spark_packages("abfss").packages == f"org.apache.hadoop:hadoop-azure:{version}"


def test_the_handbook_names_them() -> None:
    page = (ROOT / "docs" / "howto" / "object-store.md").read_text()
    for scheme in EXTRAS:
        found = spark_packages(scheme)
        named = [*found.packages.split(","), *filter(None, [found.excluded])]
        assert all(f"`{each}`" in page for each in named), named


def test_of_another_hadoop_all_that_it_asks_for_is_taken(tmp_path: Path) -> None:
    found = spark_packages("s3", jars(tmp_path, "hadoop-client-api-3.9.9.jar"))
    assert (found.packages, found.excluded) == ("org.apache.hadoop:hadoop-aws:3.9.9", "")


@pytest.mark.parametrize("scheme", ["file", "hdfs", "memory"])
def test_no_store_needs_none(scheme: str) -> None:
    assert spark_packages(scheme).packages == ""


def test_a_spark_that_has_them_or_that_nobody_knows_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = jars(tmp_path, "hadoop-client-api-3.5.0.jar", "hadoop-aws-3.5.0.jar")
    assert spark_packages("s3", own).packages == ""
    assert spark_packages("gs", own).packages == "org.apache.hadoop:hadoop-gcp:3.5.0"
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "elsewhere"))
    assert spark_packages("s3").packages == ""
