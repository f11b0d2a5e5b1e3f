"""Expectations as data: what must hold of each row of a table, and what to do where it does not."""

from __future__ import annotations

from dataclasses import dataclass

DEFECT = "This is a defect of the planner: keep the plan's files and report it."
"""The remedy where no operator can have caused it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One expectation on one table.

    :param holds: Spark SQL condition that is true of every good row; a null counts as broken,
        since Great Expectations would skip it.
    :param keys: columns that name a row to a person.
    :param shows: further columns to show of an offending row.
    """

    name: str
    table: str
    holds: str
    keys: tuple[str, ...]
    remedy: str
    shows: tuple[str, ...] = ()
