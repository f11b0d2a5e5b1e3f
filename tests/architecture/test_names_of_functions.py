"""A function has a verb for its name, or says of what its value is: never a participle alone.

Values are nouns, and what is true or false begins with ``is_`` or ``has_``: see CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.imports import ROOT

PLANNING = "include/rehome/planning"
NOT_YET = frozenset(
    {
        ("effort/work.py", "spent"),
        ("model/layout.py", "changed"),
        ("model/packing.py", "saved"),
        *(("model/topic_bands.py", name) for name in ("_banded", "_joined", "_summed", "stacked")),
        ("placement/topic_counts.py", "banded"),
        *(("programs/flow_lp.py", name) for name in ("lifted", "moved")),
        ("search/broker_shed.py", "chosen"),
        *(("search/state.py", name) for name in ("added", "copied", "saved")),
        *(("search/topic_repair.py", name) for name in ("_accepted", "_matched")),
    }
)
"""Modules and functions of the planner whose names are not sorted out yet."""

FOLDERS = (
    "plugins/rehome",
    *(
        each.relative_to(ROOT).as_posix()
        for each in sorted((ROOT / "include" / "rehome").iterdir())
        if "__" not in each.name
    ),
)

IRREGULAR = frozenset(
    {
        *("begun", "bound", "broken", "chosen", "done", "drawn", "fallen", "found"),
        *("given", "gone", "held", "hidden", "kept", "known", "left", "lost"),
        *("made", "meant", "paid", "said", "seen", "sent", "shown", "spent"),
        *("spoken", "swept", "taken", "thrown", "told", "understood", "withdrawn", "written"),
    }
)
VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"})
"""Words that end like a participle."""


_DEFINITION = re.compile(r"^\s*(?:async +)?def +(\w+)", re.MULTILINE)


def is_participle(name: str) -> bool:
    word = name.strip("_").removeprefix("un")
    return word in IRREGULAR or (word.isalpha() and word.endswith("ed") and word not in VERBS)


def names(tree: ast.AST) -> Iterator[str]:
    """Functions and methods; a property is a value, and pytest and Airflow have no say here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kinds = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
            if not kinds & {"property", "cached_property", "setter"}:
                yield node.name


def participles(source: str) -> list[str]:
    """Names of functions that are one. Parsed is only what has such a word after ``def``."""
    if not any(map(is_participle, _DEFINITION.findall(source))):
        return []
    return [name for name in names(ast.parse(source)) if is_participle(name)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_has_a_participle_for_its_name(folder: str) -> None:
    place = ROOT / folder
    paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
    wrong = {
        (path.relative_to(ROOT / PLANNING if folder == PLANNING else ROOT).as_posix(), name)
        for path in paths
        for name in participles(path.read_text())
    }
    assert wrong == (NOT_YET if folder == PLANNING else set())


@pytest.mark.parametrize("name", ["found", "_refused", "unfinished", "_seen", "asked"])
def test_a_participle_is_one(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["find", "is_refused", "feed", "asked_by", "_seed"])
def test_a_verb_is_none(name: str) -> None:
    assert not is_participle(name)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class A:\n    async def  known(self): ...", ["known"]),
        ("class A:\n    def found(self): ...\n    def find(self): ...", ["found"]),
        ("class A:\n    @property\n    def found(self): ...", []),
        ('TEXT = """\ndef found(): ...\n"""', []),
    ],
)
def test_functions_and_methods_are_looked_at(source: str, found: list[str]) -> None:
    assert participles(source) == found
