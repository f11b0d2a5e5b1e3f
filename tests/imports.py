"""What a source file imports, and what a test file uses by that."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"

READS_DAGS = "airflow.dag_processing.dagbag.DagBag"

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CHECKERS_ONLY = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


class Imported(NamedTuple):
    """A name that is imported, dotted; ``from a import b`` gives ``a.b``, as b may be a module.

    :param at_import: whether importing the file imports it.
    :param in_function: whether a function does.
    """

    name: str
    at_import: bool
    in_function: bool


class Facts(NamedTuple):
    """What tests of the architecture ask of a file.

    :param public_names: classes, types and constants that it defines.
    """

    imports: tuple[Imported, ...]
    public_names: frozenset[str]


@cache
def facts_of(path: Path) -> Facts:
    """A file is read and parsed once for all tests."""
    tree = ast.parse(path.read_text())
    return Facts(tuple(all_imports(tree)), frozenset(public_names(tree)))


def all_imports_of(path: Path) -> tuple[Imported, ...]:
    """All imports of a file."""
    return facts_of(path).imports


@cache
def imports_of(path: Path) -> tuple[tuple[str, bool], ...]:
    """As :func:`imports` of a file."""
    return tuple(one[:2] for one in all_imports_of(path))


def imports(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Every name imported below ``node``, and whether importing the file imports it."""
    yield from (one[:2] for one in all_imports(node))


def all_imports(
    node: ast.AST, at_import: bool = True, in_function: bool = False
) -> Iterator[Imported]:
    """Every name imported below ``node``.

    Class bodies, ``if`` and ``try`` run on import too; functions and ``if TYPE_CHECKING`` do not.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Imported(alias.name, at_import, in_function) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"relative import in line {child.lineno}"
            names = (f"{child.module}.{alias.name}" for alias in child.names)
            yield from (Imported(name, at_import, in_function) for name in names)
        elif not isinstance(child, ast.expr):  # which has none
            inside = in_function or isinstance(child, FUNCTIONS)
            yield from all_imports(child, at_import and _runs_on_import(child), inside)


def public_names(tree: ast.Module) -> set[str]:
    """Classes, types and constants that a module defines, not what it imports."""
    found: set[str] = set()
    for node in tree.body:
        for part in [*node.body, *node.orelse] if isinstance(node, ast.If) else [node]:
            if isinstance(part, ast.ClassDef):
                found.add(part.name)
            elif isinstance(part, ast.Assign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                names = (name for target in targets for name in ast.walk(target))
                found |= {name.id for name in names if isinstance(name, ast.Name)}
    return {name for name in found if name[0].isupper()}


def _runs_on_import(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) not in CHECKERS_ONLY
    return not isinstance(node, FUNCTIONS)


def folder_of(name: str) -> str:
    """The folder at the top that a module of ours lies in, by its dotted name."""
    package, *inner = name.split(".")
    if package != "rehome":
        return package
    there = (ROOT / "include" / "rehome").joinpath(*inner[:1])
    return "include" if there.is_dir() or there.with_suffix(".py").exists() else "plugins"


@cache
def sources() -> dict[str, Path]:
    """Dotted name → file, of all code that is tested; packages are named as their folder."""
    found = {}
    for folder in ("include/rehome", "plugins/rehome", "dags", "spark_jobs", "world"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to((ROOT / folder).parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def helpers() -> dict[str, Path]:
    """Dotted name → file, of all in tests/."""
    paths = TESTS.rglob("*.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}


def imported(path: Path, known: Collection[str]) -> set[str]:
    """Which of the known modules a file imports, wherever in it."""
    names = [name for name, _ in imports_of(path)]
    return {end for name in names for end in (name, name.rpartition(".")[0]) if end in known}


@cache
def used_by(file: str) -> frozenset[str]:
    """What a test imports, by its helpers and fixtures too, and by DAGs if it has those."""
    path = TESTS / f"{file}.py"
    rooms = [folder for folder in path.parents if TESTS in folder.parents]
    ahead = [path, *(conftest for room in rooms for conftest in room.glob("conftest.py"))]
    seen: set[Path] = set()
    found: set[str] = set()
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            found |= imported(one, sources())
            ahead += [helpers()[name] for name in imported(one, helpers())]
            if imported(one, (READS_DAGS,)):
                ahead += (ROOT / "dags").glob("*.py")
    return frozenset(found)


@cache
def imports_directly(name: str) -> frozenset[str]:
    return frozenset(imported(sources()[name], sources()))


@cache
def near(file: str) -> frozenset[str]:
    """What a test imports, and what that imports."""
    return used_by(file).union(*map(imports_directly, used_by(file)))
