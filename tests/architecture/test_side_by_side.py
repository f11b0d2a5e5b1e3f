"""A process of tests that dies: the run goes on without it, ends, and names the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIES = "import os\ndef test_dies(): os._exit(3)\n"
LIVES = "def test_before(): pass\n{dies}def test_after(): pass\n"
OTHER = "def test_a(): pass\ndef test_b(): pass\n"


def run(folder: Path, processes: int) -> tuple[int, str]:
    """A run as `make test` has them, of the files in a folder; without an end it raises."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "tests.session.side_by_side", "-n", str(processes), "--dist", "loadfile"]
    command += ["--no-loadscope-reorder", "-c", "pytest.ini", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "processes", "passed"),
    [
        ({"dies": LIVES.format(dies=DIES), "one": OTHER, "two": OTHER, "three": OTHER}, 2, 8),
        ({"one": OTHER, "zz_dies": LIVES.format(dies=DIES)}, 2, 4),
        ({"a": OTHER, "dies": LIVES.format(dies=DIES), "one": OTHER}, 1, 6),
    ],
    ids=["among others", "at the end", "in one process"],
)
def test_a_process_that_dies_fails_its_test_alone(
    tmp_path: Path, files: dict[str, str], processes: int, passed: int
) -> None:
    for name, text in files.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    code, said = run(tmp_path, processes)
    assert code == 1, said
    assert said.count("dies.py::test_dies - worker") == 1, said
    assert said.rstrip().splitlines()[-1].startswith(f"1 failed, {passed} passed"), said
