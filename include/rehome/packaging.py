"""What spark-submit ships with a job: ``PYTHONPATH=include python -m rehome.packaging rehome.zip``.

Drivers and executors import ``rehome`` and ``spark_jobs`` from it: they need no checkout.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The project's folder."""
PACKAGES = (ROOT / "include" / "rehome", ROOT / "spark_jobs")
JOB_PATH = f"{ROOT}:{ROOT / 'include'}"
"""``PYTHONPATH`` of a job that runs from this folder, without a zip."""
_KINDS = ("*.py", "*.json")
"""Code, and the suites of the gates."""

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
        archive.writestr(zipfile.ZipInfo("rehome/__init__.py"), b"")  # zips have no portions
        for package in PACKAGES:
            sources = (path for kind in _KINDS for path in package.rglob(kind))
            for source in sorted(sources):
                name = source.relative_to(package.parent).as_posix()
                archive.writestr(zipfile.ZipInfo(name), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return target


if __name__ == "__main__":
    build_job_zip(Path(sys.argv[1]))
