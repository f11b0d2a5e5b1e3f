"""What spark-submit ships with a job: `python -m include.packaging rehome.zip`, --py-files.

Drivers and executors import ``include`` and ``spark_jobs`` from it: they need no checkout.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("include", "spark_jobs")

# A driver of a few seconds: compiling its code thoroughly costs more than it gives back (32
# instead of 52 s of processor time for the whole job on a small cluster).
LOCAL_SPARK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
}
"""Settings of a job whose driver is all there is: master ``local[…]``. Of a large cluster, whole
stages are compiled all the same (spark_jobs/session.py).
"""


def build_job_zip(target: Path) -> Path:
    """Write the sources into ``target`` and return it. Same sources, same bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w") as archive:
        for package in PACKAGES:
            for source in sorted((ROOT / package).rglob("*.py")):
                name = source.relative_to(ROOT).as_posix()
                archive.writestr(zipfile.ZipInfo(name), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return target


if __name__ == "__main__":
    build_job_zip(Path(sys.argv[1]))
