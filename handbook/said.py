"""What an expression of the code says when it runs, as far as its source shows it.

Values are ``{…}``. Constants of other modules, names that a function has set, functions of one
line and what a class of errors adds to each of its errors are put in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path

VALUE = "{…}"
MOST_STEPS = 6
"""From a name to what it stands for."""
_ENDS = (".", "!", "?", ":")
_KEEPS = frozenset({"rstrip", "lstrip", "strip", "capitalize", "removesuffix"})
"""Methods that leave a sentence as it is, or nearly."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = Mapping[str, str | ast.expr]
"""Names of a function: what they stand for, or the expression that says it."""
Read = Callable[[ast.expr], str]


def sentences(parts: Iterable[str]) -> str:
    """Parts one after the other, each with its full stop: as ``RehomeError`` and the pages do."""
    ended = [part if part.endswith((*_ENDS, VALUE)) else f"{part}." for part in parts if part]
    return " ".join(ended)


@dataclass(frozen=True, slots=True)
class Module:
    """Names that a module has set at its beginning."""

    tree: ast.Module
    values: dict[str, ast.expr] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class House:
    """All modules; public names are unique in them."""

    modules: dict[str, Module] = field(default_factory=dict)
    common: Module = field(default_factory=lambda: Module(ast.Module([], [])))

    @classmethod
    def read(cls, paths: Iterable[tuple[str, Path]]) -> House:
        """From files, by their names."""
        house = cls()
        for name, path in paths:
            module = Module(ast.parse(path.read_text()))
            for node in module.tree.body:
                _keep(node, module)
                _keep(node, house.common)
            house.modules[name] = module
        return house

    def is_error(self, name: str) -> bool:
        """Whether it is a class of ``RehomeError``, which joins its parts itself."""
        if name == "RehomeError":
            return True
        found = self.common.classes.get(name)
        return found is not None and any(self.is_error(_name(base)) for base in found.bases)

    def fields(self, name: str) -> list[str]:
        """Of a dataclass, in their order."""
        found = self.common.classes.get(name)
        if found is None:
            return []
        return [
            node.target.id
            for node in found.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        ]


def _keep(node: ast.stmt, module: Module) -> None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        module.values[node.targets[0].id] = node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        module.values[node.target.id] = node.value
    elif isinstance(node, Function):
        module.functions[node.name] = node
    elif isinstance(node, ast.ClassDef):
        module.classes[node.name] = node


