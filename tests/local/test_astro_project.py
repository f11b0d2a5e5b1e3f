"""What the Astro CLI builds an image from agrees with what the project is tried with."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _found(pattern: str, file: str) -> str:
    found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert found is not None, f"{file} does not hold {pattern}"
    return found[1]


def test_the_image_has_the_airflow_of_the_requirements() -> None:
    runtime = _found(r"^FROM \S+/runtime:(\d+\.\d+)-\d+$", "Dockerfile")
    assert runtime == _found(r"^apache-airflow==(\d+\.\d+)\.", "requirements.txt")


def test_the_image_has_the_java_that_the_setup_installs() -> None:
    java = _found(r"need java (\S+) ", "bin/setup")
    assert java in (ROOT / "packages.txt").read_text().split()
