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


def applied(folder: Path, *words: str) -> None:
    """Apply examples to the code in a folder, which is no part of a repository around it."""
    outside = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(["git", "apply", "-C1", *words], cwd=folder, env=outside, check=True)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """The code and its documents as they are here, in a folder of its own.

    With what is compiled: Python takes it as it is, for a copy is as old as what it is of.
    """
    for name in COPIED:
        # Python writes a file under such a name first, beside these tests.
        unfinished = shutil.ignore_patterns("*.pyc.*")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unfinished)
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


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_applies_without_the_others(name: str) -> None:
    applied(ROOT, "--check", str(EXAMPLES[name]))


@pytest.mark.slow
def test_the_tests_of_the_examples_pass(copy: Path) -> None:
    """In one copy and one process, which takes longer to start than they do."""
    applied(copy, *map(str, EXAMPLES.values()))
    files = [file for example in EXAMPLES.values() for file in files_of(example)]
    tests = [file for file in files if Path(file).name.startswith("test_")]
    env = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'plugins'}"}
    command = [sys.executable, "-m", "pytest", *OF_PYTEST, *tests]
    ended = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3_000:] + ended.stderr[-1_000:]
