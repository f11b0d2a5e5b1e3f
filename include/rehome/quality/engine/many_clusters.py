"""One pass of a gate over many small clusters, with concatenated tables.

A pass costs seconds even for few rows, so small clusters are checked together. If every rule holds
for all, it holds for each. If a rule is broken, bisection finds the cluster; that one is then
checked alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from rehome.quality.engine.results import GateResult
from rehome.quality.engine.rules import Expectation, Rule

C = TypeVar("C", bound=Hashable)

CLUSTER = "cluster"
"""The column that names a row's cluster."""
_SQL, _QUERY = "unexpected_rows_expectation", "unexpected_rows_query"


def stack_tables(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Concatenate the same table of several clusters, with a column for the cluster."""
    return pa.concat_tables(
        [
            table.append_column(CLUSTER, pa.array([cluster] * len(table), pa.string()))
            for cluster, table in tables.items()
        ],
        promote_options="permissive",
    )


def among_clusters(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The same rules for concatenated tables: their rows are named with their cluster."""
    return tuple(
        replace(
            rule,
            keys=(CLUSTER, *rule.keys),
            expectations=tuple(map(_among_clusters, rule.expectations)),
        )
        for rule in rules
    )


def _among_clusters(item: Expectation) -> Expectation:
    if item.type != _SQL:
        return item
    arguments = item.arguments()
    query = arguments[_QUERY].replace("SELECT ", f"SELECT {CLUSTER}, ", 1)
    return Expectation(_SQL, json.dumps({**arguments, _QUERY: query}))


def judged_together(
    members: Sequence[C],
    together: Callable[[Sequence[C]], GateResult],
    alone: Callable[[C], GateResult],
) -> dict[C, GateResult]:
    """Each member's result.

    :param together: checks several in one pass; ``alone``: checks one, in detail.
    """
    if not members:
        return {}
    if len(members) == 1:
        return {members[0]: alone(members[0])}
    joint_result = together(members)
    if joint_result.passed:
        # These validations mix clusters, so no Data Docs are made of them.
        in_common = replace(joint_result, validations=())
        return dict.fromkeys(members, in_common)
    half = len(members) // 2
    parts = (members[:half], members[half:])
    return {
        member: result
        for part in parts
        for member, result in judged_together(part, together, alone).items()
    }
