"""Errors pass between processes, as of a pool or of Airflow's, with all that they say and hold."""

from __future__ import annotations

import ast
import collections.abc
import copy
import enum
import importlib
import inspect
import pickle
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from rehome.errors import RehomeError
from rehome.ledger.stores.watched.starts import StartRecord
from tests.imports import sources

ONLY_FOR_CHECKERS = {"StartRecord": StartRecord}
"""Types that a module imports for checkers of types alone."""
OF_ONE_VALUE = {
    Any: "x",
    str: "x",
    int: 7,
    float: 0.5,
    bool: True,
    datetime: datetime(2030, 1, 1, tzinfo=UTC),
}


@cache
def error_classes() -> tuple[type[Exception], ...]:
    """All that the project defines, by the modules that define classes with a base of that name."""
    found = []
    for name, path in sorted(sources().items()):
        text = path.read_text()
        if name.split(".")[0] in ("rehome", "spark_jobs") and "Error" in text:
            found += [getattr(importlib.import_module(name), kind) for kind in _defined(text)]
    return tuple(each for each in found if issubclass(each, Exception))


def _defined(text: str) -> Iterator[str]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and any(
            ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases
        ):
            yield node.name


def example_of(kind: Any) -> Any:
    """A value of a type, by what it says that it needs."""
    of: Any = typing.get_origin(kind) or kind
    within = typing.get_args(kind)
    if of in (typing.Union, types.UnionType):
        return example_of(within[0])
    if of in OF_ONE_VALUE:
        return OF_ONE_VALUE[of]
    if of is tuple and within[1:] not in ((), (...,)):
        return tuple(map(example_of, within))
    if of in (tuple, collections.abc.Sequence, collections.abc.Collection):
        return (example_of(within[0]),)
    if of is frozenset:
        return frozenset({example_of(within[0])})
    if of in (dict, collections.abc.Mapping):
        return {example_of(within[0]): example_of(within[1])}
    if issubclass(of, enum.Enum):
        return next(iter(of))
    if is_dataclass(of):
        return _example_of_dataclass(of)
    if hasattr(of, "_fields"):
        return of(*map(example_of, typing.get_type_hints(of).values()))
    raise NotImplementedError(kind)


def _example_of_dataclass(kind: Any) -> Any:
    types_of = typing.get_type_hints(kind)
    needed = [each.name for each in fields(kind) if _is_needed(each)]
    return kind(**{name: example_of(types_of[name]) for name in needed})


def _is_needed(field: Any) -> bool:
    return bool(field.init and field.default is MISSING and field.default_factory is MISSING)


def made(kind: type[Exception]) -> Exception:
    """An error as it is raised, by the types of all that its class takes."""
    start = next(vars(each)["__init__"] for each in kind.__mro__ if "__init__" in vars(each))
    if not inspect.isfunction(start):
        return kind("x")
    hints = typing.get_type_hints(start, localns=ONLY_FOR_CHECKERS)
    given, named = [], {}
    for name, parameter in list(inspect.signature(start).parameters.items())[1:]:
        value = example_of(hints[name])
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = value
        elif parameter.kind is not parameter.VAR_KEYWORD:
            given.append(value)
    return kind(*given, **named)


def test_every_class_of_errors_is_looked_at() -> None:
    assert len(error_classes()) > 60
    assert RehomeError in error_classes()


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__qualname__)
def test_an_error_is_the_same_in_another_process(kind: type[Exception]) -> None:
    error = made(kind)
    error.add_note("a note")
    copies = [pickle.loads(pickle.dumps(error, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)]
    for found in [*copies, copy.copy(error)]:
        assert type(found) is kind
        assert (str(found), found.args) == (str(error), error.args)
        assert vars(found) == vars(error)
