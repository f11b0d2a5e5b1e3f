"""A function has a verb for its name, or says of what its value is: never a participle alone.

A value has a noun, and what is true or false begins with ``is_`` or ``has_``: see CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.imports import ROOT

FOLDERS = (
    *("dags", "spark_jobs", "plugins/rehome"),
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


NO_VALUES = ("asked", "found", "held", "known", "named", "refused", "seen", "told", "wanted")
"""What no local, parameter or field is called: the word says that something was done, not what the
value is. In two words (``known_topics``) it may stand.
"""
STAY = {
    ("include/rehome/domain/plan/causes/move_cause.py", "held"): "moves.parquet has it",
    ("include/rehome/domain/plan/figures.py", "known"): "summary.json has it",
    ("include/rehome/domain/plan/infeasible.py", "wanted"): "summary.json has it",
    ("include/rehome/domain/run/watched/finding.py", "seen"): "a column of the ledger",
    ("include/rehome/execution/completion/preferred_leaders.py", "refused"): "leaders.json has it",
    ("include/rehome/execution/direct/direct_throttle.py", "refused"): "docs/reference/library.md",
}
"""Values that are stored, or documented, under such a word, each with where."""

_DEFINITION = re.compile(r"^\s*(?:async +)?def +(\w+)", re.MULTILINE)


_TEXTS = re.compile(r'"""[\s\S]*?"""')
_WORD = re.compile(rf"\b_*(?:{'|'.join(NO_VALUES)})_*\b")


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


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Locals, parameters, fields and functions."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield name
            case (
                ast.ExceptHandler(name=str(name))
                | ast.alias(asname=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                yield name


def participles_for_values(source: str) -> list[str]:
    """Parsed is only what has such a word outside of longer texts."""
    if not _WORD.search(_TEXTS.sub("", source)):
        return []
    return [name for name in bound_names(ast.parse(source)) if name.strip("_") in NO_VALUES]


def in_files(folder: str, words: Callable[[str], list[str]]) -> Iterator[tuple[str, str]]:
    """File and word."""
    place = ROOT / folder
    for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
        yield from ((path.relative_to(ROOT).as_posix(), word) for word in words(path.read_text()))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_value_has_a_participle_for_its_name(folder: str) -> None:
    known = {(path, name) for path, name in STAY if path.startswith(f"{folder}/")}
    assert set(in_files(folder, participles_for_values)) == known


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_has_a_participle_for_its_name(folder: str) -> None:
    assert not list(in_files(folder, participles))


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


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "a = found = 1",
        "a = 1; found = 2",
        "found += 1",
        "a, found = 1, 2",
        "found, a = 1, 2",
        "for found in (): ...",
        "a = [found for found in ()]",
        "f = lambda found: 1",
        "f = lambda a, found=1: 1",
        "def f(a, *, found: int = 0): ...",
        "def f(found): ...",
        "def f(**found): ...",
        "def found(): ...",
        "class A:\n    found: int",
        "class A:\n    def f(self):\n        self.found = 1",
        "if (found := 1): ...",
        "with a as found: ...",
        "try: ...\nexcept A as found: ...",
        "import a as found",
        "match a:\n    case {'b': found}: ...",
        "match a:\n    case [*found]: ...",
    ],
)
def test_every_way_to_bind_a_value_is_looked_at(source: str) -> None:
    assert participles_for_values(source) == ["found"]


@pytest.mark.parametrize(
    "source",
    ["known_topics = 1", "f(found=1)", '"""What is\nfound = 1"""', "a = b.found", "'found: 1'"],
)
def test_what_binds_none_is_let(source: str) -> None:
    assert not participles_for_values(source)


def test_an_underscore_makes_no_other_word_of_it() -> None:
    assert participles_for_values("class A:\n    def f(self):\n        self._held = 1") == ["_held"]
