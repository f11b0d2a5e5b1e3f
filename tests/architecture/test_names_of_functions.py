"""A function has a verb for its name, or says of what its value is: never a participle alone.

Values are nouns, and what is true or false begins with ``is_`` or ``has_``: see CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.imports import ROOT

DONE = ("plugins/rehome", "include/rehome/execution")
"""Folders whose names are sorted out. Others follow; none is taken off the list."""

LEFT = {"include/rehome/execution/access/connection_policy.py"}

IRREGULAR = frozenset(
    {
        *("begun", "bound", "broken", "chosen", "done", "drawn", "fallen", "found"),
        *("given", "gone", "held", "hidden", "kept", "known", "left", "lost"),
        *("made", "meant", "paid", "said", "seen", "sent", "shown", "spent"),
        *("spoken", "swept", "taken", "thrown", "told", "understood", "withdrawn", "written"),
    }
)
VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "speed"})
"""Words that end like a participle."""


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


@pytest.mark.parametrize("folder", DONE)
def test_no_function_has_a_participle_for_its_name(folder: str) -> None:
    paths = (path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py"))
    found = {
        path.as_posix(): [
            name for name in names(ast.parse(path.read_text())) if is_participle(name)
        ]
        for path in paths
        if path.as_posix() not in LEFT
    }
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("name", ["found", "_refused", "unfinished", "_seen", "asked"])
def test_a_participle_is_one(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["find", "is_refused", "feed", "asked_by", "_seed"])
def test_a_verb_is_none(name: str) -> None:
    assert not is_participle(name)
