"""What the code says of itself: docstrings of parameters and of an enum's members, DAG files."""

from __future__ import annotations

import ast
import enum
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def param_docs(subject: type) -> dict[str, str]:
    """Name → text of each ``:param name:`` in a class's docstring, on one line."""
    found = re.findall(
        r"^:param (\w+): (.*?)(?=^:|^\S|\Z)", inspect.getdoc(subject) or "", re.M | re.S
    )
    return {name: " ".join(text.split()) for name, text in found}


def member_docs(subject: type[enum.Enum]) -> dict[str, str]:
    """Value → docstring of each member of an enum, in their order.

    :raises ValueError: a member has none.
    """
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(subject))).body
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            texts[statement.targets[0].id] = _text(after)
    missing = [member.name for member in subject if not texts.get(member.name)]
    if missing:
        raise ValueError(f"{subject.__name__}: no docstring below {', '.join(missing)}")
    return {member.value: texts[member.name] for member in subject}


def _text(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
    return ""


def dags() -> Iterator[Any]:
    """Every DAG of the project, by name; their files are read as Airflow reads them."""
    for path in sorted((ROOT / "dags").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"handbook_dag_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if hasattr(module, "dag"):  # the others are made for clusters of a file
            yield module.dag


def signature(function: Callable[..., Any]) -> str:
    """Names, and defaults where there are some: types are in the code."""
    parts, keyword_only = [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        star = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        given = parameter.default
        shown = given.__name__ if inspect.isfunction(given) else repr(given)
        parts.append(f"{star}{name}" if given is parameter.empty else f"{star}{name}={shown}")
    return f"({', '.join(parts)})"


def inline(text: str) -> str:
    """A docstring's text on one line, its references as code."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`")
