"""What CONTRIBUTING.md calls simple stays so: each example still applies, works, and is small.

An example is the patch of a commit, with its tests. Where one no longer applies, because the code
around it has changed: ``git apply -C1 --reject`` it, put the rest in by hand, run its tests, and
write it anew by ``git diff -U2``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.imports import ROOT

EXAMPLES = {path.stem: path for path in (Path(__file__).parent / "examples").glob("*.patch")}
MOST_FILES = 8
"""Outside of tests and of what is generated."""
OF_PYTEST = ("-q", "-p", "no:cacheprovider", "--no-header", "-m", "")
COPIED = (
    *("include", "plugins", "dags", "spark_jobs", "tests", "docs"),
    *("benchmarks", "handbook", "local", "world"),
)


def files_of(example: Path) -> list[str]:
    return re.findall(r"^\+\+\+ b/(.+)$", example.read_text(), re.M)


def is_a_test(file: str) -> bool:
    return file.startswith("tests/")


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """The code and its documents as they are here, in a folder of its own."""
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_touches_few_files(name: str) -> None:
    touched = [file for file in files_of(EXAMPLES[name]) if not is_a_test(file)]
    assert 0 < len(touched) <= MOST_FILES, touched


@pytest.mark.parametrize("name", EXAMPLES)
def test_contributing_names_each_file_of_an_example(name: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert f"(tests/architecture/examples/{name}.patch)" in text
    named = {*re.findall(r"\]\((\S+?)\)", text)}
    code = {file for file in files_of(EXAMPLES[name]) if file.endswith(".py")}
    changed = {file for file in code if not is_a_test(file) and (ROOT / file).exists()}
    assert {file for file in changed if file not in named} == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_applies_and_its_tests_pass(name: str, copy: Path) -> None:
    example = EXAMPLES[name]
    outside = os.environ | {"GIT_CEILING_DIRECTORIES": str(copy.parent)}
    subprocess.run(["git", "apply", "-C1", str(example)], cwd=copy, env=outside, check=True)
    tests = [file for file in files_of(example) if Path(file).name.startswith("test_")]
    env = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'plugins'}"}
    command = [sys.executable, "-m", "pytest", *OF_PYTEST, *tests]
    ended = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-1_000:]
