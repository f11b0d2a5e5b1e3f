"""What spark-submit ships with a job: ``PYTHONPATH=include python -m rehome.packaging rehome.zip``.

Drivers and executors import ``rehome`` and ``spark_jobs`` from it: they need no checkout.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

_ENGINE = Path(__file__).resolve().parent
_INSTALLED = _ENGINE / "project"
ROOT = _INSTALLED if _INSTALLED.is_dir() else _ENGINE.parents[1]
"""The folder of ``spark_jobs/`` and ``dags/``: a checkout, or what the wheel brings of it."""
PROJECT = (
    Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser()
    if _INSTALLED.is_dir()
    else ROOT
)
"""Paths in settings are relative to it: to a checkout, or else to Airflow's home."""
PACKAGES = (_ENGINE, ROOT / "spark_jobs")
JOB_PATH = f"{ROOT}:{_ENGINE.parent}"
"""``PYTHONPATH`` of a job that runs without a zip."""
_KINDS = ("*.py", "*.json")
"""Code, and the suites of the gates."""

REMOTE = "SPARK_REMOTE"
"""Where PySpark looks for the address of a Spark Connect server, which may have a token in it."""

CLASS_ARCHIVE = ROOT / ".cache" / "spark" / "classes.jsa"
"""Spark's classes, as set-up has archived them (local/spark_archive.py)."""

# A driver of a few seconds: compiling its code thoroughly costs more than it gives back (32
# instead of 52 s of processor time for the whole job on a small cluster).
DRIVER_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def local_spark() -> dict[str, str]:
    """Settings of a job whose driver is all there is: master ``local[…]``. Of a large cluster,
    whole stages are compiled all the same (spark_jobs/session.py).
    """
    options = [DRIVER_JVM]
    if CLASS_ARCHIVE.exists() and " " not in str(CLASS_ARCHIVE):  # Spark splits at blanks
        # Where Java or the class path is another one, the JVM goes on without it, and says so: not
        # among what the job prints.
        options += [
            f"-XX:SharedArchiveFile={CLASS_ARCHIVE}",
            "-Xlog:cds=off",
            "-Xlog:cds+dynamic=off",
        ]
    return {
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.sql.codegen.wholeStage": "false",
        "spark.ui.enabled": "false",
    }


def build_job_zip(target: Path) -> Path:
    """Write the sources into ``target`` and return it. Same sources, same bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for package in PACKAGES:
            if not (package / "__init__.py").exists():  # a portion: Python finds none in zips
                archive.writestr(zipfile.ZipInfo(f"{package.name}/__init__.py"), b"")
            sources = {path for kind in _KINDS for path in package.rglob(kind)}
            if package == _ENGINE:
                sources -= set(_INSTALLED.rglob("*"))
            for source in sorted(sources):
                name = source.relative_to(package.parent).as_posix()
                archive.writestr(zipfile.ZipInfo(name), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return target


if __name__ == "__main__":
    build_job_zip(Path(sys.argv[1]))
