"""Rules as data: each is one or several expectations of Great Expectations on one table.

They are written in suites/<gate>/<table>.json, in Great Expectations' own format; nothing else
states them. The meta data of an expectation say which rule it belongs to:

- ``rule``: its name. The rule holds where all of its expectations do.
- ``remedy``: what an operator can do; left out where only a defect of the planner breaks it.
- ``shows``: columns to show of a row beside its keys. These are named once for the table.
- ``asked``: the rule is only asked of what has this name (:func:`rules_of`); else always.

``$level`` stands for a level of the racks: such an expectation is there once per level.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

DEFECT = "This is a defect of the planner: keep the plan's files and report it."
"""The remedy where no operator can have caused it."""

_LEVEL = "$level"
_FOLDER = files("include.quality").joinpath("suites")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One of Great Expectations' expectations.

    :param type: as Great Expectations calls it, for example ``expect_column_values_to_be_unique``.
    :param kwargs: what it is told, as JSON.
    """

    type: str
    kwargs: str

    def arguments(self) -> dict[str, Any]:
        """The kwargs as plain types."""
        found: dict[str, Any] = json.loads(self.kwargs)
        return found


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold of each row of a table, and what to do where it does not.

    :param keys: columns that name a row to a person.
    :param shows: further columns to show of a row that breaks it.
    :param asked: see the module; "" = always.
    """

    name: str
    table: str
    keys: tuple[str, ...]
    remedy: str
    expectations: tuple[Expectation, ...]
    shows: tuple[str, ...] = ()
    asked: str = ""


def rules_of(gate: str, tables: Collection[str], asked: Collection[str] = ()) -> tuple[Rule, ...]:
    """The rules of a gate on these tables that apply, in their order.

    :param asked: names that the suites know, of what the rules are asked about.
    """
    every = (rule for table in tables for rule in _suite(gate, table))
    return tuple(rule for rule in every if not rule.asked or rule.asked in asked)


def at_level(rule: Rule, level: int) -> Rule:
    """The rule on one level of the racks; 1 is the topmost. Others stay as they are."""
    expectations = tuple(
        Expectation(item.type, item.kwargs.replace(_LEVEL, str(level)))
        for item in rule.expectations
    )
    return replace(rule, name=rule.name.replace(_LEVEL, str(level)), expectations=expectations)


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
    """Gate, table and rules of each suite, whatever they are asked about."""
    for path in suites():
        suite = json.loads(path.read_text(encoding="utf-8"))
        gate, table = suite["name"].split(".")
        yield gate, table, _suite(gate, table)


@cache
def _suite(gate: str, table: str) -> tuple[Rule, ...]:
    path = _FOLDER.joinpath(gate, f"{table}.json")
    return tuple(_rules(table, json.loads(path.read_text(encoding="utf-8"))))


def _rules(table: str, suite: dict[str, Any]) -> Iterator[Rule]:
    """Expectations that agree in all their meta data are of one rule."""
    found: dict[str, list[dict[str, Any]]] = {}
    for item in suite["expectations"]:
        found.setdefault(json.dumps(item["meta"], sort_keys=True), []).append(item)
    for items in found.values():
        meta = items[0]["meta"]
        yield Rule(
            meta["rule"],
            table,
            tuple(suite["meta"]["keys"]),
            meta.get("remedy", DEFECT),
            tuple(Expectation(item["type"], json.dumps(item["kwargs"])) for item in items),
            tuple(meta.get("shows", ())),
            meta.get("asked", ""),
        )
