"""The numbers of the planner's search: constants, and fields of options."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rehome.planning.effort.optional_parts import THOROUGH

PACKAGES = ("effort", "programs", "rebalance", "search")
OTHERS = (
    "budget_curve",
    "move_reasons",
    "target_costs",
)
"""Modules that decide nothing about plans."""


@dataclass(frozen=True)
class Number:
    """A number of a module: a constant, or a field of a constant that is a dataclass.

    :ivar field: "" = the constant itself.
    """

    module: ModuleType
    constant: str
    field: str

    @property
    def name(self) -> str:
        """Module and name, as in docs/benchmarks.md."""
        folder, file = self.module.__name__.split(".")[-2:]
        return ".".join(part for part in (f"{folder}/{file}", self.constant, self.field) if part)

    @property
    def whole(self) -> Any:
        """The constant."""
        return getattr(self.module, self.constant)

    @property
    def value(self) -> Any:
        """As it is in the module now."""
        return getattr(self.whole, self.field) if self.field else self.whole

    @contextmanager
    def times(self, factor: float) -> Iterator[None]:
        """Scale it in all modules that use it."""
        old = self.whole
        new = scaled(self.value, factor)
        if self.field:
            new = dataclasses.replace(old, **{self.field: new})
        users = [
            module
            for name, module in list(sys.modules.items())
            if name.startswith("rehome.planning") and getattr(module, self.constant, None) is old
        ]
        try:
            for module in users:
                setattr(module, self.constant, new)
            yield
        finally:
            for module in users:
                setattr(module, self.constant, old)


def scaled(value: Any, factor: float) -> Any:
    """A number, or each number of a tuple, times the factor."""
    if isinstance(value, tuple):
        return tuple(scaled(one, factor) for one in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    if 1 < value < 2:
        return 1 + (value - 1) * factor
    return min(value * factor, 1.0) if 0 <= value <= 1 else value * factor


def numbers() -> list[Number]:
    """All numbers of the packages that search."""
    found = []
    for package in PACKAGES:
        whole = importlib.import_module(f"rehome.planning.{package}")
        for info in pkgutil.iter_modules(whole.__path__):
            if info.name in OTHERS:
                continue
            module = importlib.import_module(f"{whole.__name__}.{info.name}")
            for name in _assigned(module):
                value = getattr(module, name)
                if value is THOROUGH:
                    continue  # the cases are planned fast
                if dataclasses.is_dataclass(value):
                    fields = [field.name for field in dataclasses.fields(value)]
                    found += [
                        Number(module, name, field)
                        for field in fields
                        if is_numeric(getattr(value, field))
                    ]
                elif is_numeric(value):
                    found.append(Number(module, name, ""))
    return found


def is_numeric(value: Any) -> bool:
    """Whether it is a number, or a tuple of numbers or of such tuples."""
    if isinstance(value, tuple):
        return bool(value) and all(is_numeric(one) for one in value)
    if isinstance(value, bool) or value == float("inf"):
        return False
    return isinstance(value, int | float)


def _assigned(module: ModuleType) -> list[str]:
    """Constants that a module itself assigns, apart from numbers of rows."""
    names: list[str] = []
    for node in ast.parse(Path(str(module.__file__)).read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            names += [part.id for part in parts if isinstance(part, ast.Name)]
    return [name for name in names if name.isupper() and not name.endswith("_ROW")]


@contextmanager
def read_of(numbers: Sequence[Number]) -> Iterator[set[str]]:
    """The names of those numbers that are read meanwhile. Constants count as read: they say how
    exact numbers are, everywhere.
    """
    found = {n.name for n in numbers if not n.field}
    names = {(id(n.whole), n.field): n.name for n in numbers}

    def read(self: Any, field: str) -> Any:
        if name := names.get((id(self), field)):
            found.add(name)
        return object.__getattribute__(self, field)

    classes = {type(n.whole) for n in numbers if n.field}
    for options in classes:
        type.__setattr__(options, "__getattribute__", read)
    try:
        yield found
    finally:
        for options in classes:
            type.__delattr__(options, "__getattribute__")