def _name(node: ast.expr) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads expressions of one module."""

    house: House
    module: Module

    def text(self, node: ast.expr | str, scope: Scope, steps: int = MOST_STEPS) -> str:
        """What it says; "" = nothing, ``{…}`` = a value."""
        match node:
            case str():
                return node
            case ast.Constant(value=value):
                return "" if value is None else str(value)
            case ast.JoinedStr(values=values):
                return "".join(self.text(each, scope, steps) for each in values)
            case ast.FormattedValue(value=value):
                return self.text(value, scope, steps)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.text(left, scope, steps) + self.text(right, scope, steps)
            case ast.IfExp():
                return self._chosen(node, scope, steps)
            case ast.Lambda(body=body):
                return self.text(body, scope, steps)
            case ast.Tuple(elts=[first, *_]):
                return self.text(first, scope, steps)
            case ast.BoolOp(values=values):
                return max((self.text(each, scope, steps) for each in values), key=len)
        return self._looked_up(node, scope, steps - 1) if steps else VALUE

    def _looked_up(self, node: ast.expr, scope: Scope, steps: int) -> str:
        match node:
            case ast.Name(id=name):
                return self._named(name, scope, steps)
            case ast.Attribute(attr=name) if name.isupper():
                return self._named(name, {}, steps)
            case ast.Call():
                return self._called(node, scope, steps)
        return VALUE

    def _chosen(self, node: ast.IfExp, scope: Scope, steps: int) -> str:
        """The branch that is taken; where that is not known, the first that says something."""
        given = scope.get(node.test.id) if isinstance(node.test, ast.Name) else None
        branches = [self.text(each, scope, steps) for each in (node.body, node.orelse)]
        if isinstance(given, str) and given != VALUE:
            return branches[0 if given else 1]
        if isinstance(node.test, ast.Compare) and not isinstance(node.test.ops[0], ast.Is):
            return branches[1] or branches[0]  # not one, but several
        return branches[0] or branches[1]

    def _named(self, name: str, scope: Scope, steps: int) -> str:
        for values in (scope, self.module.values, self.house.common.values):
            found = values.get(name)
            if isinstance(found, str):
                return found
            if isinstance(found, _SAYING):
                said = self.text(found, {k: v for k, v in scope.items() if k != name}, steps)
                return said if " " in said else VALUE
        return VALUE

    def _called(self, node: ast.Call, scope: Scope, steps: int) -> str:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
            return self.text(node.func.value, scope, steps)
        name = _name(node.func)
        if name == "count_text":
            one, *many = (self.text(each, scope, steps) for each in node.args[1:])
            return f"{VALUE} {many[0] if many else one + 's'}"
        own = self.module.functions if isinstance(node.func, ast.Name) else {}
        function = own.get(name) or self.house.common.functions.get(name)
        said_by = list(returns(function)) if function is not None else []
        if function is None or len(said_by) != 1:
            return VALUE
        given = bound(function, node, scope, lambda each: self.text(each, scope, steps))
        said = self.text(said_by[0], {**scope_of(function, said_by[0].lineno), **given}, steps)
        return said if " " in said else VALUE

    def error(self, name: str, given: ast.Call, scope: Scope) -> str:
        """An error as ``str`` shows it: by its class, and those that this is made from."""
        return self._of_class(name, given, scope, lambda each: self.text(each, scope))

    def _of_class(self, name: str, given: ast.Call, scope: Scope, read: Read) -> str:
        found = self.house.common.classes.get(name)
        init = next((n for n in found.body if _name_of(n) == "__init__"), None) if found else None
        if found is None or not isinstance(init, Function):
            return self._of_class(_name(found.bases[0]), given, scope, read) if found else VALUE
        values = bound(init, given, scope, read)
        if name == "RehomeError":
            return sentences(values.get(each, "") for each in ("what", "state_left", "next_step"))
        above = next(
            (n for n in ast.walk(init) if isinstance(n, ast.Call) and _is_init(n.func)), None
        )
        if above is None:
            return VALUE
        inside = {**scope_of(init), **values}
        return self._of_class(
            _name(found.bases[0]), above, inside, lambda each: self.text(each, inside)
        )


_SAYING = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.IfExp, ast.Call, ast.Name)


def _name_of(node: ast.stmt) -> str:
    return str(getattr(node, "name", ""))


def _is_init(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "__init__"


def returns(function: Function) -> Iterator[ast.expr]:
    """What it may return."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def scope_of(function: Function, line: float = inf) -> dict[str, str | ast.expr]:
    """What the names of a function stand for before a line of it: what is set last."""
    found: dict[str, str | ast.expr] = {}
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        found[each.arg] = VALUE  # nothing of the module has this name here
    for node in _set_in(function):
        if node.lineno >= line:
            break
        if isinstance(node, ast.AugAssign):
            _add(node, found)
        elif isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node.targets[0], ast.Tuple):
            names, values = node.targets[0].elts, getattr(node.value, "elts", [])
            found |= {_name(n): v for n, v in zip(names, values, strict=False)}
    return found


@cache
def _set_in(function: Function) -> list[ast.Assign | ast.AugAssign]:
    nodes = (node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.AugAssign))
    return sorted(nodes, key=lambda node: node.lineno)


def _add(node: ast.AugAssign, found: dict[str, str | ast.expr]) -> None:
    name = getattr(node.target, "id", "")
    before = found.get(name)
    if isinstance(node.op, ast.Add) and isinstance(before, ast.expr):
        found[name] = ast.BinOp(before, ast.Add(), node.value)


def keywords(call: ast.Call, scope: Scope) -> dict[str, ast.expr]:
    """What a call names, also by ``**`` and a dict that its function has set."""
    found: dict[str, ast.expr] = {}
    for each in call.keywords:
        several = scope.get(_name(each.value)) if each.arg is None else None
        if each.arg is not None:
            found[each.arg] = each.value
        elif isinstance(several, ast.Dict):
            named = zip(several.keys, several.values, strict=True)
            found |= {str(key.value): v for key, v in named if isinstance(key, ast.Constant)}
    return found


def bound(function: Function, call: ast.Call, scope: Scope, read: Read) -> dict[str, str]:
    """What each parameter is given, in a call or by default, as text."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if names[:1] == ["self"]:
        del names[0]
    by_default = arguments.defaults
    defaults = dict(zip(names[len(names) - len(by_default) :], by_default, strict=True))
    defaults |= {
        each.arg: value
        for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    }
    given = dict(zip(names, call.args, strict=False))
    given |= keywords(call, scope)
    return {name: read(value) for name, value in {**defaults, **given}.items()}
