"""Every rule's verdict on every row, found by Spark in one pass over each table.

Rows that agree in all their verdicts are counted together. What is left of millions of rows is a
handful of groups; Great Expectations judges these (:mod:`include.quality.engine.runner`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from include.quality.engine.rules import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BITS = 62
"""Verdicts that one column holds, as bits of a 64-bit number."""


@dataclass(frozen=True)
class Alike:
    """Rows of one table of which each rule says the same.

    :param holds: what each rule that was asked says of them.
    """

    holds: Mapping[Rule, bool]
    rows: int


@dataclass(frozen=True)
class Verdicts:
    """What the rules say of their tables.

    :param crashed: rules that cannot be asked, and why; no group knows them.
    """

    groups: tuple[Alike, ...]
    crashed: Mapping[Rule, str]

    def broken_rows(self, rule: Rule) -> int:
        """How many rows break a rule."""
        return sum(group.rows for group in self.groups if group.holds.get(rule) is False)


def judge(tables: Mapping[str, DataFrame], rules: Sequence[Rule]) -> Verdicts:
    """Ask every rule about every row of its table.

    One crash takes down every rule of the same query. Then tables are asked one by one, and the
    rules of the one that crashes.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    asked = by_table(rules)
    try:
        return Verdicts(_groups(tables, asked), {})
    except (PySparkException, Py4JError) as error:
        if len(rules) == 1:
            return Verdicts((), {rules[0]: str(error)})
    parts = list(asked.values()) if len(asked) > 1 else [[rule] for rule in rules]
    found = [judge(tables, part) for part in parts]
    return Verdicts(
        tuple(group for verdicts in found for group in verdicts.groups),
        {rule: why for verdicts in found for rule, why in verdicts.crashed.items()},
    )


def by_table(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """The rules of each table, in their order."""
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.table, []).append(rule)
    return found


def with_bits(
    frame: DataFrame, rules: Sequence[Rule], *others: str, columns: int | None = None
) -> DataFrame:
    """Numbers ``broken_0``, … whose bits are set where the rules are broken; :func:`is_broken`
    names the bit of a rule.

    :param others: further columns to keep.
    :param columns: how many numbers; None = as many as it takes.
    """
    numbers = _columns(rules) if columns is None else columns
    parts = (rules[_BITS * number : _BITS * (number + 1)] for number in range(numbers))
    bits = (f"{_bits(part)} AS broken_{number}" for number, part in enumerate(parts))
    return frame.selectExpr(*others, *bits)


def is_broken(number: int) -> str:
    """SQL condition on the columns of :func:`with_bits`: the rule of that number is broken."""
    return f"broken_{number // _BITS} & {1 << number % _BITS}L <> 0"


def _columns(rules: Sequence[Rule]) -> int:
    return -(-len(rules) // _BITS)


def _bits(rules: Sequence[Rule]) -> str:
    bits = (
        f"if(coalesce({rule.holds}, false), 0L, {1 << number}L)"
        for number, rule in enumerate(rules)
    )
    return " | ".join(bits) or "0L"


def _groups(
    tables: Mapping[str, DataFrame], asked: Mapping[str, Sequence[Rule]]
) -> tuple[Alike, ...]:
    columns = max(map(_columns, asked.values()), default=0)
    frames = [
        with_bits(tables[table], rules, f"{number} AS asked", columns=columns)
        for number, (table, rules) in enumerate(asked.items())
    ]
    if not frames:
        return ()
    together = reduce(lambda one, other: one.unionAll(other), frames)
    rows = together.groupBy(*together.columns).count().collect()
    of_table = list(asked.values())
    return tuple(
        Alike(
            {
                rule: not row[f"broken_{number // _BITS}"] >> number % _BITS & 1
                for number, rule in enumerate(of_table[row["asked"]])
            },
            row["count"],
        )
        for row in rows
    )
