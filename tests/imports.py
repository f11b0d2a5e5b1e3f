"""What a source file imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
CHECKERS_ONLY = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


@cache
def imports_of(path: Path) -> tuple[tuple[str, bool], ...]:
    """As :func:`imports` of a file, which is read once."""
    return tuple(imports(ast.parse(path.read_text())))


def imports(node: ast.AST, at_import: bool = True) -> Iterator[tuple[str, bool]]:
    """Every name imported below ``node``, dotted, and whether importing the file imports it.

    ``from a import b`` gives ``a.b``, as b may be a module. Class bodies, ``if`` and ``try`` run
    on import too; functions and ``if TYPE_CHECKING`` do not.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_import) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"relative import in line {child.lineno}"
            yield from ((f"{child.module}.{alias.name}", at_import) for alias in child.names)
        else:
            yield from imports(child, at_import and _runs_on_import(child))


def _runs_on_import(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) not in CHECKERS_ONLY
    return not isinstance(node, FUNCTIONS)
