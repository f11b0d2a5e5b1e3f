"""Spark's classes are archived at set-up, and jobs that find no archive go on without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome import packaging
from rehome.packaging import DRIVER_JVM, local_spark

OPTIONS = "spark.driver.extraJavaOptions"


def test_a_job_maps_the_archive_where_set_up_has_made_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "classes.jsa"
    monkeypatch.setattr(packaging, "CLASS_ARCHIVE", archive)
    assert local_spark()[OPTIONS] == DRIVER_JVM
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in local_spark()[OPTIONS]


def test_an_archive_whose_path_spark_would_split_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "my classes.jsa"
    archive.touch()
    monkeypatch.setattr(packaging, "CLASS_ARCHIVE", archive)
    assert local_spark()[OPTIONS] == DRIVER_JVM
