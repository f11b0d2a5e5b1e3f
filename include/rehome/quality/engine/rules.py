"""Rules as data: each is one or several expectations of Great Expectations on one table.

They are defined only in suites/<gate>/<table>.json, in Great Expectations' own format. The meta
data of an expectation describe its rule:

- ``rule``: its name. The rule holds where all of its expectations do.
- ``remedy``: what an operator can do; absent if only a defect of the planner can break the rule.
- ``shows``: columns to show in addition to the keys, which are defined once per table.
- ``only_for``: the rule applies only if this name is given (see :func:`rules_of`); absent: always.

``$level`` is replaced by a level of the racks, ``$resource`` and ``$words`` by a resource: such an
expectation is repeated for each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from rehome.domain.resources import RESOURCE_NAMES, Resource

DEFECT = "This is a defect of the planner: keep the plan's files and report it."
"""The remedy of rules that no operator can have broken."""

_LEVEL, _RESOURCE, _WORDS = "$level", "$resource", "$words"
_FOLDER = files("rehome.quality").joinpath("suites")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One of Great Expectations' expectations.

    :param type: as Great Expectations calls it, for example ``expect_column_values_to_be_null``.
    :param kwargs: its arguments, as JSON.
    """

    type: str
    kwargs: str

    def arguments(self) -> dict[str, Any]:
        """The kwargs as plain types."""
        arguments: dict[str, Any] = json.loads(self.kwargs)
        return arguments


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on each row of a table, with a remedy.

    :param keys: columns that identify a row.
    :param shows: further columns to show of a row that breaks it.
    :param only_for: see the module; "" = always.
    """

    name: str
    table: str
    keys: tuple[str, ...]
    remedy: str
    expectations: tuple[Expectation, ...]
    shows: tuple[str, ...] = ()
    only_for: str = ""


def rules_of(
    gate: str, tables: Collection[str], applies_to: Collection[str] = ()
) -> tuple[Rule, ...]:
    """The rules of a gate on these tables that apply, in their order.

    :param applies_to: names that select rules by their ``only_for``.
    """
    every = (rule for table in tables for rule in _suite(gate, table))
    return tuple(rule for rule in every if not rule.only_for or rule.only_for in applies_to)


def at_level(rule: Rule, level: int) -> Rule:
    """The rule for one level of the racks; 1 is the topmost. Rules without ``$level`` are
    unchanged.
    """
    return _filled_in(rule, {_LEVEL: str(level)})


def about_resource(rule: Rule, resource: Resource) -> Rule:
    """The rule for one resource. Rules without ``$resource`` are unchanged."""
    words = RESOURCE_NAMES[resource].removesuffix(" per second")
    return _filled_in(rule, {_RESOURCE: resource.value, _WORDS: words})


def _filled_in(rule: Rule, values: Mapping[str, str]) -> Rule:
    def fill(text: str) -> str:
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    return replace(
        rule,
        name=fill(rule.name),
        expectations=tuple(Expectation(e.type, fill(e.kwargs)) for e in rule.expectations),
        shows=tuple(map(fill, rule.shows)),
    )


def suites() -> list[Traversable]:
    """The files of all suites, in the order of their names."""
    gates = sorted(_FOLDER.iterdir(), key=lambda path: path.name)
    return [
        path
        for gate in gates
        if gate.is_dir()
        for path in sorted(gate.iterdir(), key=lambda path: path.name)
    ]


def every_rule() -> Iterator[tuple[str, str, tuple[Rule, ...]]]:
    """Gate, table and all rules of each suite."""
    for path in suites():
        suite = json.loads(path.read_text(encoding="utf-8"))
        gate, table = suite["name"].split(".")
        yield gate, table, _suite(gate, table)


@cache
def _suite(gate: str, table: str) -> tuple[Rule, ...]:
    path = _FOLDER.joinpath(gate, f"{table}.json")
    return tuple(_rules(table, json.loads(path.read_text(encoding="utf-8"))))


def _rules(table: str, suite: dict[str, Any]) -> Iterator[Rule]:
    """Expectations with the same meta data form one rule."""
    items_by_meta: dict[str, list[dict[str, Any]]] = {}
    for item in suite["expectations"]:
        items_by_meta.setdefault(json.dumps(item["meta"], sort_keys=True), []).append(item)
    for items in items_by_meta.values():
        meta = items[0]["meta"]
        yield Rule(
            meta["rule"],
            table,
            tuple(suite["meta"]["keys"]),
            meta.get("remedy", DEFECT),
            tuple(Expectation(item["type"], json.dumps(item["kwargs"])) for item in items),
            tuple(meta.get("shows", ())),
            meta.get("only_for", ""),
        )
